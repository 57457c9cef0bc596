//! `[reconcile]` and `[lifecycle]`: how what is open gets settled, and how a process ends.

use std::time::Duration;

use super::reader::Reader;
use super::units::{DAY, FOREVER, HOUR, MILLISECOND, MINUTE};

/// How what is open gets settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// The pause between two passes when nothing becomes due before.
    pub interval: Duration,
    /// How often an attempt is looked at whose dial is uncertain, up to its horizon.
    pub look_interval: Duration,
    /// Looks that are further apart than this do not prove `NO_TRACE`.
    pub look_gap_max: Duration,
    /// How often an answered call is looked at.
    pub answered_look: Duration,
    /// How often an uncertain one is looked at after its horizon.
    pub uncertain_look: Duration,
    /// How rarely, at the most, it is asked after a room of which the platform says nothing.
    pub silent_look: Duration,
    /// An answered call is stopped this long after its maximum.
    pub overrun_grace: Duration,
    /// How often all rooms of the platform are listed.
    pub sweep_interval: Duration,
    /// Attempts that are looked at closely at once.
    pub watched_max: usize,
    /// How long webhooks may tell nothing, while looks find what they should have told.
    pub webhook_silence: Duration,
    /// Records that one pass takes.
    pub batch: usize,
    /// Looks and deletions at once.
    pub concurrency: usize,
    /// For how long a record is one reconciler's. Saves work, guards nothing.
    pub lease: Duration,
    /// Requests to the platform per second.
    pub requests_per_second: u32,
}

impl Reconcile {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("reconcile");
        Self {
            interval: s.duration("interval", MILLISECOND..=MINUTE),
            look_interval: s.duration("look_interval", MILLISECOND..=MINUTE),
            look_gap_max: s.duration("look_gap_max", MILLISECOND..=MINUTE),
            answered_look: s.duration("answered_look", MILLISECOND..=HOUR),
            uncertain_look: s.duration("uncertain_look", MILLISECOND..=DAY),
            silent_look: s.duration("silent_look", MILLISECOND..=HOUR),
            overrun_grace: s.duration("overrun_grace", MILLISECOND..=HOUR),
            sweep_interval: s.duration("sweep_interval", MILLISECOND..=DAY),
            watched_max: s.number("watched_max", 1..=10_000_000),
            webhook_silence: s.duration("webhook_silence", MILLISECOND..=DAY),
            batch: s.number("batch", 1..=10_000),
            concurrency: s.number("concurrency", 1..=1_000),
            lease: s.duration("lease", MILLISECOND..=HOUR),
            requests_per_second: s.number("requests_per_second", 1..=100_000),
        }
    }
}

/// How a process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// From the first signal to the end at the latest.
    pub drain: Duration,
    /// How long a draining process still answers, so that load balancers notice.
    pub drain_delay: Duration,
    /// How long tasks have to let go once the drain is over.
    pub abort_slack: Duration,
}

impl Lifecycle {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("lifecycle");
        Self {
            drain: s.duration("drain", Duration::ZERO..=FOREVER),
            drain_delay: s.duration("drain_delay", Duration::ZERO..=HOUR),
            abort_slack: s.duration("abort_slack", MILLISECOND..=MINUTE),
        }
    }
}
