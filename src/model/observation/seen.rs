//! One observation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::time::Time;

/// What one webhook, or one look at the platform, says of a session's room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// When: the platform's own time of an event (`createdAt`), ours of a look. The two clocks
    /// are not one, so times of unlike sources order nothing that matters.
    pub at: Time,
    /// Who saw it.
    pub source: Source,
    /// The room, if it was named by its sid.
    pub room: Option<RoomSight>,
    /// Who was there, or was there and left.
    pub people: Vec<Person>,
}

/// Who saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// LiveKit told us.
    Webhook,
    /// We looked.
    Look,
}

/// A room as it was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomSight {
    /// LiveKit's id of it (`RM_…`): a room that a late join makes anew has another.
    pub sid: String,
    /// When it was made (`creationTimeMs`).
    pub created: Option<Time>,
    /// When it was finished, if this says so.
    pub finished: Option<Time>,
}

/// A participant as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// LiveKit's id of this join (`PA_…`): another join of the same identity has another.
    pub sid: String,
    /// The identity.
    pub identity: String,
    /// What it is to us.
    pub role: Role,
    /// When it joined (`joinedAtMs`).
    pub joined: Option<Time>,
    /// When and why it left, if it has.
    pub left: Option<Left>,
}

/// What a participant is to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A SIP leg.
    Leg {
        /// Whether its identity is the session's: the callee's leg.
        ours: bool,
        /// LiveKit's id of the SIP call (`SCL_…`).
        call: Option<String>,
        /// Where it stood.
        status: Option<CallStatus>,
    },
    /// An agent, with the name that it registered with.
    Agent(Option<String>),
    /// Anyone else, or one whose kind was not told (track events name only the identity).
    Other,
}

/// Where a SIP leg stands (`sip.callStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// `dialing`: proves nothing; it often says so while the phone rings.
    Dialing,
    /// `ringing`: an INVITE left and the phone rings or rang.
    Ringing,
    /// `automation`: answered, digits are being sent.
    Automation,
    /// `active`: answered.
    Active,
    /// `hangup`: was answered, is over.
    Hangup,
    /// A status that is not known here.
    Other,
}

impl CallStatus {
    /// From the attribute's text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text {
            "dialing" => Self::Dialing,
            "ringing" => Self::Ringing,
            "automation" => Self::Automation,
            "active" => Self::Active,
            "hangup" => Self::Hangup,
            _ => Self::Other,
        }
    }
}

/// When and why a participant left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// When it was told.
    pub at: Time,
    /// Why.
    pub reason: LeftReason,
}

impl Left {
    /// The one of two reports of the same leaving that is kept: one with a reason that is
    /// known before one without, then the earlier, then by the reason's order. It is the same
    /// one both ways round, so that the order of arrival does not show.
    #[must_use]
    pub(super) fn best(self, other: Self) -> Self {
        let vague = |reason| matches!(reason, LeftReason::Unknown | LeftReason::Other);
        let key = |left: Self| (vague(left.reason), left.at, left.reason);
        if key(other) < key(self) { other } else { self }
    }
}

/// Why a participant left (`disconnectReason`). Only some of them prove anything, see
/// [`evidence`](crate::model::evidence).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftReason {
    /// It was not said.
    Unknown,
    /// A reason that this version does not know.
    Other,
    /// It never came fully in (`participant_connection_aborted` without a reason).
    Aborted,
    /// The participant's own doing. Of a SIP leg: the callee hung up, the longest duration
    /// passed, or the carrier or the bridge failed.
    ClientInitiated,
    /// Another join of the same identity evicted it.
    DuplicateIdentity,
    /// The server shut down.
    ServerShutdown,
    /// `RemoveParticipant`.
    ParticipantRemoved,
    /// `DeleteRoom`.
    RoomDeleted,
    /// The server did not know a session that was resumed.
    StateMismatch,
    /// It could not connect.
    JoinFailure,
    /// It was moved to another server.
    Migration,
    /// Its signal connection closed.
    SignalClose,
    /// The room was closed since nobody was left.
    RoomClosed,
    /// The callee was not reached: it rang out, or the carrier said so (404, 408, 480).
    UserUnavailable,
    /// It was rejected: 486, 603, other 4xx and 6xx, no common codec.
    UserRejected,
    /// The SIP signalling failed (of newer bridges).
    SipTrunkFailure,
    /// It was silent too long: seen about 20 s after the SIP bridge was killed.
    ConnectionTimeout,
    /// Its media failed.
    MediaFailure,
    /// An agent failed.
    AgentError,
}

