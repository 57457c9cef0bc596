//! The callees, scripted by the last two digits of the number, as payment providers
//! offer test cards.
//!
//! Served are the block reserved for fiction, `+1 202 555 01NN`, and for load
//! `+999 xxxxxxxx NN`, an unassigned country code. Any other number is answered by the
//! carrier with 404, so that nobody mistakes the sandbox for a carrier.

use super::carrier::SipStatus;

/// How long a callee who answered talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// [`Times::talk`](super::Times::talk), unless ended before.
    Long,
    /// [`Times::short_talk`](super::Times::short_talk).
    Short,
}

/// What becomes of the reply to the dial of a callee who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is sent.
    Answered,
    /// The connection breaks instead.
    Lost,
    /// The server's deadline passes first: 408, and the call is up.
    TooLate,
}

/// How the call goes once the INVITE has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Rings and answers.
    Answers { slow: bool, talk: Talk, told: Told },
    /// Rings, and nobody ever answers.
    Rings,
    /// Rings on, while the caller's connection breaks.
    RingsCut,
    /// The carrier says 100 and nothing more, or the trunk's host is dead.
    Trying,
    /// The carrier is silent until the bridge gives up.
    Silent,
    /// A final status, after it rang or without.
    Refuses { rings: bool, status: SipStatus },
    /// 401, and the trunk has no credentials.
    Challenged,
    /// Answered, and no codec in common.
    NoCodec,
    /// The trunk's host is unknown to DNS.
    Unresolved,
    /// The trunk's host refuses the connection.
    Unreachable,
}

/// One scripted callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callee {
    /// The last two digits of the number.
    pub digits: u8,
    /// What happens, in one sentence.
    pub sentence: &'static str,
    pub(super) script: Script,
}

const fn callee(digits: u8, script: Script, sentence: &'static str) -> Callee {
    Callee {
        digits,
        sentence,
        script,
    }
}

const fn answers(slow: bool, talk: Talk, told: Told) -> Script {
    Script::Answers { slow, talk, told }
}

const fn rejects(code: u16, phrase: &'static str) -> Script {
    Script::Refuses {
        rings: true,
        status: SipStatus { code, phrase },
    }
}

const fn fails(code: u16, phrase: &'static str) -> Script {
    Script::Refuses {
        rings: false,
        status: SipStatus { code, phrase },
    }
}

