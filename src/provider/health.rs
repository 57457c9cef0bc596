//! Whether LiveKit can be reached and takes the key, as far as this process sees it by the
//! answers that it gets anyway: nothing is asked for it. The sweep of rooms asks once a minute,
//! so that this is never much older, however quiet the service is.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::call::no_response;
pub use super::skew::Skew;
use super::wire::{Answer, Lost, Method, NotSent};
use crate::model::time::Time;

/// What the requests of this process came to since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    /// When a request was last answered by a LiveKit that took the key, if only to say that it
    /// cannot do this one thing.
    pub answered: Option<Time>,
    /// How many were.
    pub answers: u64,
    /// The last one that was not.
    pub failed: Option<Failed>,
    /// How many were not.
    pub failures: u64,
    /// Since when every request has failed; `None` while they are answered, and before the
    /// first.
    pub failing_since: Option<Time>,
    /// Both clocks at LiveKit's last answer that had a date.
    pub clock: Option<Skew>,
}

/// How far the first and the last of the requests must be apart that have all failed, before
/// LiveKit is taken to be away.
const GRACE: Duration = Duration::from_secs(5);

impl Health {
    /// Since when LiveKit is away: two requests have failed that are five seconds apart, with none
    /// in between that was answered. One that is lost is no outage, and neither is a platform that
    /// restarts in a moment.
    #[must_use]
    pub fn away_since(&self) -> Option<Time> {
        let (since, last) = (self.failing_since?, self.failed?.at);
        (last.since(since) >= GRACE).then_some(since)
    }

    /// What is wrong with LiveKit. That one request among many was too slow, or failed, says
    /// nothing of it yet.
    #[must_use]
    pub fn wrong(&self) -> Option<Trouble> {
        let failed = self.failed.filter(|_| self.failing_since.is_some())?;
        let alone = self.answered.is_some() && self.away_since().is_none();
        let (Trouble::Timeout | Trouble::Broken | Trouble::Failed(_)) = failed.why else {
            return Some(failed.why);
        };
        (!alone).then_some(failed.why)
    }
}

/// A request that got no answer of a LiveKit that took the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// When that was known.
    pub at: Time,
    /// What was wrong.
    pub why: Trouble,
}

/// What is wrong between this process and LiveKit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The address cannot be resolved, nobody listens there, or TLS failed.
    NoConnection,
    /// It took the request and did not answer in time.
    Timeout,
    /// The connection broke, or half an answer came.
    Broken,
    /// 401: the key, its secret or a clock.
    KeyRefused,
    /// LiveKit itself failed, with this HTTP status.
    Failed(u16),
    /// An answer that is not LiveKit's, with this HTTP status: a proxy's page, another server.
    NotLiveKit(u16),
}

impl Trouble {
    /// How many kinds there are.
    pub(super) const KINDS: usize = 6;

    /// Their names, by [`Trouble::kind`].
    pub(super) const NAMES: [&'static str; Self::KINDS] = [
        "NO_CONNECTION",
        "TIMEOUT",
        "BROKEN",
        "KEY_REFUSED",
        "FAILED",
        "NOT_LIVEKIT",
    ];

    /// Its kind, whatever its status.
    pub(super) const fn kind(self) -> usize {
        match self {
            Self::NoConnection => 0,
            Self::Timeout => 1,
            Self::Broken => 2,
            Self::KeyRefused => 3,
            Self::Failed(_) => 4,
            Self::NotLiveKit(_) => 5,
        }
    }

    /// Its name, as it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.kind()]
    }

    /// The HTTP status that said it, if one did.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::NoConnection | Self::Timeout | Self::Broken => None,
            Self::KeyRefused => Some(401),
            Self::Failed(status) | Self::NotLiveKit(status) => Some(status),
        }
    }

    /// What it means and what to do, in a sentence.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::NoConnection => {
                "LiveKit cannot be reached: check livekit.url, the network, and whether it runs"
            }
            Self::Timeout | Self::Broken => {
                "LiveKit takes requests and does not answer them: see whether it is well, and what \
                 is in between"
            }
            Self::KeyRefused => {
                "LiveKit refuses the API key, its secret or this host's clock, and nothing is \
                 dialed: check livekit.api_key, livekit.api_secret and both clocks"
            }
            Self::Failed(_) => {
                "LiveKit answers that it fails: see its own log, and whether its nodes and its \
                 Redis are well"
            }
            Self::NotLiveKit(_) => {
                "what answers at livekit.url is not LiveKit: check the address, and the proxy in \
                 between"
            }
        }
    }
}

