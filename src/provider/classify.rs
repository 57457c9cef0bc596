//! What the answer to a dial proves: one table.
//!
//! | answer | proves |
//! |---|---|
//! | a SIP status 300–699 in the meta | [`NotConnected`], named by [`of_sip`], whatever the Twirp code |
//! | 200 with both ids | answered |
//! | not sent; 401, 404, 413; Twirp 400; 412 "no numbers"; 503 of three texts; 500 of two | no SIP call was started |
//! | 400 or 412 that tells of a dial error or a name that does not resolve | the trunk is unreachable |
//! | 408 `canceled` "sip request timed out" | the stop's end, or it rang out; else uncertain |
//! | 408 `canceled` of two other texts | the platform stopped; the carrier was silent |
//! | 412 of authentication, of media | the trunk's credentials; no common codec |
//! | anything else | uncertain |
//!
//! The texts were read in `livekit-server`, `livekit-sip` and `psrpc`, and recorded from
//! livekit-server 1.13.5 with livekit-sip 1.11.0. LiveKit puts "twirp error unknown: " before
//! some of them, so a text is looked for inside the message. A text that is not known here
//! proves nothing.

use std::time::Duration;

use livekit_protocol as proto;
use prost::Message;

use super::wire::{Answer, NotSent, Refusal};
use crate::model::disposition::{Disposition, of_sip};
use crate::model::verdict::{After, Leg, NotConnected, SipStatus, TryFailure, Unclear, Verdict};
use crate::model::written;
use crate::runtime::mutant::{self, Mutant};

/// The longest reason phrase that is kept, in characters.
const PHRASE_MAX: usize = 128;

/// What one must know beside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialContext {
    /// Monotonic time from the send to the answer.
    pub elapsed: Duration,
    /// The ringing timeout that the platform was given.
    pub ringing_timeout: Duration,
    /// How much later than the ringing timeout the platform's answer may come: joining the
    /// room, digits and the network add to it. 8 s by default.
    pub ring_slack: Duration,
    /// A 480 that comes sooner than this is no person's doing but the carrier's lack of a
    /// channel. 1 s by default.
    pub fast_reject: Duration,
    /// Whether a stop of ours was recorded before the answer.
    pub stop_recorded: bool,
}

/// What the answer to a dial proves.
#[must_use]
pub fn verdict(answer: &Answer, dial: &DialContext) -> Verdict {
    match answer {
        Answer::NotSent(NotSent::NoConnection) => {
            Verdict::NotDialed(TryFailure::PlatformUnreachable)
        }
        Answer::NotSent(NotSent::Malformed) => Verdict::NotDialed(TryFailure::RequestRejected),
        Answer::NotSent(NotSent::TooLate) => Verdict::NotDialed(TryFailure::TooLate),
        Answer::Done(body) => answered(body),
        Answer::Refused(refusal) => refused(refusal, dial),
        // LiveKit's own 401 and 413 are plain text.
        Answer::Strange(status) => match *status {
            401 => Verdict::NotDialed(TryFailure::CredentialsRefused),
            413 => Verdict::NotDialed(TryFailure::RequestRejected),
            // LiveKit has the method: another server answers at its address.
            404 => Verdict::NotDialed(TryFailure::PlatformUnreachable),
            status => Verdict::Uncertain(Unclear::Strange(status)),
        },
        Answer::Lost(_) => Verdict::Uncertain(Unclear::NoAnswer),
    }
}

