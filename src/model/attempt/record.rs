//! What is kept of an attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::{Event, Outcome, State, transition};
use crate::model::disposition::{Disposition, Fault, Permission, Rang};
use crate::model::id::{
    AgentName, AttemptId, CampaignId, ContactId, Nonce, OutreachId, RoomName, SessionId, TrunkName,
    Workspace,
};
use crate::model::phone::NumberClass;
use crate::model::time::Time;
use crate::model::verdict::{After, Leg, SipStatus, TryFailure, Unclear};
use crate::model::window::Marker;

/// The most transitions that a record keeps; the newest stay.
pub(crate) const HISTORY_MAX: usize = 64;

/// What the caller asked for, but for what is sealed ([`crate::model::request::Private`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Whom. Fixed by the first call.
    pub contact: ContactId,
    /// Why. Fixed by the first call.
    pub outreach: OutreachId,
    /// On whose behalf. Fixed by the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<CampaignId>,
    /// The attempt that this one follows. Fixed by the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// When the scheduler decided; that of the first call stays.
    pub intend_time: Time,
    /// The last moment at which a marker may be written.
    pub expire_time: Time,
    /// Who keeps it while it waits.
    pub keep: Keep,
    /// The trunk, by name.
    pub trunk: TrunkName,
    /// The agent.
    pub agent: AgentWanted,
    /// How long it may ring, in milliseconds.
    pub ringing_ms: u64,
    /// How long the call may last, in milliseconds.
    pub max_call_ms: u64,
    /// The contact's time zone (IANA), as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// 0 to 9; 9 goes first.
    pub priority: u8,
    /// The caller's labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Spec {
    /// How long it may ring.
    #[must_use]
    pub const fn ringing(&self) -> Duration {
        Duration::from_millis(self.ringing_ms)
    }

    /// How long the call may last.
    #[must_use]
    pub const fn max_call(&self) -> Duration {
        Duration::from_millis(self.max_call_ms)
    }
}

/// The attempt that is followed up, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follows {
    /// That attempt.
    pub attempt: AttemptId,
    /// Why another call is right.
    pub reason: String,
}

/// Who keeps an attempt that cannot be placed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// We do, until it expires.
    UntilExpiry,
    /// The caller does, and asks again.
    Return,
}

/// The agent that shall talk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWanted {
    /// Its name.
    pub name: AgentName,
    /// What must be true of it before the dial.
    pub gate: Gate,
    /// How long it may take to join, in milliseconds.
    pub join_ms: u64,
}

/// What must be true of the agent before the dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// It is in the room.
    Joined,
    /// It was asked for; whether it comes in time is the caller's risk.
    Dispatched,
}

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

/// Why an attempt waits, and until when at the latest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The rule that stands in the way.
    pub reason: Reason,
    /// When it is asked again.
    pub until: Time,
    /// Not before this: a back-off, never shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// How often the same refusal was given.
    #[serde(default)]
    pub count: u32,
    /// When it was first given.
    pub first: Time,
    /// When it was last given.
    pub last: Time,
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// The attempt that holds what this one needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<AttemptId>,
    /// When the rule may let it pass, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// A rule of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The intent is older than what this store remembers.
    HistoryLost,
    /// Its time passed.
    Expired,
    /// The number is of a class that is not dialed.
    Number(NumberClass),
    /// Another attempt holds the contact.
    ContactReserved,
    /// Another attempt has a leg to the number, or may have.
    NumberInUse,
    /// The pace of the trunk or of this process.
    Pace,
    /// A try failed; the next one waits.
    NextTry,
}

