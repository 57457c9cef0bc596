//! The seam: one Twirp request goes out, one of five answers comes back.
//!
//! Everything above it ([`super::classify`], the client) is the same in a process, in
//! tests and in simulation; below it are HTTP ([`super::http`]) or a machine without I/O.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::model::time::Time;

/// A Twirp method that is used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// `RoomService.CreateRoom`.
    CreateRoom,
    /// `RoomService.DeleteRoom`.
    DeleteRoom,
    /// `RoomService.ListRooms`.
    ListRooms,
    /// `RoomService.GetParticipant`.
    GetParticipant,
    /// `RoomService.ListParticipants`.
    ListParticipants,
    /// `AgentDispatchService.CreateDispatch`.
    CreateDispatch,
    /// `AgentDispatchService.ListDispatch`.
    ListDispatch,
    /// `SIP.ListSIPOutboundTrunk`.
    ListTrunks,
    /// `SIP.CreateSIPParticipant`: the dial.
    Dial,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 9] = [
        Self::CreateRoom,
        Self::DeleteRoom,
        Self::ListRooms,
        Self::GetParticipant,
        Self::ListParticipants,
        Self::CreateDispatch,
        Self::ListDispatch,
        Self::ListTrunks,
        Self::Dial,
    ];

    /// The path below the platform's address.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::CreateRoom => "/twirp/livekit.RoomService/CreateRoom",
            Self::DeleteRoom => "/twirp/livekit.RoomService/DeleteRoom",
            Self::ListRooms => "/twirp/livekit.RoomService/ListRooms",
            Self::GetParticipant => "/twirp/livekit.RoomService/GetParticipant",
            Self::ListParticipants => "/twirp/livekit.RoomService/ListParticipants",
            Self::CreateDispatch => "/twirp/livekit.AgentDispatchService/CreateDispatch",
            Self::ListDispatch => "/twirp/livekit.AgentDispatchService/ListDispatch",
            Self::ListTrunks => "/twirp/livekit.SIP/ListSIPOutboundTrunk",
            Self::Dial => "/twirp/livekit.SIP/CreateSIPParticipant",
        }
    }

    /// Its name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateRoom => "CreateRoom",
            Self::DeleteRoom => "DeleteRoom",
            Self::ListRooms => "ListRooms",
            Self::GetParticipant => "GetParticipant",
            Self::ListParticipants => "ListParticipants",
            Self::CreateDispatch => "CreateDispatch",
            Self::ListDispatch => "ListDispatch",
            Self::ListTrunks => "ListSIPOutboundTrunk",
            Self::Dial => "CreateSIPParticipant",
        }
    }
}

/// The longest name of a Twirp error is `failed_precondition`.
const CODE_MAX: usize = 32;

/// One request.
pub struct Request {
    /// What is asked.
    pub method: Method,
    /// The access token, a JWT.
    pub token: SecretString,
    /// The protobuf body.
    pub body: Vec<u8>,
    /// How long we wait for the whole answer.
    pub timeout: Duration,
    /// The deadline that the server shall keep (`X-Twirp-Timeout-Ms`), if we set one.
    pub server_deadline: Option<Duration>,
}

// The body has the callee's number in it, so it is not shown.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The `Date` of the answer: the platform's wall clock, to the second.
    pub date: Option<Time>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

/// The five things that can become of a request.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// No TCP or TLS connection stood, so no byte of it left.
    NotSent(NotSent),
    /// 200 with a protobuf body.
    Done(Vec<u8>),
    /// A Twirp error.
    Refused(Refusal),
    /// Anything else with a status: a proxy's page, plain text, another 2xx. The body is
    /// dropped: LiveKit's 401 echoes the token in it.
    Strange(u16),
    /// From the first byte on, whatever else: a reset, a timeout, half an answer.
    Lost(Lost),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "NotSent({why:?})"),
            Self::Done(body) => write!(f, "Done({} bytes)", body.len()),
            Self::Refused(refusal) => write!(f, "Refused({} {})", refusal.status, refusal.code),
            Self::Strange(status) => write!(f, "Strange({status})"),
            Self::Lost(why) => write!(f, "Lost({why:?})"),
        }
    }
}

