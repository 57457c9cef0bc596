//! What became of a request to the platform, for every method but the dial.
//!
//! The first question is always the same: was it certainly not done, or may it have
//! been done? The types keep the two apart. For the dial, see [`super::classify`].

use prost::Message;

use super::wire::{Answer, Lost, NotSent, Refusal};
use crate::model::verdict::TryFailure;

/// A request's end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Call<T> {
    /// Done, with its result.
    Done(T),
    /// Certainly not done.
    Refused(Refused),
    /// It may have been done.
    Unclear(Doubt),
}

/// Why it was certainly not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It never left.
    NotSent(NotSent),
    /// 401: the key, the secret or the clock.
    Credentials,
    /// The platform rejects it, with its HTTP status: 400, 404, 413 and the like.
    Rejected(u16),
    /// The platform has no node for it.
    NoCapacity,
}

/// Why it is not known whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No whole answer came.
    Lost(Lost),
    /// An answer that is not the platform's, with its HTTP status.
    Strange(u16),
    /// The platform failed on the way, with its HTTP status: 408 and 5xx.
    Failed(u16),
    /// 200, and the body is not the message that belongs there.
    Unreadable,
}

impl Refused {
    /// What it makes of a try.
    #[must_use]
    pub const fn failure(self) -> TryFailure {
        match self {
            Self::NotSent(NotSent::NoConnection) => TryFailure::PlatformUnreachable,
            Self::NotSent(NotSent::TooLate) => TryFailure::TooLate,
            Self::NotSent(NotSent::Malformed) | Self::Rejected(_) => TryFailure::RequestRejected,
            Self::Credentials => TryFailure::CredentialsRefused,
            Self::NoCapacity => TryFailure::PlatformOverloaded,
        }
    }

    /// What a Twirp error proves, for a method other than the dial.
    fn by_twirp(refusal: &Refusal) -> Result<Self, Doubt> {
        match refusal.status {
            401 => Ok(Self::Credentials),
            // A deadline or a cancellation says nothing about what was done before it.
            408 => Err(Doubt::Failed(408)),
            // There is no such service: what answers is another server, or a proxy before none.
            404 if refusal.code == "bad_route" => Ok(Self::NotSent(NotSent::NoConnection)),
            400..=499 => Ok(Self::Rejected(refusal.status)),
            // Seen on livekit-server 1.13.5 for some seconds after its Redis was emptied; it is
            // raised while the node is chosen, before anything is made.
            500 if refusal.msg.contains("could not find any available nodes") => {
                Ok(Self::NoCapacity)
            }
            status => Err(Doubt::Failed(status)),
        }
    }
}

impl<T> Call<T> {
    /// The same end with another result.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Call<U> {
        match self {
            Self::Done(result) => Call::Done(with(result)),
            Self::Refused(why) => Call::Refused(why),
            Self::Unclear(why) => Call::Unclear(why),
        }
    }

    /// The result, if it was done.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(result) => Some(result),
            Self::Refused(_) | Self::Unclear(_) => None,
        }
    }
}

impl<M: Message + Default> Call<M> {
    /// Reads an answer.
    pub(super) fn read(answer: &Answer) -> Self {
        match answer {
            Answer::NotSent(why) => Self::Refused(Refused::NotSent(*why)),
            Answer::Done(body) => match M::decode(body.as_slice()) {
                Ok(message) => Self::Done(message),
                Err(_) => Self::Unclear(Doubt::Unreadable),
            },
            Answer::Refused(refusal) => match Refused::by_twirp(refusal) {
                Ok(why) => Self::Refused(why),
                Err(why) => Self::Unclear(why),
            },
            // LiveKit's own 401 and 413 may be plain text; whoever sent them, the request did
            // not reach a handler.
            Answer::Strange(401) => Self::Refused(Refused::Credentials),
            Answer::Strange(413) => Self::Refused(Refused::Rejected(413)),
            // LiveKit has all that is asked for: another server answers at its address.
            Answer::Strange(404) => Self::Refused(Refused::NotSent(NotSent::NoConnection)),
            Answer::Strange(status) => Self::Unclear(Doubt::Strange(*status)),
            Answer::Lost(why) => Self::Unclear(Doubt::Lost(*why)),
        }
    }
}

/// Whether LiveKit itself says that what was asked for is not there.
pub(super) fn not_found(answer: &Answer) -> bool {
    match answer {
        Answer::Refused(refusal) => refusal.status == 404 && refusal.code == "not_found",
        Answer::NotSent(_) | Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

/// Whether LiveKit says that no node answered for a room.
pub(super) fn no_response(answer: &Answer) -> bool {
    match answer {
        Answer::Refused(refusal) => {
            refusal.status == 503 && refusal.msg.contains("no response from servers")
        }
        Answer::NotSent(_) | Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use livekit_protocol::Room;

    use super::*;

    fn read(answer: &Answer) -> Call<Room> {
        Call::read(answer)
    }

    fn twirp(status: u16, msg: &str) -> Answer {
        Answer::Refused(Refusal {
            status,
            msg: msg.to_owned(),
            ..Refusal::default()
        })
    }

    #[test]
    fn what_may_have_been_done_is_never_called_refused() {
        for answer in [
            Answer::Lost(Lost::Timeout),
            Answer::Strange(200),
            Answer::Strange(302),
            Answer::Strange(429),
            Answer::Strange(502),
            Answer::Done(vec![0xff]),
            twirp(408, "request timed out"),
            twirp(500, "redis"),
            twirp(503, "no response from servers"),
        ] {
            assert!(matches!(read(&answer), Call::Unclear(_)), "{answer:?}");
        }
    }

    #[test]
    fn what_was_certainly_not_done_is_refused() {
        for (answer, failure) in [
            (
                Answer::NotSent(NotSent::NoConnection),
                TryFailure::PlatformUnreachable,
            ),
            (Answer::Strange(401), TryFailure::CredentialsRefused),
            (Answer::Strange(404), TryFailure::PlatformUnreachable),
            (Answer::Strange(413), TryFailure::RequestRejected),
            (twirp(400, ""), TryFailure::RequestRejected),
            (
                twirp(500, "could not find any available nodes"),
                TryFailure::PlatformOverloaded,
            ),
        ] {
            let Call::Refused(why) = read(&answer) else {
                panic!("{answer:?} is not refused");
            };
            assert_eq!(why.failure(), failure);
        }
    }
}
