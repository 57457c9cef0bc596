//! The only mapping of errors to gRPC: every error that a caller can meet has a reason here,
//! and a section on the page `src/docs/errors.md`.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::convert::{self, Violations};
use super::core::{LookError, NotDeleted, NotResolved, PlaceError, ReadError};
use crate::node::health::Health;

/// The domain of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "ringonce";

/// Why a call failed: stable names, never reused.
///
#[doc = include_str!("../docs/errors.md")]
#[expect(
    clippy::doc_markdown,
    reason = "the headings of the page are the reasons as they are sent"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Fields are wrong.
    InvalidFields,
    /// The page token is not one of this filter.
    InvalidPageToken,
    /// The watch cursor is not one of this workspace.
    InvalidCursor,
    /// The message cannot be decoded.
    MalformedMessage,
    /// The message is over the size limit.
    MessageTooLarge,
    /// The id was used for something else.
    AttemptIdReused,
    /// No such attempt.
    AttemptNotFound,
    /// The attempt does not wait for a person.
    AttemptNotInReview,
    /// The attempt's phone was seen to ring.
    AttemptRang,
    /// No such room.
    RoomNotFound,
    /// The room is not this deployment's.
    RoomNotOurs,
    /// A live attempt owns the room.
    RoomOwned,
    /// A SIP leg lives in the room.
    RoomLegLives,
    /// The workspace's queue is full.
    QueueFull,
    /// Too many watches are open.
    WatchesFull,
    /// The log was trimmed while a watch read it.
    WatchLagged,
    /// The log no longer has the cursor.
    CursorTooOld,
    /// The process is shutting down.
    Draining,
    /// The store is not available.
    StoreUnavailable,
    /// `LiveKit` did not answer, or not clearly.
    PlatformUnavailable,
    /// The caller's deadline passed.
    DeadlineExceeded,
    /// Whether it was decided is not known.
    DecisionUnknown,
    /// A fault of ours.
    Internal,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 23] = [
        Self::InvalidFields,
        Self::InvalidPageToken,
        Self::InvalidCursor,
        Self::MalformedMessage,
        Self::MessageTooLarge,
        Self::AttemptIdReused,
        Self::AttemptNotFound,
        Self::AttemptNotInReview,
        Self::AttemptRang,
        Self::RoomNotFound,
        Self::RoomNotOurs,
        Self::RoomOwned,
        Self::RoomLegLives,
        Self::QueueFull,
        Self::WatchesFull,
        Self::WatchLagged,
        Self::CursorTooOld,
        Self::Draining,
        Self::StoreUnavailable,
        Self::PlatformUnavailable,
        Self::DeadlineExceeded,
        Self::DecisionUnknown,
        Self::Internal,
    ];

    /// Its name in `ErrorInfo.reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidFields => "INVALID_FIELDS",
            Self::InvalidPageToken => "INVALID_PAGE_TOKEN",
            Self::InvalidCursor => "INVALID_CURSOR",
            Self::MalformedMessage => "MALFORMED_MESSAGE",
            Self::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Self::AttemptIdReused => "ATTEMPT_ID_REUSED",
            Self::AttemptNotFound => "ATTEMPT_NOT_FOUND",
            Self::AttemptNotInReview => "ATTEMPT_NOT_IN_REVIEW",
            Self::AttemptRang => "ATTEMPT_RANG",
            Self::RoomNotFound => "ROOM_NOT_FOUND",
            Self::RoomNotOurs => "ROOM_NOT_OURS",
            Self::RoomOwned => "ROOM_OWNED",
            Self::RoomLegLives => "ROOM_LEG_LIVES",
            Self::QueueFull => "QUEUE_FULL",
            Self::WatchesFull => "WATCHES_FULL",
            Self::WatchLagged => "WATCH_LAGGED",
            Self::CursorTooOld => "CURSOR_TOO_OLD",
            Self::Draining => "DRAINING",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::PlatformUnavailable => "PLATFORM_UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::DecisionUnknown => "DECISION_UNKNOWN",
            Self::Internal => "INTERNAL",
        }
    }

    /// Its gRPC code.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::InvalidFields
            | Self::InvalidPageToken
            | Self::InvalidCursor
            | Self::MalformedMessage
            | Self::MessageTooLarge => Code::InvalidArgument,
            Self::AttemptIdReused
            | Self::AttemptNotInReview
            | Self::AttemptRang
            | Self::RoomNotOurs
            | Self::RoomOwned
            | Self::RoomLegLives => Code::FailedPrecondition,
            Self::AttemptNotFound | Self::RoomNotFound => Code::NotFound,
            Self::QueueFull | Self::WatchesFull | Self::WatchLagged => Code::ResourceExhausted,
            Self::CursorTooOld => Code::OutOfRange,
            Self::Draining | Self::StoreUnavailable | Self::PlatformUnavailable => {
                Code::Unavailable
            }
            Self::DeadlineExceeded => Code::DeadlineExceeded,
            Self::DecisionUnknown | Self::Internal => Code::Internal,
        }
    }

    /// What the caller does, in a sentence.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::InvalidFields => "Mend every field that the violations name, then send it again.",
            Self::InvalidPageToken => "Begin again without a page token.",
            Self::InvalidCursor => "Begin again without a cursor.",
            Self::MalformedMessage => "Encode the message by the proto of ringonce.v1.",
            Self::MessageTooLarge => "Send a smaller message; metadata is the usual cause.",
            Self::AttemptIdReused => "Use a new attempt id for another call.",
            Self::AttemptNotFound => {
                "Compare attempt id, workspace and the address of the service; if all are right, \
                 it was never accepted (PlaceCall), or is forgotten since store.id_retention."
            }
            Self::AttemptNotInReview => "Look at the attempt: it is settled, or not yet open.",
            Self::AttemptRang => "Say that it was answered, or that it rang unanswered.",
            Self::RoomNotFound => "Nothing: there is no such room, or it is gone already.",
            Self::RoomNotOurs => "Leave it to whoever made it, or delete it in LiveKit itself.",
            Self::RoomOwned => "Cancel the attempt; its room goes with it.",
            Self::RoomLegLives => "Wait for the call's end, or force it and hang up on somebody.",
            Self::PlatformUnavailable => {
                "Mend what is said of LiveKit, and ask again; GetStatus (ringonce status) says how \
                 it stands."
            }
            Self::QueueFull | Self::Draining | Self::StoreUnavailable => {
                "Send the same again after a moment."
            }
            Self::WatchesFull => "Share one watch among readers, or come again later.",
            Self::WatchLagged => "List the attempts, then watch from now on, and read faster.",
            Self::CursorTooOld => "Watch with a snapshot instead of the cursor.",
            Self::DeadlineExceeded => "Send the same id again, or ask GetAttempt.",
            Self::DecisionUnknown => "Send the same id again.",
            Self::Internal => "Send the same id again, and report it if it stays.",
        }
    }

    /// The reason of a name, for whoever reads a status.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// A status with this reason.
    pub(super) fn status(self, message: impl Into<String>) -> Status {
        self.with(message, [], |_| {})
    }

    /// A status with this reason, metadata and more details.
    pub(super) fn with<const N: usize>(
        self,
        message: impl Into<String>,
        metadata: [(&'static str, String); N],
        more: impl FnOnce(&mut ErrorDetails),
    ) -> Status {
        let metadata: HashMap<String, String> = metadata
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let mut details = ErrorDetails::with_error_info(self.name(), DOMAIN, metadata);
        more(&mut details);
        Status::with_error_details(self.code(), message, details)
    }
}

/// Every violation at once.
pub(super) fn invalid(violations: &Violations) -> Status {
    let sentences: Vec<String> = violations
        .list()
        .iter()
        .map(|v| format!("{} {}", v.field, v.description))
        .collect();
    Reason::InvalidFields.with(sentences.join("; "), [], |details| {
        for violation in violations.list() {
            details.add_bad_request_violation(&violation.field, &violation.description);
        }
    })
}

/// Of a request or a cancel that was not decided. The store's own words and the faults are
/// for the operator, so they go to the log and not to the caller.
pub(super) fn of_place(error: &PlaceError, retry_after: Duration) -> Status {
    let message = error.to_string();
    let retry = |details: &mut ErrorDetails| {
        details.set_retry_info(Some(retry_after));
    };
    match error {
        PlaceError::IdReused { fields } => {
            Reason::AttemptIdReused.with(message, [("fields", fields.join(","))], |_| {})
        }
        PlaceError::QueueFull { limit } => {
            Reason::QueueFull.with(&*message, [("limit", limit.to_string())], |details| {
                retry(details);
                details.add_quota_failure_violation("workspace", &*message);
            })
        }
        PlaceError::Draining => Reason::Draining.with(message, [], retry),
        PlaceError::Unavailable(why) => {
            tracing::warn!(why, "the store is not available; a caller was turned away");
            Reason::StoreUnavailable.with(
                "the store is not available; nothing was decided",
                [],
                retry,
            )
        }
        // The store itself says in the log that its disk fills, once.
        PlaceError::NoRoom => Reason::StoreUnavailable.with(message, [], retry),
        PlaceError::DecisionUnknown => Reason::DecisionUnknown.status(message),
        PlaceError::Fault(fault) => {
            tracing::error!(fault, "a request could not be decided");
            Reason::Internal.status("an internal fault")
        }
    }
}

/// Of a read. A log that is too short is the caller's old cursor here.
pub(super) fn of_read(error: &ReadError, retry_after: Duration) -> Status {
    let message = error.to_string();
    match error {
        ReadError::StoreUnavailable => Reason::StoreUnavailable.with(message, [], |details| {
            details.set_retry_info(Some(retry_after));
        }),
        ReadError::TooOld { .. } => Reason::CursorTooOld.status(message),
        ReadError::Internal => Reason::Internal.status(message),
    }
}

/// Of rooms that could not be looked at; `health` is LiveKit's.
pub(super) fn of_look(error: LookError, health: &Health, retry_after: Duration) -> Status {
    match error {
        LookError::Ledger(error) => of_read(&ReadError::from(error), retry_after),
        LookError::Platform => platform(&error.to_string(), health, retry_after),
    }
}

/// Of a room that was not deleted; `health` is LiveKit's.
pub(super) fn of_not_deleted(error: NotDeleted, health: &Health, retry_after: Duration) -> Status {
    let message = error.to_string();
    match error {
        NotDeleted::Ledger(error) => of_read(&ReadError::from(error), retry_after),
        NotDeleted::Platform => platform(&message, health, retry_after),
        NotDeleted::NotFound => Reason::RoomNotFound.status(message),
        NotDeleted::NoNameOfOurs | NotDeleted::NotOurs => Reason::RoomNotOurs.status(message),
        NotDeleted::Owned { attempt, state } => {
            let metadata = [
                ("attempt_id", attempt.to_string()),
                ("state", state.name().to_uppercase()),
            ];
            Reason::RoomOwned.with(message, metadata, |_| {})
        }
        NotDeleted::LegLives => Reason::RoomLegLives.status(message),
    }
}

/// Of a review that nobody could settle.
pub(super) fn of_not_resolved(error: NotResolved, retry_after: Duration) -> Status {
    let message = error.to_string();
    match error {
        NotResolved::Ledger(error) if error.may_have_been_decided() => {
            Reason::DecisionUnknown.status("whether it was resolved is not known")
        }
        NotResolved::Ledger(error) => of_read(&ReadError::from(error), retry_after),
        NotResolved::NotFound => not_found(),
        NotResolved::NotInReview(state) => {
            let metadata = [("state", state.name().to_uppercase())];
            Reason::AttemptNotInReview.with(message, metadata, |_| {})
        }
        NotResolved::Rang => Reason::AttemptRang.status(message),
    }
}

/// While every request to LiveKit fails, the last one of them says why: a key that it refuses
/// is no matter of the network.
fn platform(message: &str, health: &Health, retry_after: Duration) -> Status {
    let message = match convert::trouble(health) {
        Some(trouble) => format!("{message}: {trouble}"),
        // It answers other requests.
        None => message.to_owned(),
    };
    Reason::PlatformUnavailable.with(message, [], |details| {
        details.set_retry_info(Some(retry_after));
    })
}

/// Of a deletion whose task ended without an answer.
pub(super) fn unknown(what: &str) -> Status {
    Reason::Internal.status(format!("{what} ended without an answer; ask again"))
}

/// Of a watch that is one too many.
pub(super) fn watches_full(limit: usize, retry_after: Duration) -> Status {
    let message = format!("this process has {limit} watches open, as many as it may");
    Reason::WatchesFull.with(&*message, [("limit", limit.to_string())], |details| {
        details.set_retry_info(Some(retry_after));
        details.add_quota_failure_violation("process", &*message);
    })
}

/// Of an attempt that is not there.
pub(super) fn not_found() -> Status {
    Reason::AttemptNotFound.status(NOT_FOUND)
}

/// What an attempt that is not there may come of, and what to do: not every client shows details.
const NOT_FOUND: &str = "no such attempt in this workspace: the attempt id or the workspace is \
    another one, or this is another deployment's service; it was never accepted (PlaceCall); or it \
    ended so long ago that it is forgotten (store.id_retention). ListAttempts shows what there is";

/// Of a deadline that passed before there was an answer.
pub(super) fn deadline_exceeded() -> Status {
    Reason::DeadlineExceeded.status(
        "the deadline passed before there was an answer; whether it was decided is not known, send the same id again",
    )
}

/// Gives a reason to the errors that the codec answers by itself, which have none: a message
/// over the limit is `OUT_OF_RANGE` there and one that cannot be decoded INTERNAL, and both are
/// the caller's to mend.
pub(super) fn of_codec(status: &Status) -> Option<Status> {
    if !status.details().is_empty() {
        return None;
    }
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        Code::OutOfRange if says("message length too large") => {
            Some(Reason::MessageTooLarge.status(status.message()))
        }
        Code::Internal if says("decode Protobuf") => {
            Some(Reason::MalformedMessage.status("the message cannot be decoded"))
        }
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => None,
    }
}

#[cfg(test)]
mod tests;