/// Whether the dial found its trunk missing: `not_found` without SIP meta, and one of two known
/// texts. Other 404s, a wrong number above all, are no reason to list trunks.
#[must_use]
pub fn trunk_missing(answer: &Answer) -> bool {
    match answer {
        Answer::Refused(refusal) if mutant::is(Mutant::HealAnyNotFound) => refusal.status == 404,
        Answer::Refused(refusal) => is_trunk_missing(refusal),
        Answer::NotSent(_) | Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

fn is_trunk_missing(refusal: &Refusal) -> bool {
    refusal.status == 404
        && refusal.code == "not_found"
        && !has_sip_meta(refusal)
        // The second text is LiveKit Cloud's of 2025.
        && contains(refusal, &["requested sip trunk does not exist", "object cannot be found"])
}

fn has_sip_meta(refusal: &Refusal) -> bool {
    refusal.sip_code.is_some() || !refusal.sip_phrase.is_empty()
}

/// Whether a dial found the platform without capacity: a sign to dial more slowly.
#[must_use]
pub fn overloaded(answer: &Answer) -> bool {
    match answer {
        Answer::Refused(refusal) => refusal.status == 503 && contains(refusal, NO_CAPACITY),
        Answer::NotSent(_) | Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

/// Whether the dial says that somebody answered.
#[must_use]
pub fn is_answer(answer: &Answer) -> bool {
    match answer {
        Answer::Done(_) => true,
        Answer::Refused(_) | Answer::NotSent(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

/// Whether the dial's leg was put out of its room, as far as its answer tells: by the ringing
/// timeout, by a deletion, or by somebody else. Whether it had been answered by then it does
/// not tell.
#[must_use]
pub fn put_out(answer: &Answer) -> bool {
    match answer {
        Answer::Refused(refusal) => {
            (refusal.status, refusal.code.as_str()) == (408, "canceled") && timed_out(refusal)
        }
        Answer::NotSent(_) | Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) => false,
    }
}

fn timed_out(refusal: &Refusal) -> bool {
    contains(refusal, &["sip request timed out"])
}

fn answered(body: &[u8]) -> Verdict {
    match proto::SipParticipantInfo::decode(body) {
        Ok(info) if !info.sip_call_id.is_empty() && !info.participant_id.is_empty() => {
            Verdict::Answered(Leg {
                call: info.sip_call_id,
                participant: info.participant_id,
            })
        }
        Ok(_) | Err(_) => Verdict::Uncertain(Unclear::NoIds),
    }
}

/// 503: no SIP bridge took the dial, so no INVITE left; also so under load (298 of 1,040 dials
/// were taken, and 298 INVITEs counted at the callee).
const NO_CAPACITY: &[&str] = &[
    "no response from servers",
    "no servers available",
    "cpu exhausted",
];

/// The trunk's host: its name does not resolve, or nobody listens. The bridge has answered, so
/// its call is over; but the same texts can come of the ACK after an answer.
const UNREACHABLE: &[&str] = &[
    "dial err",
    "connection refused",
    "lookup",
    "no such host",
    "resolve",
];

/// The carrier asked for credentials that the trunk has not, or did not accept them.
const AUTH: &[&str] = &[
    "sip server required auth",
    "max auth retry attempts reached",
    "no auth header in sip invite response",
];

/// The callee's side answered, and no codec or encryption was common.
const MEDIA: &[&str] = &[
    "common audio codec not found",
    "common video codec not found",
    "no common encryption",
    "sdp",
];

fn refused(refusal: &Refusal, dial: &DialContext) -> Verdict {
    if let Some(code) = refusal.sip_code
        && (300..=699).contains(&code)
    {
        return by_carrier(code, &refusal.sip_phrase, dial);
    }
    let unclear = Verdict::Uncertain(Unclear::Twirp(refusal.status));
    // A status that is none says that SIP was spoken, and not how it ended.
    if has_sip_meta(refusal) {
        return unclear;
    }
    let has = |texts: &[&str]| contains(refusal, texts);
    match (refusal.status, refusal.code.as_str()) {
        (401, _) => Verdict::NotDialed(TryFailure::CredentialsRefused),
        (404, _) if is_trunk_missing(refusal) => Verdict::NotDialed(TryFailure::TrunkNotFound),
        (404, "bad_route") => Verdict::NotDialed(TryFailure::PlatformUnreachable),
        (404 | 413, _) => Verdict::NotDialed(TryFailure::RequestRejected),
        (400 | 412, _) if has(UNREACHABLE) => ended(Disposition::TrunkUnreachable, After::Silent),
        (400, "invalid_argument" | "malformed" | "out_of_range") => {
            Verdict::NotDialed(TryFailure::RequestRejected)
        }
        (412, "failed_precondition") if has(&["no numbers"]) => {
            Verdict::NotDialed(TryFailure::TrunkNoNumber)
        }
        (412, "failed_precondition") if has(AUTH) => ended(Disposition::TrunkAuth, After::Over),
        (412, "failed_precondition") if has(MEDIA) => {
            ended(Disposition::MediaMismatch, After::Over)
        }
        (503, "unavailable") if has(NO_CAPACITY) => {
            Verdict::NotDialed(TryFailure::PlatformOverloaded)
        }
        (500, _) if has(&["update room failed"]) => Verdict::NotDialed(TryFailure::RoomFailed),
        (500, _) if has(&["sip not connected"]) => {
            Verdict::NotDialed(TryFailure::PlatformUnreachable)
        }
        (408, "canceled") => canceled(refusal, dial),
        (408, "deadline_exceeded") => Verdict::Uncertain(Unclear::DeadlineExceeded),
        _ => unclear,
    }
}

/// 408 `canceled`: the bridge gave the call up. The same text is said of the ringing timeout,
/// of a deleted room, a removed participant and a second dial with the same identity; only the
/// moment and our own stop tell them apart.
fn canceled(refusal: &Refusal, dial: &DialContext) -> Verdict {
    if timed_out(refusal) {
        let rung_out = (dial.ringing_timeout
            ..=dial.ringing_timeout.saturating_add(dial.ring_slack))
            .contains(&dial.elapsed);
        if dial.stop_recorded {
            return ended(Disposition::Canceled, After::Canceled);
        }
        if rung_out {
            return ended(Disposition::NoAnswer, After::Canceled);
        }
    } else if contains(refusal, &["service shutting down"]) {
        return ended(Disposition::PlatformStopped, After::Canceled);
    } else if contains(refusal, &["transaction failed to complete"]) {
        // The carrier never answered the INVITE, so there was nothing to cancel, and the phone
        // may ring all the same.
        return ended(Disposition::NoAnswer, After::Silent);
    }
    // "context canceled" and "context deadline exceeded": torn down as it was being answered.
    Verdict::Uncertain(Unclear::TornDown)
}

fn ended(disposition: Disposition, after: After) -> Verdict {
    Verdict::NotConnected(NotConnected {
        disposition,
        sip: None,
        after,
    })
}

fn by_carrier(code: u16, phrase: &str, dial: &DialContext) -> Verdict {
    let disposition = match code {
        480 if dial.elapsed < dial.fast_reject => Disposition::CarrierCapacity,
        code => of_sip(code, phrase),
    };
    Verdict::NotConnected(NotConnected {
        disposition,
        sip: Some(SipStatus {
            code,
            phrase: kept(phrase),
        }),
        after: After::Over,
    })
}

/// A carrier's phrase as it is kept: some carriers write the number into it.
fn kept(phrase: &str) -> String {
    let bare = written::is_address(phrase);
    let masked = written::replaced(phrase, bare, &|_| "(number)".to_owned());
    let phrase = masked.as_deref().unwrap_or(phrase);
    let clean = phrase.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(PHRASE_MAX).collect()
}

fn contains(refusal: &Refusal, texts: &[&str]) -> bool {
    texts.iter().any(|text| refusal.msg.contains(text))
}
