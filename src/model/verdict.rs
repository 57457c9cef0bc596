//! What the answer to a dial proves.
//!
//! A verdict is drawn from the structure of the platform's answer and from texts that
//! are known; everything else is [`Verdict::Uncertain`]. A refusal *before* any dial
//! (no room, no agent) is a [`TryFailure`].

use serde::{Deserialize, Serialize};

use super::disposition::Disposition;

/// What the answer to `CreateSIPParticipant` proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The callee's side answered with 200 OK; it may be voicemail.
    Answered(Leg),
    /// Certainly no SIP call was started. A new try may follow.
    NotDialed(TryFailure),
    /// A SIP call was started and is over without an answer, or soon will be.
    NotConnected(NotConnected),
    /// The call may ring, may be answered, or may never have been started.
    Uncertain(Unclear),
}

/// The ids of an answered leg.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// LiveKit's id of the SIP call (`SCL_…`).
    pub call: String,
    /// LiveKit's id of the participant (`PA_…`).
    pub participant: String,
}

/// A SIP call that ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotConnected {
    /// What it is called.
    pub disposition: Disposition,
    /// The SIP status and reason phrase, if the carrier gave one.
    pub sip: Option<SipStatus>,
    /// Whether the phone may still ring for a while, and so how long the contact and the
    /// number stay held.
    pub after: After,
}

/// How surely the call is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The carrier gave a final answer: over.
    Over,
    /// A CANCEL was sent; its arrival is not known.
    Canceled,
    /// No CANCEL, or it is not known: the phone may ring on.
    Silent,
}

/// A final SIP status, 300 to 699 (RFC 3261, 21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SipStatus {
    /// The status code.
    pub code: u16,
    /// The carrier's reason phrase, or LiveKit's name of the status; at most 128 characters.
    pub phrase: String,
}

/// Why it is not known what became of a dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unclear {
    /// No answer came: the connection broke or our own timeout passed.
    NoAnswer,
    /// The platform answered that its own deadline passed.
    DeadlineExceeded,
    /// The platform refused in a way that proves nothing, with its HTTP status.
    Twirp(u16),
    /// Something before the platform answered (a proxy's page), with its HTTP status: the
    /// request may still be under way behind it.
    Strange(u16),
    /// The call was torn down at the moment of an answer, or at a moment that fits no
    /// ringing timeout.
    TornDown,
    /// 200 without the ids that a started call has.
    NoIds,
    /// The process that dialed is gone; nobody will report.
    Abandoned,
}

/// Why a try started no SIP call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryFailure {
    /// No agent joined within its time.
    AgentUnavailable,
    /// An agent that is not ours joined, or a second one.
    AgentConflict,
    /// No trunk of that name, or two.
    TrunkNotFound,
    /// The trunk has no number to call from.
    TrunkNoNumber,
    /// The room could not be made, or what was made is not ours.
    RoomFailed,
    /// The platform has no capacity.
    PlatformOverloaded,
    /// The platform's clock and ours differ too much for the dial's token.
    PlatformClock,
    /// The platform rejected the request (400, 413).
    RequestRejected,
    /// The platform refused our credentials (401).
    CredentialsRefused,
    /// No connection to the platform stood, or it did not answer a call before the dial.
    PlatformUnreachable,
    /// `send_by` passed before the dial was sent: this process was paused.
    TooLate,
    /// A rule turned it back at the marker.
    TurnedBack,
    /// Its process died or drained before the marker.
    Abandoned,
    /// A stop was recorded before the marker.
    Stopped,
}

impl TryFailure {
    /// Every failure.
    pub const ALL: [Self; 14] = [
        Self::AgentUnavailable,
        Self::AgentConflict,
        Self::TrunkNotFound,
        Self::TrunkNoNumber,
        Self::RoomFailed,
        Self::PlatformOverloaded,
        Self::PlatformClock,
        Self::RequestRejected,
        Self::CredentialsRefused,
        Self::PlatformUnreachable,
        Self::TooLate,
        Self::TurnedBack,
        Self::Abandoned,
        Self::Stopped,
    ];

    /// How an attempt is called that ends with this failure.
    #[must_use]
    pub const fn disposition(self) -> Disposition {
        match self {
            Self::AgentUnavailable => Disposition::AgentUnavailable,
            Self::AgentConflict => Disposition::AgentConflict,
            Self::TrunkNotFound | Self::TrunkNoNumber => Disposition::TrunkNotFound,
            Self::RoomFailed => Disposition::RoomFailed,
            Self::PlatformOverloaded => Disposition::PlatformOverloaded,
            Self::PlatformClock => Disposition::PlatformClock,
            Self::RequestRejected | Self::CredentialsRefused => Disposition::RequestRejected,
            Self::PlatformUnreachable => Disposition::PlatformUnreachable,
            Self::TooLate | Self::TurnedBack | Self::Abandoned | Self::Stopped => {
                Disposition::Expired
            }
        }
    }

    /// Whether it counts against `max_tries`: what will fail again by itself does, what a
    /// platform in trouble does is repeated until the attempt expires.
    #[must_use]
    pub const fn counts(self) -> bool {
        match self {
            Self::AgentUnavailable
            | Self::AgentConflict
            | Self::TrunkNotFound
            | Self::TrunkNoNumber
            | Self::RequestRejected => true,
            Self::RoomFailed
            | Self::PlatformOverloaded
            | Self::PlatformClock
            | Self::CredentialsRefused
            | Self::PlatformUnreachable
            | Self::TooLate
            | Self::TurnedBack
            | Self::Abandoned
            | Self::Stopped => false,
        }
    }

    /// One sentence for a person: what happened and what to do.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::AgentUnavailable => {
                "the agent did not join in time; check that its worker runs and is registered under this name"
            }
            Self::AgentConflict => {
                "another agent than ours joined the room; an unnamed worker is registered with this LiveKit"
            }
            Self::TrunkNotFound => {
                "LiveKit has no outbound trunk of this name, or two; create it, or remove one"
            }
            Self::TrunkNoNumber => "the trunk has no number to call from; give it one",
            Self::RoomFailed => "the room could not be made",
            Self::PlatformOverloaded => "LiveKit has no capacity at the moment",
            Self::PlatformClock => {
                "LiveKit's clock and this host's differ by more than livekit.clock_skew_max; nothing was dialed: let NTP set the one that is wrong"
            }
            Self::RequestRejected => "LiveKit rejected the request as invalid",
            Self::CredentialsRefused => {
                "LiveKit refused the API key, its secret or this host's clock; nothing was dialed: check livekit.api_key, livekit.api_secret and both clocks"
            }
            Self::PlatformUnreachable => {
                "LiveKit could not be reached or did not answer; nothing was dialed: check livekit.url, the network and whether it runs; `ringonce status` tells how it fails"
            }
            Self::TooLate => "this process was paused too long before the dial; nothing was dialed",
            Self::TurnedBack => "a rule turned it back just before the dial",
            Self::Abandoned => "the process that held it stopped before the dial",
            Self::Stopped => "it was stopped before the dial",
        }
    }
}
