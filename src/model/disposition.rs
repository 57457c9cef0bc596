//! How an attempt ended, whose fault it was, and whether a follow-up attempt would be
//! accepted: one table.

use serde::{Deserialize, Serialize};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// 200 OK: a person, a mailbox or a machine.
    Answered,
    /// 486, 600.
    Busy,
    /// It rang out, or the carrier said so.
    NoAnswer,
    /// 603.
    Declined,
    /// Events say that the callee was not reached; the carrier's status is not known.
    Unreached,
    /// Events say that it was rejected; by whom is not known.
    Rejected,
    /// 404, 410, 484, 604.
    WrongNumber,
    /// 480.
    Unavailable,
    /// 607, 608 and the carriers' permanent blocks.
    Blocked,
    /// 301, 302, 305, 380, 485.
    Redirected,
    /// The carrier refuses us: 402, 403, 405 and the like.
    CarrierRefused,
    /// The carrier failed: 5xx and the like.
    CarrierFailure,
    /// The carrier's rate or concurrency limit.
    CarrierCapacity,
    /// 401, 407: the trunk's credentials.
    TrunkAuth,
    /// No such trunk.
    TrunkNotFound,
    /// The trunk's host cannot be reached.
    TrunkUnreachable,
    /// No common codec; the callee may have answered for an instant.
    MediaMismatch,
    /// No agent joined.
    AgentUnavailable,
    /// Another agent joined.
    AgentConflict,
    /// The agent went away while it rang or talked.
    AgentLost,
    /// No room.
    RoomFailed,
    /// The platform has no capacity.
    PlatformOverloaded,
    /// Clocks differ.
    PlatformClock,
    /// The platform cannot be reached.
    PlatformUnreachable,
    /// The platform was shutting down.
    PlatformStopped,
    /// The platform rejects the request.
    RequestRejected,
    /// Someone ended it on the platform, not us.
    StoppedOnPlatform,
    /// Nothing of it was ever seen, by one that looked all the time.
    NoTrace,
    /// Nobody could settle it.
    Unresolved,
    /// A person found that no call was started.
    NotDialed,
    /// Its time passed.
    Expired,
    /// Stopped by request.
    Canceled,
}

/// Whose fault it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nobody's: it was answered.
    None,
    /// The person's choice or absence.
    Callee,
    /// The number's.
    Number,
    /// The carrier's, or our trunk configuration.
    Carrier,
    /// LiveKit's.
    Platform,
    /// The agent's.
    Agent,
    /// A rule of ours.
    Policy,
    /// Not known.
    Unknown,
}

/// Whether the ledger would accept a follow-up attempt. No advice to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Not settled.
    NotYet,
    /// It would be accepted.
    Permitted,
    /// It would be refused.
    Never,
}

/// Whether the phone rang, as far as was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rang {
    /// It rang.
    Rang,
    /// Nothing was seen that says so.
    NoEvidence,
}

impl Disposition {
    /// Every disposition.
    pub const ALL: [Self; 32] = [
        Self::Answered,
        Self::Busy,
        Self::NoAnswer,
        Self::Declined,
        Self::Unreached,
        Self::Rejected,
        Self::WrongNumber,
        Self::Unavailable,
        Self::Blocked,
        Self::Redirected,
        Self::CarrierRefused,
        Self::CarrierFailure,
        Self::CarrierCapacity,
        Self::TrunkAuth,
        Self::TrunkNotFound,
        Self::TrunkUnreachable,
        Self::MediaMismatch,
        Self::AgentUnavailable,
        Self::AgentConflict,
        Self::AgentLost,
        Self::RoomFailed,
        Self::PlatformOverloaded,
        Self::PlatformClock,
        Self::PlatformUnreachable,
        Self::PlatformStopped,
        Self::RequestRejected,
        Self::StoppedOnPlatform,
        Self::NoTrace,
        Self::Unresolved,
        Self::NotDialed,
        Self::Expired,
        Self::Canceled,
    ];

