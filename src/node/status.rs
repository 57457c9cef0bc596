//! What a node has counted since its start, what is open, and why webhooks may be off.

use std::collections::BTreeMap;

use super::Node;
use crate::inbox::{Counted, Counts};
use crate::ledger::{self, Tally};
use crate::model::attempt::State;
use crate::model::time::Time;
use crate::provider::Health;
use crate::telemetry::histogram::Spans;
use crate::telemetry::redeliveries::Redelivered;

/// A node at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// When it was started: everything is counted from then on.
    pub since: Time,
    /// Requests for attempts that were known.
    pub redelivered: Redelivered,
    /// From the attempt marker to the placement marker.
    pub between_markers: Spans,
    /// What webhooks told.
    pub told: Told,
    /// Whether LiveKit answers.
    pub platform: Health,
    /// Why nothing new can be written down, while that is so.
    pub store_refuses: Option<String>,
}

/// What webhooks told, and what they should have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// When the last genuine one arrived.
    pub last: Option<Time>,
    /// How many told how a dial went before its own answer did.
    pub before_reply: u64,
    /// How many there were, by what became of them.
    pub counts: BTreeMap<&'static str, u64>,
    /// What looking found that a webhook should have told, by kind.
    pub gaps: BTreeMap<&'static str, u64>,
    /// Whether they seem to be off altogether.
    pub silent: bool,
    /// Why that is, the likeliest first; empty unless they are silent.
    pub why: Vec<&'static str>,
}

impl Status {
    /// Of a node that was started at `since` and has counted nothing.
    #[must_use]
    pub fn new(since: Time) -> Self {
        Self {
            since,
            redelivered: Redelivered::default(),
            between_markers: Spans::default(),
            told: Told::default(),
            platform: Health::default(),
            store_refuses: None,
        }
    }
}

impl Node {
    /// What was counted up to now.
    #[must_use]
    pub fn status(&self) -> Status {
        let (counts, gaps) = (self.inbox.counts(), self.reconciler.gaps());
        let silent = gaps.silent();
        Status {
            since: self.since,
            redelivered: self.counters.redeliveries.counted(),
            between_markers: self.counters.between_markers.counted(),
            told: Told {
                last: counts.last(),
                before_reply: counts.of(Counted::BeforeReply),
                counts: counts.counted(),
                gaps: gaps.counted(),
                silent,
                why: if silent { causes(counts) } else { Vec::new() },
            },
            platform: self.client.health(),
            store_refuses: self.ledger().refuses(),
        }
    }

    /// How many attempts are open, by state, of all workspaces: those that are not over, the
    /// answered ones among them. Counted up to a thousand each.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn open_attempts(&self) -> Result<Vec<Tally>, ledger::Error> {
        let mut tallies = Vec::with_capacity(OPEN.len());
        for state in OPEN {
            tallies.push(self.ledger().tally(state, COUNTED_MAX).await?);
        }
        Ok(tallies)
    }
}

/// The states of what is not over, in the order in which a call goes through them.
const OPEN: [State; 7] = [
    State::Queued,
    State::Deferred,
    State::Reserved,
    State::Dialing,
    State::Answered,
    State::Uncertain,
    State::NeedsReview,
];

/// A count reads the records, some kilobytes each, and whoever asks wants to know whether it is
/// none, some or a flood.
const COUNTED_MAX: usize = 1_000;

const KEY: &str = "KEY: webhooks arrive and are refused with 401, since their key or its secret \
    is not configured here: compare webhook.api_key of LiveKit with livekit.api_key and \
    webhook_keys";
const CLOCK: &str = "CLOCK: webhooks arrive and are refused with 401, since their tokens are not \
    valid now: set the clocks of both hosts";
const PROXY: &str = "PROXY: webhooks arrive and are refused with 401, since their bodies are not \
    the signed ones: let the proxy in between pass them unchanged";
const STORE: &str = "STORE: webhooks arrive and cannot be kept, or are too many: look for \
    webhook.not_kept, webhook.too_many and webhook.connections in the log";
const URL: &str = "URL: none arrives, or no more of them: webhook.urls of LiveKit must name this \
    listener's /webhooks/livekit, and reach it";
const QUEUE: &str = "QUEUE: LiveKit drops what has waited for 30 s, or behind 200 others: another \
    of its webhook.urls may be slow, or the network between";

/// Why webhooks seem to be off: what was seen to go wrong first, and then what nobody here can
/// see.
fn causes(counts: &Counts) -> Vec<&'static str> {
    let any = |kinds: &[Counted]| kinds.iter().any(|kind| counts.of(*kind) > 0);
    let seen = [
        (
            KEY,
            any(&[Counted::UnknownKey, Counted::Signature, Counted::Malformed]),
        ),
        (CLOCK, any(&[Counted::Early, Counted::Late])),
        (PROXY, any(&[Counted::Body])),
        (
            STORE,
            any(&[Counted::NotKept, Counted::TooMany, Counted::Connections]),
        ),
    ];
    let seen = seen.into_iter().filter(|(_, seen)| *seen);
    seen.map(|(why, _)| why).chain([URL, QUEUE]).collect()
}