impl Rule {
    /// Its name in the API: `CONTACT_RESERVED`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HistoryLost => "HISTORY_LOST",
            Self::Expired => "EXPIRED",
            Self::Number(NumberClass::Invalid) => "NUMBER_INVALID",
            Self::Number(NumberClass::Emergency) => "NUMBER_EMERGENCY",
            Self::Number(NumberClass::Premium) => "NUMBER_PREMIUM",
            Self::Number(NumberClass::Country) => "NUMBER_COUNTRY",
            Self::ContactReserved => "CONTACT_RESERVED",
            Self::NumberInUse => "NUMBER_IN_USE",
            Self::Pace => "PACE",
            Self::NextTry => "NEXT_TRY",
        }
    }

    /// One sentence for a person: what stands in the way and what to do.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::HistoryLost => {
                "this store does not remember the time of the intent, so it may have rung before; if it surely has not, run `ringonce store adopt --since TIME`"
            }
            Self::Expired => "its time passed before it could be dialed; nothing was dialed",
            Self::Number(NumberClass::Invalid) => "no such number can exist; nothing was dialed",
            Self::Number(NumberClass::Emergency) => "emergency and short numbers are never dialed",
            Self::Number(NumberClass::Premium) => {
                "premium-rate numbers are not allowed (numbers.allow_premium)"
            }
            Self::Number(NumberClass::Country) => {
                "the number's country is not allowed (numbers.countries)"
            }
            Self::ContactReserved => "another attempt is calling this contact",
            Self::NumberInUse => "another attempt is calling this number",
            Self::Pace => "the trunk or this process dials as fast as it may",
            Self::NextTry => {
                "the last try failed before anything was dialed; the next one waits a little"
            }
        }
    }
}

/// A request to cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// How far it goes.
    pub mode: Mode,
    /// Who asked.
    pub by: String,
    /// Why.
    pub why: String,
    /// When.
    pub at: Time,
}

/// How far a cancel goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only while nothing is dialed.
    BeforeDial,
    /// Also while it rings.
    StopRinging,
    /// Also while somebody talks.
    HangUp,
}

/// A recorded stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub why: StopWhy,
    /// Since when.
    pub at: Time,
}

/// Why a call is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// Canceled by request.
    Cancel,
    /// Its agent went away.
    AgentLost,
    /// It lasted as long as it may.
    Maximum,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// What it is called.
    pub disposition: Disposition,
    /// Whose fault it was.
    pub fault: Fault,
    /// Whether a follow-up attempt would be accepted.
    pub permission: Permission,
    /// Whether it rang.
    pub rang: Rang,
    /// The carrier's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sip: Option<SipStatus>,
    /// How surely the call is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Whether a SIP call had been started.
    pub call_started: bool,
    /// What ended an answered call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_cause: Option<EndCause>,
    /// When it ended.
    pub at: Time,
}

/// What ended an answered call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The room was seen to be gone: one side hung up.
    RoomGone,
    /// Canceled by request.
    Canceled,
    /// It lasted as long as it may.
    Maximum,
    /// Its agent went away.
    AgentLost,
}

impl Settled {
    /// Of an ending called `disposition`.
    #[must_use]
    pub const fn new(disposition: Disposition, rang: Rang, call_started: bool, at: Time) -> Self {
        Self {
            disposition,
            fault: disposition.fault(rang),
            permission: disposition.permission(),
            rang,
            sip: None,
            after: None,
            call_started,
            end_cause: None,
            at,
        }
    }
}

/// One change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// From where; nothing for a new attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// To where.
    pub to: State,
    /// When.
    pub at: Time,
    /// Why.
    pub cause: Cause,
    /// What showed it: a status, a look, an event. Never a number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
}

/// What showed a change.
pub type Evidence = String;

/// Why a state changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Every rule let it pass.
    Admitted,
    /// A rule.
    Rule(Rule),
    /// A try failed before the dial, or was proved to have started no call.
    TryFailed(TryFailure),
    /// The attempt marker was written.
    Marked,
    /// The trunk was resolved anew and the dial is sent once more.
    Healed,
    /// The answer to the dial.
    Verdict,
    /// The process that owned it is gone.
    OwnerGone,
    /// The reconciler looked.
    Looked,
    /// The room is gone.
    RoomGone,
    /// Canceled by request.
    Canceled,
    /// It lasted as long as it may.
    Maximum,
    /// The store's history changed.
    EpochChanged,
}

impl Cause {
    /// Its name in events and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "ADMITTED",
            Self::Rule(rule) => rule.name(),
            Self::TryFailed(_) => "TRY_FAILED",
            Self::Marked => "MARKED",
            Self::Healed => "TRUNK_HEALED",
            Self::Verdict => "VERDICT",
            Self::OwnerGone => "OWNER_GONE",
            Self::Looked => "LOOKED",
            Self::RoomGone => "ROOM_GONE",
            Self::Canceled => "CANCELED",
            Self::Maximum => "MAXIMUM",
            Self::EpochChanged => "EPOCH_CHANGED",
        }
    }
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

impl Attempt {
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
            State::Deferred => Some(self.spec.expire_time),
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