    /// Whose fault it is, given whether it rang.
    #[must_use]
    pub const fn fault(self, rang: Rang) -> Fault {
        match self {
            Self::Answered => Fault::None,
            Self::Busy | Self::Declined => Fault::Callee,
            Self::NoAnswer => match rang {
                Rang::Rang => Fault::Callee,
                Rang::NoEvidence => Fault::Unknown,
            },
            Self::WrongNumber | Self::Redirected => Fault::Number,
            Self::Blocked
            | Self::CarrierRefused
            | Self::CarrierFailure
            | Self::CarrierCapacity
            | Self::TrunkAuth
            | Self::TrunkUnreachable
            | Self::MediaMismatch => Fault::Carrier,
            Self::AgentUnavailable | Self::AgentConflict | Self::AgentLost => Fault::Agent,
            Self::TrunkNotFound
            | Self::RoomFailed
            | Self::PlatformOverloaded
            | Self::PlatformClock
            | Self::PlatformUnreachable
            | Self::PlatformStopped
            | Self::RequestRejected => Fault::Platform,
            Self::Expired | Self::Canceled => Fault::Policy,
            Self::Unreached
            | Self::Rejected
            | Self::Unavailable
            | Self::StoppedOnPlatform
            | Self::NoTrace
            | Self::Unresolved
            | Self::NotDialed => Fault::Unknown,
        }
    }

    /// Whether a follow-up attempt would be accepted.
    #[must_use]
    pub const fn permission(self) -> Permission {
        match self {
            Self::WrongNumber | Self::Blocked => Permission::Never,
            Self::Answered
            | Self::Busy
            | Self::NoAnswer
            | Self::Declined
            | Self::Unreached
            | Self::Rejected
            | Self::Unavailable
            | Self::Redirected
            | Self::CarrierRefused
            | Self::CarrierFailure
            | Self::CarrierCapacity
            | Self::TrunkAuth
            | Self::TrunkNotFound
            | Self::TrunkUnreachable
            | Self::MediaMismatch
            | Self::AgentUnavailable
            | Self::AgentConflict
            | Self::AgentLost
            | Self::RoomFailed
            | Self::PlatformOverloaded
            | Self::PlatformClock
            | Self::PlatformUnreachable
            | Self::PlatformStopped
            | Self::RequestRejected
            | Self::StoppedOnPlatform
            | Self::NoTrace
            | Self::Unresolved
            | Self::NotDialed
            | Self::Expired
            | Self::Canceled => Permission::Permitted,
        }
    }

    /// One sentence for a person.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Answered => {
                "the call was answered; by a person or by a mailbox is not known here"
            }
            Self::Busy => "the line was busy",
            Self::NoAnswer => "nobody answered",
            Self::Declined => "the call was declined",
            Self::Unreached => "the callee was not reached; the carrier's reason is not known",
            Self::Rejected => "the call was rejected; by whom is not known",
            Self::WrongNumber => "the number does not exist",
            Self::Unavailable => "the callee was temporarily unavailable",
            Self::Blocked => "the call was blocked for good by the carrier or the callee",
            Self::Redirected => "the callee's side pointed elsewhere, which is not followed",
            Self::CarrierRefused => "the carrier refused to place the call",
            Self::CarrierFailure => "the carrier failed",
            Self::CarrierCapacity => "the carrier's rate or concurrency limit was reached",
            Self::TrunkAuth => "the carrier did not accept the trunk's credentials; check them",
            Self::TrunkNotFound => "LiveKit has no usable outbound trunk of this name",
            Self::TrunkUnreachable => "the trunk's host could not be reached; check its address",
            Self::MediaMismatch => {
                "no common audio codec with the callee's side; check the trunk's media settings"
            }
            Self::AgentUnavailable => "no agent joined in time; nothing was dialed",
            Self::AgentConflict => "another agent than ours joined; nothing was dialed",
            Self::AgentLost => "the agent went away and the call was ended",
            Self::RoomFailed => "the room could not be made; nothing was dialed",
            Self::PlatformOverloaded => "LiveKit had no capacity; nothing was dialed",
            Self::PlatformClock => "LiveKit's clock and ours differ; nothing was dialed",
            Self::PlatformUnreachable => "LiveKit could not be reached; nothing was dialed",
            Self::PlatformStopped => "LiveKit's SIP bridge was shutting down",
            Self::RequestRejected => "LiveKit rejected the request; nothing was dialed",
            Self::StoppedOnPlatform => "the call was ended on the platform, not by us",
            Self::NoTrace => {
                "no trace of the call was ever seen on LiveKit, by looks every few seconds and by \
                 webhooks; one shorter than that may have been, if LiveKit sends no webhooks"
            }
            Self::Unresolved => "what became of the call could not be found out",
            Self::NotDialed => "a person found that it was not dialed",
            Self::Expired => "its time passed before it could be dialed",
            Self::Canceled => "it was canceled",
        }
    }
}