/// Whether the request goes to the node on which its room lives, so that none answers where
/// there is no such room: often that is what is asked. The others are read from LiveKit's own
/// records, or choose a node anew (read in livekit-server 1.13.5).
const fn asks_a_node(method: Method) -> bool {
    match method {
        Method::DeleteRoom | Method::CreateDispatch | Method::ListDispatch => true,
        Method::CreateRoom
        | Method::ListRooms
        | Method::GetParticipant
        | Method::ListParticipants
        | Method::ListTrunks
        | Method::Dial => false,
    }
}

/// Whether an answer of LiveKit's has something in it, at least the id of what was made or
/// found. An empty list is an empty message, and so is the answer to a deletion: whatever
/// answers 200 with nothing to every request is not told from a LiveKit that has nothing, until
/// the first of these.
const fn always_says_something(method: Method) -> bool {
    match method {
        Method::CreateRoom | Method::GetParticipant | Method::CreateDispatch | Method::Dial => true,
        Method::DeleteRoom
        | Method::ListRooms
        | Method::ListParticipants
        | Method::ListDispatch
        | Method::ListTrunks => false,
    }
}

/// What one answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// LiveKit is well, as far as it was asked.
    Answers,
    /// LiveKit is there and takes the key. That it does not do this one thing is as it may be,
    /// and is no sign that what failed before is over.
    Speaks,
    /// It was not done, and no other request is.
    Fails(Trouble),
    /// Nothing: it never left.
    Nothing,
}

impl Heard {
    /// What an answer says of LiveKit.
    pub(super) fn of(method: Method, answer: &Answer) -> Self {
        match answer {
            Answer::NotSent(NotSent::NoConnection) => Self::Fails(Trouble::NoConnection),
            // It never left this process, so it says nothing of LiveKit.
            Answer::NotSent(NotSent::Malformed | NotSent::TooLate) => Self::Nothing,
            Answer::Lost(Lost::Timeout) => Self::Fails(Trouble::Timeout),
            Answer::Lost(Lost::Broken | Lost::Unreadable) => Self::Fails(Trouble::Broken),
            Answer::Strange(401) => Self::Fails(Trouble::KeyRefused),
            Answer::Strange(status) => Self::Fails(Trouble::NotLiveKit(*status)),
            Answer::Refused(refusal) if refusal.status == 401 => Self::Fails(Trouble::KeyRefused),
            // Twirp, and none of LiveKit's services: another server, or a path before its own.
            Answer::Refused(refusal) if refusal.code == "bad_route" => {
                Self::Fails(Trouble::NotLiveKit(refusal.status))
            }
            // What a 5xx of a dial says is about that call, not about LiveKit.
            Answer::Refused(refusal) if refusal.status >= 500 && method == Method::Dial => {
                Self::Speaks
            }
            Answer::Refused(_) if no_response(answer) && asks_a_node(method) => Self::Speaks,
            Answer::Refused(refusal) if refusal.status >= 500 => {
                Self::Fails(Trouble::Failed(refusal.status))
            }
            Answer::Done(body) if body.is_empty() && always_says_something(method) => {
                Self::Fails(Trouble::NotLiveKit(200))
            }
            Answer::Done(_) | Answer::Refused(_) => Self::Answers,
        }
    }