impl Answer {
    /// What became of a dial, as one sentence for its history. Nothing that a platform wrote is
    /// in it but the name of its error.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::NotSent(NotSent::NoConnection) => {
                "the dial was not sent, as no connection to LiveKit stood".to_owned()
            }
            Self::NotSent(NotSent::Malformed) => {
                "the dial was not sent, as its request could not be built".to_owned()
            }
            Self::NotSent(NotSent::TooLate) => {
                "the dial was not sent, as its time had passed".to_owned()
            }
            Self::Done(_) => "LiveKit answered that the call was answered".to_owned(),
            Self::Refused(refusal) => refusal.told(),
            Self::Strange(status) => format!(
                "HTTP {status} was answered, by LiveKit or by something before it, and not as \
                 LiveKit answers a dial"
            ),
            Self::Lost(Lost::Timeout) => "no answer came to the dial in time".to_owned(),
            Self::Lost(Lost::Broken) => {
                "the connection broke before an answer to the dial came".to_owned()
            }
            Self::Lost(Lost::Unreadable) => "the answer to the dial could not be read".to_owned(),
        }
    }
}

/// Why nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// The address could not be resolved, nobody listens, or TLS failed.
    NoConnection,
    /// The request could not be built.
    Malformed,
    /// Its time had passed before it was sent.
    TooLate,
}

/// How an answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Our own timeout passed.
    Timeout,
    /// The connection broke.
    Broken,
    /// The answer was larger than allowed or could not be read.
    Unreadable,
}

/// A Twirp error: `{"code", "msg", "meta"}` (the Twirp specification, version 7).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The Twirp code, as `not_found`.
    pub code: String,
    /// The message. It may name hosts and numbers: it is matched and never logged.
    pub msg: String,
    /// The SIP status code of `meta.sip_status_code`, if there is one; 0 if it is there and
    /// is no number of 16 bits, so that a broken status is not taken for none.
    pub sip_code: Option<u16>,
    /// The reason phrase of `meta.sip_status`.
    pub sip_phrase: String,
}

impl Refusal {
    fn told(&self) -> String {
        let status = self.status;
        let code: String = (self.code.chars())
            .filter(|c| c.is_ascii_lowercase() || *c == '_')
            .take(CODE_MAX)
            .collect();
        let error = format!("LiveKit answered the dial with an error (HTTP {status} {code}");
        match self.sip_code {
            Some(sip) if sip > 0 => format!("{error}, SIP {sip} from the carrier)"),
            Some(_) => format!("{error}, with a SIP status that cannot be read)"),
            None => format!("{error})"),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("code", &self.code)
            .field("sip_code", &self.sip_code)
            .finish_non_exhaustive()
    }
}

/// Sends one request, once.
#[async_trait]
pub trait Wire: fmt::Debug + Send + Sync {
    /// Sends `request` once, over no connection that may re-send it, and says what became
    /// of it. It never repeats it and never follows a redirect.
    async fn send(&self, request: Request) -> Reply;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_dial_is_told_in_words_without_the_platforms_own() {
        let canceled = Answer::Refused(Refusal {
            status: 408,
            code: "canceled".to_owned(),
            msg: "no answer of +12025550186".to_owned(),
            ..Refusal::default()
        });
        assert_eq!(
            canceled.told(),
            "LiveKit answered the dial with an error (HTTP 408 canceled)"
        );
        let busy = Answer::Refused(Refusal {
            status: 429,
            code: "resource_exhausted".to_owned(),
            sip_code: Some(486),
            sip_phrase: "+12025550186 is busy".to_owned(),
            ..Refusal::default()
        });
        assert_eq!(
            busy.told(),
            "LiveKit answered the dial with an error (HTTP 429 resource_exhausted, SIP 486 from \
             the carrier)"
        );
        let strange = Answer::Refused(Refusal {
            code: "call +12025550186 later".to_owned(),
            ..Refusal::default()
        });
        assert!(!strange.told().contains("202"), "{}", strange.told());
        assert_eq!(
            Answer::Lost(Lost::Timeout).told(),
            "no answer came to the dial in time"
        );
    }
}
