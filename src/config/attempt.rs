//! `[attempt]` and `[queue]`: how long an attempt is ours, and how it waits.

use std::time::Duration;

use super::reader::Reader;
use super::units::{DAY, FOREVER, HOUR, MILLISECOND, MINUTE};

/// How long an attempt is ours, and the limits of what it may carry.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// RESERVED lasts at most this + the agent's join timeout.
    pub reserved_for: Duration,
    /// Tries that count before the attempt is `NOT_DIALED`.
    pub tries: u32,
    /// The pause after the first failed try; doubles.
    pub backoff_first: Duration,
    /// The longest pause between two tries.
    pub backoff_max: Duration,
    /// By which share of itself a pause may be longer, at random: 0.2 is up to a fifth.
    pub backoff_jitter: f64,
    /// The expiry of a request that names none, after `intend_time`.
    pub expiry: Duration,
    /// The furthest expiry that a request may name, after `intend_time`.
    pub expiry_max: Duration,
    /// How far ahead of our clock an `intend_time` may be.
    pub intend_ahead: Duration,
    /// How long `NEEDS_REVIEW` holds contact and number.
    pub review_hold: Duration,
    /// The agent's metadata, in bytes.
    pub metadata_max_bytes: usize,
    /// Labels of one attempt.
    pub labels_max: usize,
    /// The longest name or value of a label, in bytes.
    pub label_max_bytes: usize,
    /// SIP headers of one attempt.
    pub headers_max: usize,
    /// The longest name or value of a SIP header, in bytes.
    pub header_max_bytes: usize,
}

impl Attempt {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("attempt");
        Self {
            reserved_for: s.duration("reserved_for", MILLISECOND..=HOUR),
            tries: s.number("tries", 1..=100),
            backoff_first: s.duration("backoff_first", MILLISECOND..=HOUR),
            backoff_max: s.duration("backoff_max", MILLISECOND..=DAY),
            backoff_jitter: s.decimal("backoff_jitter", 0.0..=1.0),
            expiry: s.duration("expiry", MILLISECOND..=FOREVER),
            expiry_max: s.duration("expiry_max", MILLISECOND..=FOREVER),
            intend_ahead: s.duration("intend_ahead", Duration::ZERO..=HOUR),
            review_hold: s.duration("review_hold", MILLISECOND..=FOREVER),
            metadata_max_bytes: s.number("metadata_max_bytes", 0..=60_000),
            labels_max: s.number("labels_max", 0..=256),
            label_max_bytes: s.number("label_max_bytes", 1..=4_096),
            headers_max: s.number("headers_max", 0..=256),
            header_max_bytes: s.number("header_max_bytes", 1..=4_096),
        }
    }
}

/// How attempts wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Waiting attempts of one workspace; beyond it callers get `RESOURCE_EXHAUSTED`.
    pub limit: u64,
    /// How often the store is asked for what is due when nobody was told of news.
    pub poll_interval: Duration,
    /// A waiting attempt is decided anew at least this often.
    pub recheck: Duration,
    /// It is decided anew this long after its holder's own time.
    pub holder_slack: Duration,
    /// Attempts that one look takes.
    pub batch: usize,
    /// For how long a look keeps others from the same attempts. Saves work, guards nothing.
    pub lease: Duration,
}

impl Queue {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("queue");
        Self {
            limit: s.number("limit", 1..=100_000_000),
            poll_interval: s.duration("poll_interval", MILLISECOND..=MINUTE),
            recheck: s.duration("recheck", MILLISECOND..=HOUR),
            holder_slack: s.duration("holder_slack", Duration::ZERO..=MINUTE),
            batch: s.number("batch", 1..=10_000),
            lease: s.duration("lease", MILLISECOND..=HOUR),
        }
    }
}
