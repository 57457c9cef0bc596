//! `[room]` and `[janitor]`: how rooms are made, and how surely they go.

use std::time::Duration;

use super::fault::Wrong;
use super::reader::{Reader, Section};
use super::typed::show_duration;
use super::units::{HOUR, MILLISECOND, MINUTE, SECOND};

/// How rooms are made and stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// How long LiveKit keeps a room after its last participant left.
    pub departure_timeout: Duration,
    /// A room's empty timeout = RESERVED's deadline + horizon + this.
    pub empty_slack: Duration,
    /// A stop deletes the room again this often until the dial's verdict is in.
    pub stop_interval: Duration,
}

impl Room {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("room");
        Self {
            departure_timeout: departure_timeout(&mut s),
            empty_slack: s.duration("empty_slack", Duration::ZERO..=HOUR),
            stop_interval: s.duration("stop_interval", MILLISECOND..=MINUTE),
        }
    }
}

/// LiveKit counts whole seconds; a fraction would be cut without a word.
fn departure_timeout(s: &mut Section<'_>) -> Duration {
    let timeout = s.duration("departure_timeout", SECOND..=HOUR);
    if timeout.subsec_nanos() != 0 {
        let what = format!("is {}", show_duration(&timeout));
        s.fault("departure_timeout", Wrong::new(what, "write whole seconds"));
    }
    timeout
}

/// How surely rooms go that nobody needs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Janitor {
    /// How long one deletion is tried here before the reconciler has it.
    pub delete_timeout: Duration,
    /// The pause after the first failed deletion; doubles.
    pub backoff_first: Duration,
    /// The longest pause between two tries.
    pub backoff_max: Duration,
    /// Deletions at once.
    pub concurrency: usize,
    /// Rooms that may wait to be deleted; beyond it the reconciler finds them in the ledger.
    pub queue: usize,
}

impl Janitor {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("janitor");
        Self {
            delete_timeout: s.duration("delete_timeout", MILLISECOND..=HOUR),
            backoff_first: s.duration("backoff_first", MILLISECOND..=MINUTE),
            backoff_max: s.duration("backoff_max", MILLISECOND..=HOUR),
            concurrency: s.number("concurrency", 1..=1_000),
            queue: s.number("queue", 1..=1_000_000),
        }
    }
}
