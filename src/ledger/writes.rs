//! Whether the store takes what is written, as far as this process has seen it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::store::{Error, Failure};

/// How long a failed write counts where nothing has been written since: several questions of
/// whoever asks for health. Where nothing is sent because of it, nothing else would end it.
const COUNTS: Duration = Duration::from_secs(10);

/// How long a write may take. A disk that has stalled answers nothing, and who waits for it
/// should be told by then what others are waiting for.
const HANGS: Duration = Duration::from_secs(10);

/// How the last write came out, and since when others are under way.
#[derive(Debug, Default)]
pub(super) struct Writes {
    last: Mutex<Option<(Failure, Instant)>>,
    under_way: Mutex<UnderWay>,
}

/// When each write that is under way was begun, in that order.
#[derive(Debug, Default)]
struct UnderWay {
    next: u64,
    begun: BTreeMap<u64, Instant>,
}

impl Writes {
    /// Awaits a write, and notes how it came out.
    pub(super) async fn of<T>(
        &self,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let end = self.timed(write).await;
        self.note(&end);
        end
    }

    /// The same of a question that writes only where something is due.
    pub(super) async fn asked<T>(
        &self,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let end = self.timed(question).await;
        self.note_asked(&end);
        end
    }

    async fn timed<T>(&self, write: impl Future<Output = T>) -> T {
        let number = self.begin();
        // Whoever waits for it may go away.
        let _over = scopeguard::guard(number, |number| {
            self.under_way().begun.remove(&number);
        });
        write.await
    }

    fn begin(&self) -> u64 {
        let mut under_way = self.under_way();
        let number = under_way.next;
        under_way.next += 1;
        under_way.begun.insert(number, Instant::now());
        number
    }

    /// Notes how a write came out. A full queue is over in a moment, and a record of a newer
    /// format stands in the way of nothing but itself, so neither says anything of the store.
    fn note<T>(&self, end: &Result<T, Error>) {
        match end {
            Ok(_) => *self.last() = None,
            Err(error) => self.failed(error),
        }
    }

    /// Notes how such a question came out: whether it wrote is not known. A disk that takes
    /// nothing does not show in one that wrote nothing.
    fn note_asked<T>(&self, end: &Result<T, Error>) {
        match end {
            Ok(_) => {
                let mut last = self.last();
                if last.as_ref().is_some_and(|(_, at)| at.elapsed() >= COUNTS) {
                    *last = None;
                }
            }
            Err(error) => self.failed(error),
        }
    }

    /// Why nothing is written: the last write failed, or the oldest one does not end.
    pub(super) fn refused(&self) -> Option<Failure> {
        let failed = self.last().as_ref().map(|(failure, _)| failure.clone());
        failed.or_else(|| {
            let oldest = self.under_way().begun.values().next()?.elapsed();
            (oldest >= HANGS).then(|| {
                let seconds = oldest.as_secs();
                Failure::Other(format!(
                    "a write has not ended for {seconds} s; see whether its disk has stalled"
                ))
            })
        })
    }

    fn failed(&self, error: &Error) {
        let (Error::NotApplied(failure) | Error::Unknown(failure)) = error;
        if !matches!(failure, Failure::Busy | Failure::Newer(_)) {
            *self.last() = Some((failure.clone(), Instant::now()));
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn last(&self) -> MutexGuard<'_, Option<(Failure, Instant)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Likewise.
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_lasts_is_kept_until_a_write_is_taken() {
        let writes = Writes::default();
        let fails = |failure: Failure| writes.note::<()>(&Err(Error::NotApplied(failure)));
        fails(Failure::Busy);
        assert_eq!(writes.refused(), None, "a full queue is no reason");
        fails(Failure::Epoch);
        fails(Failure::Busy);
        assert_eq!(writes.refused(), Some(Failure::Epoch));
        writes.note(&Ok(()));
        assert_eq!(writes.refused(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_does_not_end_is_told_until_it_does() {
        let writes = Writes::default();
        let write = async |seconds| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        };
        let told = async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(writes.refused(), None);
            tokio::time::sleep(Duration::from_secs(6)).await;
            let why = writes.refused().unwrap().to_string();
            assert!(why.contains("15 s") && why.contains("disk"), "{why}");
        };
        let (slow, quick, ()) = tokio::join!(writes.of(write(20)), writes.of(write(1)), told);
        assert_eq!((slow, quick), (Ok(()), Ok(())));
        assert_eq!(writes.refused(), None);
        // Nobody waits for this one any more.
        let left = tokio::time::timeout(Duration::from_secs(1), writes.of(write(60))).await;
        assert!(left.is_err());
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(writes.refused(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_wrote_nothing_ends_only_what_failed_long_ago() {
        let writes = Writes::default();
        writes.note_asked::<()>(&Err(Error::NotApplied(Failure::Epoch)));
        writes.note_asked(&Ok(()));
        assert_eq!(writes.refused(), Some(Failure::Epoch));
        tokio::time::sleep(COUNTS).await;
        writes.note_asked(&Ok(()));
        assert_eq!(writes.refused(), None);
    }
}
