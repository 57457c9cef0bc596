//! How fast this process dials: a limit for the process, one for each trunk, and an
//! adaptive one that gives way to the platform's overload.
//!
//! A [`Slot`] is taken when an attempt leaves QUEUED and lives as long as its pipeline.
//! From RESERVED on, the trunk's concurrency is counted by what the ledger commits, so
//! that answered calls count until they end, whoever ends them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::Config;
use crate::ledger::Observer;
use crate::model::attempt::{Attempt, Rule, State};
use crate::model::id::{AttemptId, TrunkName, Workspace};

/// An attempt as the pace counts it.
type Who = (Workspace, AttemptId);

/// When a limit that has no time of its own is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The limits and what counts against them.
#[derive(Debug)]
pub struct Pace {
    config: Arc<Config>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: u32,
    trunks: BTreeMap<TrunkName, Trunk>,
    adaptive: Option<Adaptive>,
    /// When the dials of the last second were sent.
    sent: VecDeque<Instant>,
}

#[derive(Debug, Default)]
struct Trunk {
    bucket: Option<Bucket>,
    /// Slots whose attempt is not yet committed.
    taken: u32,
    live: BTreeSet<Who>,
    waiting: BTreeSet<Who>,
}

/// A token bucket that holds at most one second's worth.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: f64, now: Instant) -> Self {
        Self {
            tokens: rate.max(1.0),
            filled: now,
        }
    }

    /// Takes a token, or says how long until there is one.
    fn take(&mut self, rate: f64, now: Instant) -> Result<(), NotNow> {
        let gained = now.saturating_duration_since(self.filled).as_secs_f64() * rate;
        self.tokens = (self.tokens + gained).min(rate.max(1.0));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - self.tokens) / rate.max(0.001);
        Err(NotNow {
            after: Duration::from_secs_f64(missing.min(60.0)),
        })
    }
}

/// The limit that the platform's overload sets, in dials a second.
#[derive(Debug, Clone, Copy)]
struct Adaptive {
    rate: f64,
    bucket: Bucket,
    halved: Instant,
    grown: Instant,
}

/// The right to run one pipeline. Dropping it gives it back.
#[derive(Debug)]
#[must_use]
pub struct Slot {
    pace: Arc<Pace>,
    trunk: TrunkName,
    bound: bool,
}

/// The pace says: not now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotNow {
    /// When it is worth asking again.
    pub after: Duration,
}

impl Pace {
    /// With the limits of `config`.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Arc<Self> {
        Arc::new(Self {
            config,
            counts: Mutex::default(),
        })
    }

    /// Takes a slot for a new attempt, which goes behind what already waits for this trunk.
    ///
    /// # Errors
    ///
    /// If there is none now.
    pub fn take_new(self: &Arc<Self>, trunk: &TrunkName) -> Result<Slot, NotNow> {
        if self
            .lock()
            .trunks
            .get(trunk)
            .is_some_and(|t| !t.waiting.is_empty())
        {
            return Err(NotNow { after: ASK_AGAIN });
        }
        self.take(trunk)
    }

    /// Takes a slot.
    ///
    /// # Errors
    ///
    /// If there is none now.
    pub fn take(self: &Arc<Self>, trunk: &TrunkName) -> Result<Slot, NotNow> {
        let now = Instant::now();
        let limits = self.config.trunks.get(trunk);
        let mut counts = self.lock();
        if counts.in_flight >= self.config.dial.in_flight {
            return Err(NotNow { after: ASK_AGAIN });
        }
        let of_trunk = counts.trunks.entry(trunk.clone()).or_default();
        let concurrent = limits.and_then(|l| l.concurrent);
        let live = of_trunk.live.len() + of_trunk.taken as usize;
        if concurrent.is_some_and(|most| live >= most as usize) {
            return Err(NotNow { after: ASK_AGAIN });
        }
        let mut bucket = of_trunk.bucket;
        if let Some(rate) = limits.and_then(|l| l.calls_per_second) {
            bucket
                .get_or_insert_with(|| Bucket::full(rate, now))
                .take(rate, now)?;
        }
        counts.adapt(now, &self.config)?;
        counts.in_flight += 1;
        let of_trunk = counts.trunks.entry(trunk.clone()).or_default();
        of_trunk.bucket = bucket;
        of_trunk.taken += 1;
        Ok(Slot {
            pace: Arc::clone(self),
            trunk: trunk.clone(),
            bound: false,
        })
    }

    /// The platform said that it has no capacity: half of the dials of the last second, at
    /// most one halving a `halve_interval`.
    pub fn overloaded(&self) {
        let now = Instant::now();
        let limits = &self.config.pace;
        let mut counts = self.lock();
        let rate = match counts.adaptive {
            Some(adaptive) if now.duration_since(adaptive.halved) < limits.halve_interval => {
                return;
            }
            Some(adaptive) => adaptive.rate / 2.0,
            None => {
                counts.forget_old(now);
                f64::from(u32::try_from(counts.sent.len()).unwrap_or(u32::MAX)) / 2.0
            }
        };
        let rate = rate.max(limits.minimum);
        let bucket = Bucket {
            tokens: 0.0,
            filled: now,
        };
        counts.adaptive = Some(Adaptive {
            rate,
            bucket,
            halved: now,
            grown: now,
        });
        drop(counts);
        tracing::warn!(
            dials_per_second = rate,
            "the platform is overloaded; dialing more slowly"
        );
    }

    /// The adaptive limit, in dials a second, while there is one.
    #[must_use]
    pub fn adaptive_rate(&self) -> Option<f64> {
        self.lock().adaptive.map(|a| a.rate)
    }

    /// How many pipelines run.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.lock().in_flight
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn forget_old(&mut self, now: Instant) {
        while self
            .sent
            .front()
            .is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1))
        {
            self.sent.pop_front();
        }
    }

    fn adapt(&mut self, now: Instant, config: &Config) -> Result<(), NotNow> {
        let Some(adaptive) = &mut self.adaptive else {
            return Ok(());
        };
        let calm = now.duration_since(adaptive.grown).as_secs_f64();
        adaptive.rate += config.pace.growth * calm;
        adaptive.grown = now;
        adaptive.bucket.take(adaptive.rate, now)
    }
}

