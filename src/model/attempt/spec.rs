//! What the caller asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::id::{AgentName, AttemptId, CampaignId, ContactId, OutreachId, TrunkName};
use crate::model::time::Time;

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

#[cfg(test)]
impl Spec {
    /// For tests: a call that was intended at `at` and rings for 45 s.
    pub(crate) fn sample(at: Time) -> Self {
        Self {
            contact: "c".parse().unwrap(),
            outreach: "o".parse().unwrap(),
            campaign: None,
            follows: None,
            intend_time: at,
            expire_time: at.plus(Duration::from_hours(1)),
            keep: Keep::UntilExpiry,
            trunk: "main".parse().unwrap(),
            agent: AgentWanted {
                name: "caller".parse().unwrap(),
                gate: Gate::Joined,
                join_ms: 10_000,
            },
            ringing_ms: 45_000,
            max_call_ms: 3_600_000,
            time_zone: None,
            priority: 0,
            labels: BTreeMap::new(),
        }
    }
}
