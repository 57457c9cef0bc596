//! Whether the store takes what is written, as far as this process has seen it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::store::{Error, Failure};

/// How long a failed write counts where nothing has been written since: several questions of
/// whoever asks for health. Where nothing is sent because of it, nothing else would end it.
const COUNTS: Duration = Duration::from_secs(10);

/// How the last write came out.
#[derive(Debug, Default)]
pub(super) struct Writes(Mutex<Option<(Failure, Instant)>>);

impl Writes {
    /// Notes how a write came out. A full queue is over in a moment, and a record of a newer
    /// format stands in the way of nothing but itself, so neither says anything of the store.
    pub(super) fn note<T>(&self, end: &Result<T, Error>) {
        match end {
            Ok(_) => *self.last() = None,
            Err(error) => self.failed(error),
        }
    }

    /// Notes how a question came out that writes only where something is due: whether it did
    /// is not known. A disk that takes nothing does not show in one that wrote nothing.
    pub(super) fn note_asked<T>(&self, end: &Result<T, Error>) {
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

    /// Why the last one failed, if it did.
    pub(super) fn refused(&self) -> Option<Failure> {
        self.last().as_ref().map(|(failure, _)| failure.clone())
    }

    fn failed(&self, error: &Error) {
        let (Error::NotApplied(failure) | Error::Unknown(failure)) = error;
        if !matches!(failure, Failure::Busy | Failure::Newer(_)) {
            *self.last() = Some((failure.clone(), Instant::now()));
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn last(&self) -> MutexGuard<'_, Option<(Failure, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
