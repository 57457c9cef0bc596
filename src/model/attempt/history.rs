//! What happened to an attempt, and why.

use serde::{Deserialize, Serialize};

use super::state::State;
use super::waiting::Rule;
use crate::model::time::Time;
use crate::model::verdict::TryFailure;

/// The most transitions that a record keeps; the newest stay.
pub(crate) const HISTORY_MAX: usize = 64;

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
    /// A webhook told it.
    Told,
    /// The room is gone.
    RoomGone,
    /// Canceled by request.
    Canceled,
    /// A cancel of what was dialed: it is to be stopped, and its state stays.
    StopRecorded,
    /// It lasted as long as it may.
    Maximum,
    /// The store's history changed.
    EpochChanged,
    /// Evidence cannot settle it.
    Unsettled,
    /// A person said what became of it.
    Resolved,
    /// The time that a review has is over.
    Unresolved,
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
            Self::Told => "TOLD",
            Self::RoomGone => "ROOM_GONE",
            Self::Canceled => "CANCELED",
            Self::StopRecorded => "STOP_RECORDED",
            Self::Maximum => "MAXIMUM",
            Self::EpochChanged => "EPOCH_CHANGED",
            Self::Unsettled => "UNSETTLED",
            Self::Resolved => "RESOLVED",
            Self::Unresolved => "UNRESOLVED",
        }
    }
}
