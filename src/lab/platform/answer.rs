//! Answers and refusals as Twirp writes them: an answer in the request's own format, an
//! error always as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::encode::Shown;
use super::message::Response;

/// What comes before a message that crossed the platform's inner RPC: seen on
/// livekit-server 1.13.5, absent where the server itself refuses.
const INNER: &str = "twirp error unknown: ";

/// The format of a request, and so of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Protobuf,
}

impl Format {
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        match kind {
            "application/json" => Some(Self::Json),
            "application/protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// Reads a request's message.
    pub(super) fn read<M>(self, body: &[u8]) -> Result<M, Refusal>
    where
        M: Message + Default + DeserializeOwned,
    {
        match self {
            Self::Json => serde_json::from_slice(body).map_err(|_| {
                Refusal::own(
                    Code::Malformed,
                    "the json request could not be decoded".to_owned(),
                )
            }),
            Self::Protobuf => M::decode(body).map_err(|_| {
                Refusal::own(
                    Code::Malformed,
                    "the protobuf request could not be decoded".to_owned(),
                )
            }),
        }
    }

    /// Writes an answer.
    pub(super) fn write<M: Message + Shown>(self, message: &M) -> Answer {
        match self {
            Self::Json => Answer {
                status: 200,
                content_type: "application/json",
                body: message.shown().to_string().into_bytes(),
            },
            Self::Protobuf => Answer {
                status: 200,
                content_type: "application/protobuf",
                body: message.encode_to_vec(),
            },
        }
    }
}

/// A response without its date.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: text.as_bytes().to_vec(),
        }
    }

    pub(super) fn at(self, wall_micros: i64) -> Response {
        Response {
            status: self.status,
            content_type: self.content_type,
            body: self.body,
            date: wall_micros.div_euclid(1_000_000),
        }
    }
}

/// The codes of Twirp that LiveKit answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Canceled,
    Unknown,
    InvalidArgument,
    Malformed,
    DeadlineExceeded,
    NotFound,
    BadRoute,
    PermissionDenied,
    Unauthenticated,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    Internal,
    Unavailable,
}

impl Code {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::Unknown => "unknown",
            Self::InvalidArgument => "invalid_argument",
            Self::Malformed => "malformed",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::NotFound => "not_found",
            Self::BadRoute => "bad_route",
            Self::PermissionDenied => "permission_denied",
            Self::Unauthenticated => "unauthenticated",
            Self::ResourceExhausted => "resource_exhausted",
            Self::FailedPrecondition => "failed_precondition",
            Self::Aborted => "aborted",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
        }
    }

    /// The HTTP status, as `twirp/errors.go` maps it.
    pub(super) fn http(self) -> u16 {
        match self {
            Self::InvalidArgument | Self::Malformed => 400,
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::NotFound | Self::BadRoute => 404,
            Self::Canceled | Self::DeadlineExceeded => 408,
            Self::Aborted => 409,
            Self::FailedPrecondition => 412,
            Self::ResourceExhausted => 429,
            Self::Unknown | Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }
}

/// An error as Twirp writes it.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) msg: String,
    pub(super) meta: BTreeMap<&'static str, String>,
    /// How long the platform takes to find out.
    pub(super) after: Duration,
}

impl Refusal {
    /// By the server itself: the message stands alone.
    pub(super) fn own(code: Code, msg: String) -> Self {
        Self {
            code,
            msg,
            meta: BTreeMap::new(),
            after: Duration::ZERO,
        }
    }

    /// By a node or the bridge, through the inner RPC: the message has its prefix.
    pub(super) fn inner(code: Code, msg: &str) -> Self {
        Self::own(code, format!("{INNER}{msg}"))
    }

    /// A token without the grant: 401, never 403.
    pub(super) fn no_grant() -> Self {
        Self::own(Code::Unauthenticated, "permissions denied".to_owned())
    }

    /// Nobody claimed the request.
    pub(super) fn no_response() -> Self {
        Self::inner(Code::Unavailable, "no response from servers")
    }

    pub(super) fn with(mut self, key: &'static str, value: String) -> Self {
        self.meta.insert(key, value);
        self
    }

    pub(super) fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    pub(super) fn answer(&self) -> Answer {
        error(self.code.http(), self.code.name(), &self.msg, &self.meta)
    }
}

/// An error body with any status, code and message: for faults.
pub(super) fn error(
    status: u16,
    code: &str,
    msg: &str,
    meta: &BTreeMap<&'static str, String>,
) -> Answer {
    let mut body = json!({"code": code, "msg": msg});
    if !meta.is_empty() {
        body["meta"] = json!(meta);
    }
    Answer {
        status,
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    }
}
