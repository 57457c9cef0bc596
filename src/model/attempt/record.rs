//! What is kept of an attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::end::{CancelRequest, Settled, Stop, StopWhy};
use super::history::{Cause, HISTORY_MAX, Transition};
use super::review::ReviewCause;
use super::spec::{Keep, Spec};
use super::state::{Event, Outcome, State, transition};
use super::waiting::{Rule, Waiting};
use crate::model::disposition::Rang;
use crate::model::id::{AttemptId, Nonce, RoomName, SessionId, Workspace};
use crate::model::time::Time;
use crate::model::verdict::{Leg, TryFailure, Unclear};
use crate::model::window::Marker;

/// An attempt as it stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The tenant.
    pub workspace: Workspace,
    /// Its id.
    pub id: AttemptId,
    /// What was asked for.
    pub spec: Spec,
    /// A keyed hash of what the first call fixed.
    pub fingerprint: String,
    /// The key under which the number is looked up.
    pub number_key: String,
    /// The number, masked.
    pub number_mask: String,
    /// Number, digits, headers and the agent's metadata, sealed; erased when it settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// The history in which it was decided last.
    pub epoch: Uuid,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub since: Time,
    /// When it was accepted.
    pub create_time: Time,
    /// Set where only the id is known: a cancel came before the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tombstone: bool,
    /// The number of the last try; 0 before the first.
    pub tries: u32,
    /// How many failed tries count against the limit.
    pub failed: u32,
    /// How many tries failed one after the other, for the back-off.
    #[serde(default)]
    pub setbacks: u32,
    /// Why the last try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<TryFailure>,
    /// Why it waits or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The present or last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// The request to cancel it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// The recorded stop: its room is being deleted on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Why evidence could not settle it, once that was so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewCause>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// When it shall be looked at again, in `ANSWERED`, `UNCERTAIN` and `NEEDS_REVIEW`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_at: Option<Time>,
    /// Its last transitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Transition>,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its session.
    pub session: SessionId,
    /// Its room.
    pub room: RoomName,
    /// The nonce in the room's metadata.
    pub nonce: Nonce,
    /// When RESERVED was entered.
    pub reserved_at: Time,
    /// When RESERVED ends, whatever happens.
    pub reserved_until: Time,
    /// The attempt marker of the last send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// How many times the trunk was healed in this try: 0 or 1.
    #[serde(default)]
    pub heals: u32,
    /// Why the outcome is unclear, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclear: Option<Unclear>,
    /// When the platform can no longer start the call, once an unclear answer moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Time>,
    /// When the phone was first seen ringing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring_time: Option<Time>,
    /// LiveKit's id of the SIP call, as soon as anything showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The placement marker: when the platform confirmed the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answered>,
}

impl Placed {
    /// A try that begins now.
    #[must_use]
    pub const fn reserved(
        session: SessionId,
        room: RoomName,
        nonce: Nonce,
        reserved_at: Time,
        reserved_until: Time,
    ) -> Self {
        Self {
            session,
            room,
            nonce,
            reserved_at,
            reserved_until,
            marker: None,
            heals: 0,
            unclear: None,
            horizon: None,
            ring_time: None,
            call: None,
            answer: None,
        }
    }

    /// When the platform can no longer start the call.
    #[must_use]
    pub fn horizon(&self) -> Option<Time> {
        self.horizon
            .or_else(|| self.marker.as_ref().map(|marker| marker.horizon))
    }
}

/// The placement marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// When it was written.
    pub at: Time,
    /// The leg.
    pub leg: Leg,
    /// What proves it.
    pub proof: String,
}

/// Who holds a contact or a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The attempt.
    pub attempt: AttemptId,
    /// Since when.
    pub since: Time,
    /// When the holder passes on by itself at the latest: what waits asks again then.
    pub due: Time,
    /// Set when the holder is settled and its phone may still ring a little: the hold is
    /// over then, without a further commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Hold {
    /// Whether it still holds at `now`.
    #[must_use]
    pub fn stands(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// What a queue consumer does with its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Drop it: the attempt is settled or ours.
    Ack,
    /// Send the same id again, not before this time.
    Repeat(Time),
}

/// What stands in an attempt for its number and its fixed fields, made by the ledger's keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keyed {
    /// The fingerprint of what the first call fixed.
    pub fingerprint: String,
    /// The key under which the number is looked up.
    pub number_key: String,
    /// The number, masked.
    pub number_mask: String,
    /// What is sealed.
    pub sealed: Option<String>,
}

