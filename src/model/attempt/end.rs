//! How an attempt is stopped, and how it ended.

use serde::{Deserialize, Serialize};

use super::Attempt;
use crate::model::disposition::{Disposition, Fault, Permission, Rang};
use crate::model::time::Time;
use crate::model::verdict::{After, Leg, SipStatus};

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

impl CancelRequest {
    /// Who asked and why, as far as they said so: `by kim: wrong list`.
    #[must_use]
    pub fn told(&self) -> String {
        match (self.by.as_str(), self.why.as_str()) {
            ("", "") => "by request, without a name or a reason".to_owned(),
            ("", why) => format!("by request, without a name: {why}"),
            (by, "") => format!("by {by}, without a reason"),
            (by, why) => format!("by {by}: {why}"),
        }
    }
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

impl Mode {
    /// Its name on the command line: `stop-ringing`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeDial => "before-dial",
            Self::StopRinging => "stop-ringing",
            Self::HangUp => "hang-up",
        }
    }
}

/// A recorded stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub why: StopWhy,
    /// Since when.
    pub at: Time,
    /// When our deletion of the room met a leg that was just seen to ring or to be dialed: it
    /// was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_ringing: Option<Time>,
    /// The leg that our deletion of the room met after it was answered: it was hung up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_talking: Option<Leg>,
}

impl Stop {
    /// A stop that is recorded at `at`, and has met nobody yet.
    #[must_use]
    pub const fn new(why: StopWhy, at: Time) -> Self {
        Self {
            why,
            at,
            met_ringing: None,
            met_talking: None,
        }
    }

    /// Whether a deletion of the room is known to have met the callee's leg.
    #[must_use]
    pub const fn has_met(&self) -> bool {
        self.met_ringing.is_some() || self.met_talking.is_some()
    }
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
    /// The callee's leg left: one side hung up.
    LegLeft,
    /// Canceled by request.
    Canceled,
    /// It lasted as long as it may.
    Maximum,
    /// Its agent went away.
    AgentLost,
    /// A person said that it is over.
    Resolved,
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

impl Attempt {
    /// Whether a stop is recorded that reaches what was answered: a cancel that only stops
    /// ringing leaves a person who talks alone.
    #[must_use]
    pub fn hangs_up(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| match stop.why {
            StopWhy::AgentLost | StopWhy::Maximum => true,
            StopWhy::Cancel => self
                .cancel
                .as_ref()
                .is_some_and(|cancel| cancel.mode == Mode::HangUp),
        })
    }

    /// Whether a deletion of ours met the callee after the answer.
    #[must_use]
    pub fn is_met(&self) -> bool {
        (self.stop.as_ref()).is_some_and(|stop| stop.met_talking.is_some())
    }

    /// What ended an answered call: the recorded stop, if it `reached` the callee, or else this.
    /// A stop that is asked for in the moment in which they hang up themselves reaches nobody.
    #[must_use]
    pub fn ended_by(&self, by_itself: EndCause, reached: bool) -> EndCause {
        if !reached {
            return by_itself;
        }
        match self.stop.as_ref().map(|stop| stop.why) {
            Some(StopWhy::AgentLost) => EndCause::AgentLost,
            Some(StopWhy::Maximum) => EndCause::Maximum,
            Some(StopWhy::Cancel) if self.hangs_up() => EndCause::Canceled,
            Some(StopWhy::Cancel) | None => by_itself,
        }
    }
}
