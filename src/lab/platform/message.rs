//! What goes into the machine and what comes out of it.

use std::fmt;

use super::hooks::Hook;

/// An HTTP request to a Twirp method. `Debug` shows the path alone: the rest holds a
/// token and a number.
#[derive(Clone, Default)]
pub struct Request {
    /// As `/twirp/livekit.SIP/CreateSIPParticipant`.
    pub path: String,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// `application/json` or `application/protobuf`.
    pub content_type: String,
    /// The `X-Twirp-Timeout-Ms` header: the server's deadline, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// An HTTP answer. `Debug` leaves the body out: a 401 echoes the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// The platform's wall clock, for the `Date` header: whole seconds since the Unix epoch.
    pub date: i64,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("date", &self.date)
            .finish_non_exhaustive()
    }
}

/// Names a request whose answer comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallTicket(pub(super) u64);

/// What [`Platform::handle`](super::Platform::handle) says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer.
    Now(Response),
    /// It comes out of [`Platform::due`](super::Platform::due): the phone rings, or the
    /// platform is slow.
    Later(CallTicket),
}

/// What became due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The answer to a request that waits.
    Answer(CallTicket, Response),
    /// The connection of a request that waits breaks, without an answer.
    Cut(CallTicket),
    /// An event to deliver; its fate is told by
    /// [`Platform::delivered`](super::Platform::delivered), or its room's queue stands still.
    Webhook(Hook),
}