/// Each reason and its name on the platform (`DisconnectReason` in `livekit_models.proto`).
const REASONS: [(LeftReason, &str); 17] = [
    (LeftReason::Unknown, "UNKNOWN_REASON"),
    (LeftReason::ClientInitiated, "CLIENT_INITIATED"),
    (LeftReason::DuplicateIdentity, "DUPLICATE_IDENTITY"),
    (LeftReason::ServerShutdown, "SERVER_SHUTDOWN"),
    (LeftReason::ParticipantRemoved, "PARTICIPANT_REMOVED"),
    (LeftReason::RoomDeleted, "ROOM_DELETED"),
    (LeftReason::StateMismatch, "STATE_MISMATCH"),
    (LeftReason::JoinFailure, "JOIN_FAILURE"),
    (LeftReason::Migration, "MIGRATION"),
    (LeftReason::SignalClose, "SIGNAL_CLOSE"),
    (LeftReason::RoomClosed, "ROOM_CLOSED"),
    (LeftReason::UserUnavailable, "USER_UNAVAILABLE"),
    (LeftReason::UserRejected, "USER_REJECTED"),
    (LeftReason::SipTrunkFailure, "SIP_TRUNK_FAILURE"),
    (LeftReason::ConnectionTimeout, "CONNECTION_TIMEOUT"),
    (LeftReason::MediaFailure, "MEDIA_FAILURE"),
    (LeftReason::AgentError, "AGENT_ERROR"),
];

impl LeftReason {
    /// From the platform's name of it.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let known = REASONS.iter().find(|(_, name)| *name == text);
        known.map_or(Self::Other, |(reason, _)| *reason)
    }

    /// Whether it was a deletion of the room, or a removal from it, that made the callee leave;
    /// `None` if the reason does not tell.
    #[must_use]
    pub const fn is_by_deletion(self) -> Option<bool> {
        match self {
            Self::RoomDeleted | Self::ParticipantRemoved => Some(true),
            Self::ClientInitiated
            | Self::UserUnavailable
            | Self::UserRejected
            | Self::SipTrunkFailure
            | Self::ConnectionTimeout
            | Self::MediaFailure
            | Self::AgentError => Some(false),
            Self::Unknown
            | Self::Other
            | Self::Aborted
            | Self::DuplicateIdentity
            | Self::ServerShutdown
            | Self::StateMismatch
            | Self::JoinFailure
            | Self::Migration
            | Self::SignalClose
            | Self::RoomClosed => None,
        }
    }

    /// Whether a leg that left so does not come back by itself.
    #[must_use]
    pub const fn is_for_good(self) -> bool {
        match self {
            Self::DuplicateIdentity
            | Self::ServerShutdown
            | Self::StateMismatch
            | Self::Migration
            | Self::SignalClose => false,
            Self::Unknown
            | Self::Other
            | Self::Aborted
            | Self::ClientInitiated
            | Self::ParticipantRemoved
            | Self::RoomDeleted
            | Self::JoinFailure
            | Self::RoomClosed
            | Self::UserUnavailable
            | Self::UserRejected
            | Self::SipTrunkFailure
            | Self::ConnectionTimeout
            | Self::MediaFailure
            | Self::AgentError => true,
        }
    }

    /// The platform's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = REASONS.iter().find(|(reason, _)| *reason == self);
        known.map_or("another reason", |(_, name)| name)
    }
}

impl fmt::Display for LeftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first and the last time that something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First.
    pub first: Time,
    /// Last.
    pub last: Time,
}

impl Span {
    /// A single moment.
    #[must_use]
    pub const fn at(at: Time) -> Self {
        Self {
            first: at,
            last: at,
        }
    }

    /// Reaches to `at` as well.
    pub(super) fn reach(&mut self, at: Time) {
        self.first = self.first.min(at);
        self.last = self.last.max(at);
    }
}
