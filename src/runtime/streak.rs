//! A failure that comes again and again: told when it begins, now and then while it lasts, and
//! when it is over, instead of once for each try.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often one failure is told while it lasts, or while it comes and goes: rarely enough for
/// a log that people read, and often enough for one who has just begun to.
const EVERY: Duration = Duration::from_mins(1);

/// Failures of one kind, by whomever they are met.
#[derive(Debug, Default)]
pub struct Streak(Mutex<Run>);

/// What is worth telling of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// How often it failed in a row.
    pub count: u64,
    /// How long ago it began.
    pub lasts: Duration,
}

#[derive(Debug, Default)]
struct Run {
    /// When the first of them was met.
    since: Option<Instant>,
    count: u64,
    /// When a failure was told last, in this run or in one before.
    told: Option<Instant>,
    /// Whether any of this run was.
    is_told: bool,
}

impl Streak {
    /// It failed once more: what to tell, if it is time to.
    pub fn failed(&self) -> Option<Told> {
        let now = Instant::now();
        let mut run = self.lock();
        let since = *run.since.get_or_insert(now);
        run.count += 1;
        if run
            .told
            .is_some_and(|told| now.duration_since(told) < EVERY)
        {
            return None;
        }
        run.told = Some(now);
        run.is_told = true;
        Some(Told {
            count: run.count,
            lasts: now.duration_since(since),
        })
    }

    /// It did not fail this time: what to tell, if whoever reads was told that it did.
    pub fn ended(&self) -> Option<Told> {
        let mut run = self.lock();
        let since = run.since.take()?;
        let told = Told {
            count: std::mem::take(&mut run.count),
            lasts: since.elapsed(),
        };
        std::mem::take(&mut run.is_told).then_some(told)
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_at_its_begin_once_a_minute_and_at_its_end() {
        let streak = Streak::default();
        assert_eq!(streak.ended(), None);
        let told = |count, lasts| Some(Told { count, lasts });
        assert_eq!(streak.failed(), told(1, Duration::ZERO));
        let mut later = Vec::new();
        for _ in 0..150 {
            advance(SECOND).await;
            later.extend(streak.failed());
        }
        let counts: Vec<u64> = later.iter().map(|told| told.count).collect();
        assert_eq!(counts, [61, 121]);
        assert_eq!(streak.ended(), told(151, SECOND * 150));
        assert_eq!(streak.ended(), None, "once");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_and_goes_is_told_no_more_often() {
        let streak = Streak::default();
        let mut lines = 0;
        for _ in 0..120 {
            advance(SECOND / 2).await;
            lines += usize::from(streak.failed().is_some());
            advance(SECOND / 2).await;
            lines += usize::from(streak.ended().is_some());
        }
        assert_eq!(lines, 4, "two begins, and the end of each");
    }
}