/// All scripts; digits that are not among them answer as 00 does.
const CALLEES: [Callee; 43] = [
    callee(
        0,
        answers(false, Talk::Long, Told::Answered),
        "rings, answers, talks for what --talk says (20 s by default) and hangs up",
    ),
    callee(
        1,
        answers(false, Talk::Short, Told::Answered),
        "rings, answers and hangs up soon",
    ),
    callee(
        2,
        fails(302, "Moved Temporarily"),
        "has moved: 302, which nobody follows",
    ),
    callee(3, rejects(603, "Decline"), "rings and declines: 603"),
    callee(4, fails(404, "Not Found"), "does not exist: 404"),
    callee(
        5,
        fails(480, "Temporarily Unavailable"),
        "is unavailable at once, without a ring: 480",
    ),
    callee(
        6,
        Script::Trying,
        "100 Trying and nothing more, until the ringing timeout",
    ),
    callee(7, fails(607, "Unwanted"), "does not want calls: 607"),
    callee(8, Script::Rings, "rings and never answers"),
    callee(
        9,
        fails(608, "Rejected"),
        "is rejected by a call screen: 608",
    ),
    callee(10, fails(410, "Gone"), "is gone: 410"),
    callee(
        11,
        answers(true, Talk::Long, Told::Answered),
        "rings 8 s, then answers and talks; never within a shorter ringing timeout",
    ),
    callee(
        12,
        Script::NoCodec,
        "rings and answers without a common codec: 412",
    ),
    callee(
        13,
        fails(603, "Network Blocked"),
        "is blocked by the network: 603 Network Blocked",
    ),
    callee(
        14,
        Script::Unresolved,
        "the trunk's host is unknown to DNS: 400 after 5.4 s, no INVITE",
    ),
    callee(
        15,
        Script::Unreachable,
        "the trunk's host refuses the connection: 412, no INVITE",
    ),
    callee(
        16,
        Script::Silent,
        "the carrier is silent until the transaction times out, 32.5 s, or the ringing timeout",
    ),
    callee(
        17,
        Script::Trying,
        "the trunk's host is dead: the same as 06 from outside",
    ),
    callee(
        18,
        fails(503, "CPS limit exceeded"),
        "the carrier has too many calls: 503 CPS limit exceeded",
    ),
    callee(
        40,
        fails(400, "Bad Request"),
        "a bad request, says the carrier: 400",
    ),
    callee(41, Script::Challenged, "the carrier wants credentials: 401"),
    callee(
        42,
        fails(402, "Payment Required"),
        "the carrier wants money: 402",
    ),
    callee(43, fails(403, "Forbidden"), "the carrier forbids it: 403"),
    callee(
        48,
        fails(408, "Request Timeout"),
        "the carrier reached nobody: 408",
    ),
    callee(50, fails(500, "Server Error"), "the carrier failed: 500"),
    callee(51, fails(501, "Not Implemented"), "the carrier cannot: 501"),
    callee(
        53,
        fails(503, "Service Unavailable"),
        "the carrier is out of service: 503",
    ),
    callee(
        54,
        fails(504, "Server Time-out"),
        "the carrier timed out: 504",
    ),
    callee(
        55,
        fails(555, "Push Notification Service Not Supported"),
        "a status outside the usual map: 555",
    ),
    callee(60, fails(600, "Busy Everywhere"), "is busy everywhere: 600"),
    callee(
        61,
        fails(604, "Does Not Exist Anywhere"),
        "exists nowhere: 604",
    ),
    callee(
        80,
        rejects(480, "Temporarily Unavailable"),
        "rings and is unavailable: 480",
    ),
    callee(
        84,
        fails(484, "Address Incomplete"),
        "the number is incomplete: 484",
    ),
    callee(85, fails(485, "Ambiguous"), "the number is ambiguous: 485"),
    callee(86, rejects(486, "Busy Here"), "rings and is busy: 486"),
    callee(
        87,
        rejects(487, "Request Terminated"),
        "rings, and the carrier terminates the request: 487",
    ),
    callee(
        88,
        fails(488, "Not Acceptable Here"),
        "accepts no media of ours: 488",
    ),
    callee(
        89,
        fails(486, "Busy Here"),
        "is busy at once, without a ring: 486",
    ),
    callee(
        91,
        fails(491, "Request Pending"),
        "another request is pending: 491",
    ),
    callee(
        96,
        answers(true, Talk::Short, Told::Answered),
        "rings 8 s, then answers and hangs up soon; never within a shorter ringing timeout",
    ),
    callee(
        97,
        answers(false, Talk::Long, Told::TooLate),
        "answers and talks, but the server's deadline is told: 408",
    ),
    callee(
        98,
        answers(false, Talk::Long, Told::Lost),
        "answers and talks, but the reply is lost",
    ),
    callee(
        99,
        Script::RingsCut,
        "rings on and never answers; the caller's connection breaks after the phone rang",
    ),
];

/// All scripted callees, by digits.
#[must_use]
pub fn callees() -> &'static [Callee] {
    &CALLEES
}

/// The script of a number.
pub(super) fn script(number: &str) -> Script {
    let unknown = fails(404, "Not Found");
    let Some(digits) = served(number) else {
        return unknown;
    };
    CALLEES
        .binary_search_by_key(&digits, |callee| callee.digits)
        .map_or(answers(false, Talk::Long, Told::Answered), |at| {
            CALLEES.get(at).map_or(unknown, |callee| callee.script)
        })
}

fn served(number: &str) -> Option<u8> {
    let fiction = number
        .strip_prefix("+120255501")
        .filter(|rest| rest.len() == 2);
    let load = number
        .strip_prefix("+999")
        .filter(|rest| rest.len() == 10)
        .and_then(|rest| rest.get(8..));
    let digits = fiction.or(load)?;
    if !number.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_are_in_order_of_their_digits_and_each_once() {
        assert!(
            CALLEES
                .windows(2)
                .all(|pair| pair[0].digits < pair[1].digits)
        );
    }

    #[test]
    fn only_numbers_that_cannot_exist_are_served() {
        assert_eq!(script("+12025550186"), rejects(486, "Busy Here"));
        assert_eq!(script("+9991234567886"), rejects(486, "Busy Here"));
        assert_eq!(script("+12025550120"), script("+12025550100"));
        assert_eq!(script("+4930123486"), fails(404, "Not Found"));
        assert_eq!(script("+1202555018x"), fails(404, "Not Found"));
    }
}