    /// Whether it was LiveKit that said it, and its clock that dated it.
    pub(super) const fn is_livekits(self) -> bool {
        match self {
            Self::Answers | Self::Speaks | Self::Fails(Trouble::KeyRefused) => true,
            Self::Nothing
            | Self::Fails(
                Trouble::NoConnection
                | Trouble::Timeout
                | Trouble::Broken
                | Trouble::Failed(_)
                | Trouble::NotLiveKit(_),
            ) => false,
        }
    }
}

/// The same, as it is written down.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<Health>);

impl Pulse {
    /// Notes what a request came to at `now`, and what its answer showed of the clocks.
    pub(super) fn note(&self, heard: Heard, clock: Option<Skew>, now: Time) {
        // A std mutex, since nothing is awaited while it is held.
        let mut health = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        health.clock = clock.or(health.clock);
        match heard {
            Heard::Answers => {
                health.answered = Some(now);
                health.answers += 1;
                health.failing_since = None;
            }
            Heard::Speaks => {
                health.answered = Some(now);
                health.answers += 1;
            }
            Heard::Fails(why) => {
                health.failed = Some(Failed { at: now, why });
                health.failures += 1;
                health.failing_since.get_or_insert(now);
            }
            Heard::Nothing => {}
        }
    }

    pub(super) fn health(&self) -> Health {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::Refusal;

    fn note(pulse: &Pulse, method: Method, answer: &Answer, second: i64) {
        let heard = Heard::of(method, answer);
        pulse.note(heard, None, Time::from_secs(second));
    }

    fn twirp(status: u16, code: &str, msg: &str) -> Answer {
        Answer::Refused(Refusal {
            status,
            code: code.to_owned(),
            msg: msg.to_owned(),
            ..Refusal::default()
        })
    }

    const NOWHERE: &str = "twirp error unknown: no response from servers";

    /// What an answer makes of `status`: whether it is an answer, what fails, and whether a
    /// trouble from before is over.
    fn judged(method: Method, answer: &Answer) -> (bool, Option<Trouble>, bool) {
        let pulse = Pulse::default();
        let down = Answer::NotSent(NotSent::NoConnection);
        note(&pulse, Method::ListRooms, &down, 1);
        note(&pulse, method, answer, 7);
        let health = pulse.health();
        let at = Time::from_secs(7);
        let failed = health.failed.filter(|failed| failed.at == at);
        (
            health.answered == Some(at),
            failed.map(|failed| failed.why),
            health.failing_since.is_none(),
        )
    }

    /// Which method is asked matters: the same answer is what was asked for, or a trouble.
    #[test]
    fn each_method_is_judged_by_what_livekit_answers_to_it() {
        let nowhere = || twirp(503, "unavailable", NOWHERE);
        for method in Method::ALL {
            let judged = |answer: Answer| judged(method, &answer);
            let not_livekit = |status| (false, Some(Trouble::NotLiveKit(status)), false);
            let well = (true, None, true);
            let speaks = (true, None, false);

            let on_a_node = [
                Method::DeleteRoom,
                Method::CreateDispatch,
                Method::ListDispatch,
                Method::Dial,
            ];
            let failed = (false, Some(Trouble::Failed(503)), false);
            let expected = if on_a_node.contains(&method) {
                speaks
            } else {
                failed
            };
            assert_eq!(judged(nowhere()), expected, "{method:?}");

            let filled = [
                Method::CreateRoom,
                Method::GetParticipant,
                Method::CreateDispatch,
                Method::Dial,
            ];
            let expected = if filled.contains(&method) {
                not_livekit(200)
            } else {
                well
            };
            assert_eq!(judged(Answer::Done(Vec::new())), expected, "{method:?}");
            assert_eq!(judged(Answer::Done(vec![1])), well, "{method:?}");

            let missing = twirp(404, "not_found", "no such object");
            assert_eq!(judged(missing), well, "{method:?}");
            let rejected = twirp(400, "invalid_argument", "");
            assert_eq!(judged(rejected), well, "{method:?}");
            let route = twirp(404, "bad_route", "no handler for path");
            assert_eq!(judged(route), not_livekit(404), "{method:?}");
            assert_eq!(judged(Answer::Strange(502)), not_livekit(502), "{method:?}");

            let broken = judged(twirp(500, "internal", "redis"));
            let expected = if method == Method::Dial {
                speaks
            } else {
                (false, Some(Trouble::Failed(500)), false)
            };
            assert_eq!(broken, expected, "{method:?}");
        }
    }

    /// Where every request gets the same answer, some of them are as they may be, and LiveKit
    /// is not well all the same.
    #[test]
    fn a_livekit_whose_nodes_are_gone_is_not_well() {
        let pulse = Pulse::default();
        for second in 1..20 {
            for method in Method::ALL {
                let answer = twirp(503, "unavailable", NOWHERE);
                note(&pulse, method, &answer, second);
            }
        }
        let health = pulse.health();
        assert_eq!(health.failing_since, Some(Time::from_secs(1)));
        let why = health.failed.map(|failed| failed.why);
        assert_eq!(why, Some(Trouble::Failed(503)));
    }

    #[test]
    fn each_trouble_is_told_from_the_others_and_has_a_remedy() {
        for (answer, why) in [
            (
                Answer::NotSent(NotSent::NoConnection),
                Trouble::NoConnection,
            ),
            (Answer::Lost(Lost::Timeout), Trouble::Timeout),
            (Answer::Lost(Lost::Broken), Trouble::Broken),
            (Answer::Strange(401), Trouble::KeyRefused),
            (twirp(401, "unauthenticated", ""), Trouble::KeyRefused),
            (twirp(500, "internal", "redis"), Trouble::Failed(500)),
            (Answer::Strange(502), Trouble::NotLiveKit(502)),
        ] {
            let pulse = Pulse::default();
            note(&pulse, Method::ListRooms, &answer, 7);
            note(&pulse, Method::ListRooms, &answer, 9);
            let health = pulse.health();
            let at = Time::from_secs(9);
            assert_eq!(health.failed, Some(Failed { at, why }), "{answer:?}");
            assert_eq!(health.failing_since, Some(Time::from_secs(7)));
            assert_eq!((health.answers, health.failures), (0, 2));
            assert!(why.explain().contains(": "), "{why:?} has no remedy");
        }
    }

    #[test]
    fn one_request_that_is_too_slow_among_many_is_nothing_wrong_with_livekit() {
        let pulse = Pulse::default();
        let (well, slow) = (Answer::Done(Vec::new()), Answer::Lost(Lost::Timeout));
        note(&pulse, Method::ListRooms, &slow, 1);
        let wrong = |pulse: &Pulse| pulse.health().wrong();
        assert_eq!(wrong(&pulse), Some(Trouble::Timeout), "it never answered");
        note(&pulse, Method::ListRooms, &well, 2);
        note(&pulse, Method::ListRooms, &slow, 10);
        note(&pulse, Method::ListRooms, &slow, 14);
        assert_eq!((wrong(&pulse), pulse.health().away_since()), (None, None));
        note(&pulse, Method::ListRooms, &slow, 15);
        assert_eq!(wrong(&pulse), Some(Trouble::Timeout));
        assert_eq!(pulse.health().away_since(), Some(Time::from_secs(10)));
        note(&pulse, Method::ListRooms, &well, 16);
        note(&pulse, Method::ListRooms, &Answer::Strange(502), 17);
        assert_eq!(wrong(&pulse), Some(Trouble::NotLiveKit(502)), "at once");
    }

    #[test]
    fn what_never_left_says_nothing_and_an_answer_ends_the_trouble() {
        let pulse = Pulse::default();
        let late = Answer::NotSent(NotSent::TooLate);
        note(&pulse, Method::Dial, &late, 1);
        assert_eq!(pulse.health(), Health::default());
        let down = Answer::NotSent(NotSent::NoConnection);
        note(&pulse, Method::ListRooms, &down, 2);
        note(&pulse, Method::ListRooms, &Answer::Done(Vec::new()), 3);
        let health = pulse.health();
        assert_eq!(health.failing_since, None);
        assert!(health.failed.is_some(), "the last failure is remembered");
    }
}
