//! A budget of requests a second, waited for and never overdrawn for long.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Spends at most so many a second, evenly; a burst of one second's worth is allowed.
#[derive(Debug)]
pub struct Budget {
    /// The time that one costs.
    each: Duration,
    burst: Duration,
    /// When the next one would be due if all were spent evenly.
    next: Mutex<Option<Instant>>,
}

impl Budget {
    /// Of `per_second`; zero or less is taken as one an hour.
    #[must_use]
    pub fn new(per_second: f64) -> Self {
        let each = Duration::from_secs_f64(1.0 / per_second.max(1.0 / 3600.0));
        Self {
            each,
            burst: Duration::from_secs(1),
            next: Mutex::default(),
        }
    }

    /// Waits until `cost` may be spent, and spends it.
    pub async fn spend(&self, cost: f64) {
        let due = self.charge(cost);
        if due > Instant::now() {
            sleep_until(due).await;
        }
    }

    /// Spends `cost` without waiting, for what must not wait: whoever comes next waits for it
    /// too. When it would have been due.
    pub fn charge(&self, cost: f64) -> Instant {
        let now = Instant::now();
        // A std mutex, since nothing is awaited while it is held.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(self.burst).unwrap_or(now);
        let due = next.unwrap_or(earliest).max(earliest);
        *next = Some(due + self.each.mul_f64(cost));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let budget = Budget::new(10.0);
        let begun = Instant::now();
        for _ in 0..30 {
            budget.spend(1.0).await;
        }
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_millis(1_800) && took <= Duration::from_secs(2),
            "{took:?}"
        );
    }
}