impl Slot {
    /// The attempt is committed and counted from now on by what the ledger says of it.
    pub fn bind(&mut self) {
        if !self.bound {
            self.bound = true;
            if let Some(trunk) = self.pace.lock().trunks.get_mut(&self.trunk) {
                trunk.taken = trunk.taken.saturating_sub(1);
            }
        }
    }

    /// The dial is about to be sent.
    pub fn sends(&self) {
        let now = Instant::now();
        let mut counts = self.pace.lock();
        counts.forget_old(now);
        counts.sent.push_back(now);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.bind();
        let mut counts = self.pace.lock();
        counts.in_flight = counts.in_flight.saturating_sub(1);
    }
}

impl Observer for Pace {
    fn committed(&self, attempt: &Attempt) {
        let who = (attempt.workspace.clone(), attempt.id.clone());
        let mut counts = self.lock();
        let trunk = counts.trunks.entry(attempt.spec.trunk.clone()).or_default();
        let waits = attempt.state == State::Queued
            && attempt
                .waiting
                .as_ref()
                .is_some_and(|w| w.reason.rule == Rule::Pace);
        if waits {
            trunk.waiting.insert(who.clone());
        } else {
            trunk.waiting.remove(&who);
        }
        if attempt.state.holds() {
            trunk.live.insert(who);
        } else {
            trunk.live.remove(&who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(text: &str) -> Arc<Pace> {
        Pace::new(Arc::new(Config::from_toml(text).unwrap()))
    }

    fn main() -> TrunkName {
        "main".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_process_and_the_trunk_have_limits_and_a_dropped_slot_is_given_back() {
        let pace = pace("[dial]\nin_flight = 2\n[trunks.main]\nconcurrent = 1\n");
        let slot = pace.take(&main()).unwrap();
        assert!(pace.take(&main()).is_err());
        drop(slot);
        assert_eq!(pace.in_flight(), 0);
        assert!(pace.take(&main()).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_per_second_are_kept_and_the_wait_is_told() {
        let pace = pace("[trunks.main]\ncalls_per_second = 2.0\n");
        let _a = pace.take(&main()).unwrap();
        let _b = pace.take(&main()).unwrap();
        let NotNow { after } = pace.take(&main()).unwrap_err();
        assert_eq!(after, Duration::from_millis(500));
        tokio::time::advance(after).await;
        assert!(pace.take(&main()).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn overload_halves_what_was_sent_at_most_once_a_second_and_grows_back() {
        let pace = pace("[pace]\nminimum = 1.0\ngrowth = 1.0\nhalve_interval = \"1s\"\n");
        for _ in 0..10 {
            pace.take(&main()).unwrap().sends();
        }
        assert_eq!(pace.adaptive_rate(), None);
        pace.overloaded();
        pace.overloaded();
        assert_eq!(pace.adaptive_rate(), Some(5.0));
        assert!(pace.take(&main()).is_err());
        tokio::time::advance(Duration::from_secs(1)).await;
        pace.overloaded();
        assert_eq!(pace.adaptive_rate(), Some(2.5));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(pace.take(&main()).is_ok());
        assert_eq!(pace.adaptive_rate(), Some(4.5));
    }
}
