//! What is counted of webhooks in this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::token::Refusal;
use crate::ledger::Error;
use crate::model::time::Time;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Receipts that were new.
    Kept,
    /// Further deliveries of a receipt that is known.
    Known,
    /// Signed, and no event.
    NoEvent,
    /// Refused: no token, or one that is none.
    Malformed,
    /// Refused: a key that is not configured.
    UnknownKey,
    /// Refused: a wrong signature.
    Signature,
    /// Refused: not valid yet.
    Early,
    /// Refused: not valid any more.
    Late,
    /// Refused: other bytes than those that were signed.
    Body,
    /// Longer than allowed, and so lost.
    TooLong,
    /// Answered 503 since they were too many.
    TooMany,
    /// Answered 503 since they could not be kept.
    NotKept,
    /// Connections beyond the limit.
    Connections,
    /// Applied to a call.
    Applied,
    /// About rooms that are not ours.
    Foreign,
    /// About nothing that is a call.
    Ignored,
    /// That this version cannot read.
    Unread,
    /// That told of a leg's answer or end while its dial's own answer was awaited.
    BeforeReply,
    /// Answered calls that ended by a webhook.
    Ended,
    /// SIP legs in a room of ours that we did not dial.
    ForeignLegs,
    /// Calls that were answered before an agent was there.
    LateAgents,
    /// Rooms with a second agent.
    SecondAgents,
    /// Agents that left while a call was under way.
    LostAgents,
}

impl Counted {
    /// Everything that is counted.
    pub const ALL: [Self; 23] = [
        Self::Kept,
        Self::Known,
        Self::NoEvent,
        Self::Malformed,
        Self::UnknownKey,
        Self::Signature,
        Self::Early,
        Self::Late,
        Self::Body,
        Self::TooLong,
        Self::TooMany,
        Self::NotKept,
        Self::Connections,
        Self::Applied,
        Self::Foreign,
        Self::Ignored,
        Self::Unread,
        Self::BeforeReply,
        Self::Ended,
        Self::ForeignLegs,
        Self::LateAgents,
        Self::SecondAgents,
        Self::LostAgents,
    ];

    /// Its name in `GetStatus` and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Known => "duplicate",
            Self::NoEvent => "no_event",
            Self::Malformed => "malformed_token",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "wrong_signature",
            Self::Early => "token_too_early",
            Self::Late => "token_too_late",
            Self::Body => "other_body",
            Self::TooLong => "too_long",
            Self::TooMany => "too_many",
            Self::NotKept => "not_kept",
            Self::Connections => "too_many_connections",
            Self::Applied => "applied",
            Self::Foreign => "foreign",
            Self::Ignored => "ignored",
            Self::Unread => "unread",
            Self::BeforeReply => "before_reply",
            Self::Ended => "ended_calls",
            Self::ForeignLegs => "foreign_legs",
            Self::LateAgents => "late_agents",
            Self::SecondAgents => "second_agents",
            Self::LostAgents => "lost_agents",
        }
    }
}

/// The counters. They start at zero with the process.
#[derive(Debug, Default)]
pub struct Counts {
    counts: [AtomicU64; Counted::ALL.len()],
    /// When the last genuine webhook arrived, in microseconds; 0 for never.
    last: AtomicI64,
}

impl Counts {
    /// How often so far.
    #[must_use]
    pub fn of(&self, what: Counted) -> u64 {
        self.cell(what).load(Ordering::Relaxed)
    }

    /// Everything that was counted, by name.
    #[must_use]
    pub fn counted(&self) -> BTreeMap<&'static str, u64> {
        Counted::ALL
            .into_iter()
            .map(|what| (what.name(), self.of(what)))
            .collect()
    }

    /// When the last genuine webhook arrived, by our clock.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        let last = self.last.load(Ordering::Relaxed);
        (last > 0).then(|| Time::from_micros(last))
    }

    pub(super) fn add(&self, what: Counted) -> u64 {
        self.cell(what).fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn told(&self, at: Time) {
        self.last.fetch_max(at.as_micros(), Ordering::Relaxed);
    }

    pub(super) fn refused(&self, refusal: Refusal) {
        let count = self.add(match refusal {
            Refusal::Missing | Refusal::Malformed => Counted::Malformed,
            Refusal::UnknownKey => Counted::UnknownKey,
            Refusal::Signature => Counted::Signature,
            Refusal::Early => Counted::Early,
            Refusal::Late => Counted::Late,
            Refusal::Body => Counted::Body,
        });
        // Whoever sends nonsense shall not fill the log: the first, and then ever fewer.
        if count.is_power_of_two() {
            tracing::warn!(
                event = "webhook.refused",
                reason = refusal.name(),
                count,
                "a webhook was refused: {refusal}"
            );
        }
    }

    pub(super) fn not_kept(&self, error: &Error) {
        let count = self.add(Counted::NotKept);
        if count.is_power_of_two() {
            tracing::error!(
                event = "webhook.not_kept",
                count,
                %error,
                "a webhook could not be kept; LiveKit sends it again"
            );
        }
    }

    pub(super) fn too_long(&self) {
        let count = self.add(Counted::TooLong);
        tracing::error!(
            event = "webhook.too_long",
            count,
            "a webhook is longer than webhooks.body_max_bytes and is lost; the reconciler finds \
             out what it would have told"
        );
    }

    fn cell(&self, what: Counted) -> &AtomicU64 {
        // Each has its place in declaration order.
        self.counts.get(what as usize).unwrap_or(&self.counts[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_counter_of_its_own() {
        let counts = Counts::default();
        for (n, what) in Counted::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, n);
            counts.add(what);
        }
        assert!(Counted::ALL.iter().all(|what| counts.of(*what) == 1));
        assert_eq!(counts.counted().len(), Counted::ALL.len(), "a name each");
    }
}