/// What a final SIP status means, with the carrier's phrase: the table of the API's
/// documentation. Codes outside 300 to 699 are no final refusal; they are not passed here.
#[must_use]
pub fn of_sip(code: u16, phrase: &str) -> Disposition {
    use Disposition as D;
    let says = |words: &[&str]| {
        let phrase = phrase.to_ascii_lowercase();
        words.iter().any(|word| phrase.contains(word))
    };
    match code {
        486 | 600 => D::Busy,
        603 if says(&[
            "network blocked",
            "blocked",
            "rejected by network",
            "spam",
            "32203",
        ]) =>
        {
            D::Blocked
        }
        607 | 608 => D::Blocked,
        404 | 410 | 484 | 604 => D::WrongNumber,
        480 if says(&["cps", "rate limit", "no channel", "capacity"]) => D::CarrierCapacity,
        480 => D::Unavailable,
        408 | 504 => D::NoAnswer,
        401 | 407 => D::TrunkAuth,
        415 | 488 | 606 => D::MediaMismatch,
        487 => D::StoppedOnPlatform,
        503 if says(&[
            "cps",
            "rate limit",
            "limit exceeded",
            "capacity",
            "concurren",
            "too many",
        ]) =>
        {
            D::CarrierCapacity
        }
        482 | 483 | 491 | 500..=599 => D::CarrierFailure,
        300..=399 | 485 => D::Redirected,
        // 603 above all; 600, 604 and 606 to 608 have their own names.
        600..=699 => D::Declined,
        _ => D::CarrierRefused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sip_statuses_are_named_as_documented() {
        for (code, phrase, expected) in [
            (486, "Busy Here", Disposition::Busy),
            (600, "", Disposition::Busy),
            (603, "Decline", Disposition::Declined),
            (603, "Network Blocked", Disposition::Blocked),
            (607, "Unwanted", Disposition::Blocked),
            (404, "Not Found", Disposition::WrongNumber),
            (480, "Temporarily Unavailable", Disposition::Unavailable),
            (408, "", Disposition::NoAnswer),
            (302, "", Disposition::Redirected),
            (403, "", Disposition::CarrierRefused),
            (401, "", Disposition::TrunkAuth),
            (488, "", Disposition::MediaMismatch),
            (500, "", Disposition::CarrierFailure),
            (503, "Service Unavailable", Disposition::CarrierFailure),
            (503, "CPS limit exceeded", Disposition::CarrierCapacity),
            (555, "", Disposition::CarrierFailure),
            (699, "", Disposition::Declined),
            (499, "", Disposition::CarrierRefused),
        ] {
            assert_eq!(of_sip(code, phrase), expected, "{code} {phrase}");
        }
    }

    #[test]
    fn a_block_is_never_followed_up() {
        assert_eq!(Disposition::Blocked.permission(), Permission::Never);
        assert_eq!(Disposition::WrongNumber.permission(), Permission::Never);
        assert_eq!(Disposition::Busy.permission(), Permission::Permitted);
    }
}