impl Attempt {
    /// An attempt of which nothing has happened yet: [`Attempt::enter`] is to follow.
    #[must_use]
    pub fn new(
        workspace: Workspace,
        id: AttemptId,
        spec: Spec,
        keyed: Keyed,
        epoch: Uuid,
        at: Time,
    ) -> Self {
        Self {
            workspace,
            id,
            spec,
            fingerprint: keyed.fingerprint,
            number_key: keyed.number_key,
            number_mask: keyed.number_mask,
            sealed: keyed.sealed,
            epoch,
            state: State::Queued,
            since: at,
            create_time: at,
            tombstone: false,
            tries: 0,
            failed: 0,
            setbacks: 0,
            last_failure: None,
            waiting: None,
            placed: None,
            cancel: None,
            stop: None,
            review: None,
            settled: None,
            look_at: None,
            history: Vec::new(),
            rest: serde_json::Map::new(),
        }
    }

    /// Applies `event` by the table, and remembers it in the history.
    pub fn apply(
        &mut self,
        event: Event,
        at: Time,
        cause: Cause,
        evidence: impl Into<String>,
    ) -> Outcome {
        let outcome = transition(Some(self.state), event);
        if let Outcome::Applied(to) = outcome {
            self.enter(Some(self.state), to, at, cause, evidence.into());
        }
        outcome
    }

    /// Writes a cancel of what was dialed down. The history keeps each, since one that goes
    /// further takes the place of the one before.
    pub fn record_stop(&mut self, asked: CancelRequest) {
        let (state, at) = (self.state, asked.at);
        let told = format!("({}) {}", asked.mode.name(), asked.told());
        self.enter(Some(state), state, at, Cause::StopRecorded, told);
        self.cancel = Some(asked);
        self.stop.get_or_insert(Stop::new(StopWhy::Cancel, at));
    }

    /// Writes the entry into `to` down. For a new attempt `from` is `None`.
    pub fn enter(
        &mut self,
        from: Option<State>,
        to: State,
        at: Time,
        cause: Cause,
        evidence: String,
    ) {
        if from != Some(to) || !matches!(to, State::Queued | State::Deferred) {
            if self.history.len() >= HISTORY_MAX {
                self.history.remove(0);
            }
            self.history.push(Transition {
                from,
                to,
                at,
                cause,
                evidence,
            });
        }
        if self.state != to || from.is_none() {
            self.since = at;
        }
        self.state = to;
        match to {
            State::Queued | State::Deferred | State::Refused => {}
            State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => self.waiting = None,
        }
        if to.settled() {
            self.sealed = None;
        }
    }

    /// When it passes on by itself, or is looked at, at the latest. Every state that can
    /// change by itself has such a time; one whose field is missing is due at once.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let placed = self.placed.as_ref();
        match self.state {
            State::Queued => Some(self.waiting.as_ref().map_or(self.since, |w| w.until)),
            // One moment beyond it, since at that very moment it has not yet expired.
            State::Deferred => Some(self.spec.expire_time.plus(Duration::from_millis(1))),
            State::Reserved => Some(placed.map_or(self.since, |p| p.reserved_until)),
            State::Dialing => Some(
                placed
                    .and_then(|p| p.marker.as_ref())
                    .map_or(self.since, |m| m.window_end),
            ),
            State::Answered | State::Uncertain | State::NeedsReview => {
                Some(self.look_at.unwrap_or(self.since))
            }
            State::Refused
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Canceled => None,
        }
    }

    /// Whether it is settled for its caller: REFUSED because history was lost is decided
    /// anew by the next `PlaceCall`.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.settled() && !self.history_lost()
    }

    /// Whether it was refused because history was lost.
    #[must_use]
    pub fn history_lost(&self) -> bool {
        self.state == State::Refused
            && self
                .waiting
                .as_ref()
                .is_some_and(|w| w.reason.rule == Rule::HistoryLost)
    }

    /// What a queue consumer does with its message. `lost_again` is how long a refusal for
    /// lost history waits for a person.
    #[must_use]
    pub fn next(&self, now: Time, lost_again: Duration) -> Next {
        let returns = self.spec.keep == Keep::Return;
        match self.state {
            State::Deferred => Next::Repeat(
                self.waiting
                    .as_ref()
                    .map_or(now, |w| w.not_before.unwrap_or(w.until)),
            ),
            State::Refused if self.history_lost() => Next::Repeat(now.plus(lost_again)),
            State::Reserved | State::Dialing if returns => Next::Repeat(self.due().unwrap_or(now)),
            State::Queued
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => Next::Ack,
        }
    }

    /// Whether a SIP call may have been started in the present try.
    #[must_use]
    pub fn may_have_dialed(&self) -> bool {
        match self.state {
            State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::Uncertain
            | State::NeedsReview => true,
            State::Canceled => self.settled.as_ref().is_some_and(|s| s.call_started),
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::NotDialed => false,
        }
    }

    /// Whether the phone was seen ringing in the present try.
    #[must_use]
    pub fn rang(&self) -> Rang {
        match self.placed.as_ref().and_then(|p| p.ring_time) {
            Some(_) => Rang::Rang,
            None => Rang::NoEvidence,
        }
    }
}
