//! What the log says of requests that were not done: no body, no message, no number.
//!
//! What stands in the way of one request stands in the way of every other, and there are
//! thousands an hour: it is told when it begins, once a minute while it lasts, and when it is
//! over. What LiveKit refuses of one call is told as often as it comes.

use std::time::Duration;

use super::call::{no_response, not_found};
use super::health::{Heard, Trouble};
use super::skew::Skew;
use super::wire::{Answer, Method};
use crate::runtime::streak::Streak;

/// What was told, of all requests of a client.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Of each kind of trouble apart, since each has its own remedy.
    troubles: [Streak; Trouble::KINDS],
    clock: Streak,
}

impl Log {
    /// A request came to `answer`, which says `heard`.
    pub(super) fn answer(&self, method: Method, answer: &Answer, heard: Heard, elapsed: Duration) {
        match heard {
            Heard::Fails(why) => return self.fails(method, why, elapsed),
            Heard::Answers => {
                for kind in 0..Trouble::KINDS {
                    self.over(kind);
                }
            }
            Heard::Speaks => self.over(Trouble::KeyRefused.kind()),
            Heard::Nothing => {}
        }
        if !is_answer(method, answer) {
            not_done(method, answer, elapsed);
        }
    }

    fn fails(&self, method: Method, why: Trouble, elapsed: Duration) {
        let Some(told) = self.troubles[why.kind()].failed() else {
            return;
        };
        let (method, failure, status) = (method.name(), why.name(), why.status());
        let (failures, seconds) = (told.count, told.lasts.as_secs());
        let elapsed_ms = millis(elapsed);
        let explanation = why.explain();
        match why {
            Trouble::KeyRefused => tracing::warn!(
                event = "livekit.token_refused",
                method,
                status,
                elapsed_ms,
                failures,
                seconds,
                "{explanation}"
            ),
            Trouble::NotLiveKit(_) => tracing::warn!(
                event = "livekit.request_failed",
                method,
                failure,
                status,
                elapsed_ms,
                failures,
                seconds,
                "{explanation}"
            ),
            // An outage has its own line, once it is known to be one.
            Trouble::NoConnection | Trouble::Timeout | Trouble::Broken | Trouble::Failed(_) => {
                tracing::info!(
                    event = "livekit.request_failed",
                    method,
                    failure,
                    status,
                    elapsed_ms,
                    failures,
                    seconds,
                    "{explanation}"
                );
            }
        }
    }

    fn over(&self, kind: usize) {
        if let Some(told) = self.troubles[kind].ended() {
            tracing::info!(
                event = "livekit.request_done",
                failure = Trouble::NAMES[kind],
                failures = told.count,
                seconds = told.lasts.as_secs(),
                "LiveKit does what it is asked again"
            );
        }
    }

    /// What the clocks showed.
    pub(super) fn clock(&self, skew: &Skew) {
        if !skew.is_too_far() {
            if let Some(told) = self.clock.ended() {
                tracing::info!(
                    event = "livekit.clock_agrees",
                    seconds = told.lasts.as_secs(),
                    "LiveKit's clock and this host's agree again: calls are dialed"
                );
            }
        } else if let Some(told) = self.clock.failed() {
            tracing::warn!(
                event = "livekit.clock",
                ahead_ms = skew.ahead_us / 1_000,
                answers = told.count,
                seconds = told.lasts.as_secs(),
                "{}",
                skew.explain()
            );
        }
    }
}

/// Whether a request was answered in full, although by a refusal.
fn is_answer(method: Method, answer: &Answer) -> bool {
    match method {
        Method::GetParticipant | Method::DeleteRoom => not_found(answer),
        Method::ListDispatch => no_response(answer),
        Method::CreateRoom
        | Method::ListRooms
        | Method::ListParticipants
        | Method::CreateDispatch
        | Method::ListTrunks
        | Method::Dial => false,
    }
}

fn not_done(method: Method, answer: &Answer, elapsed: Duration) {
    let (outcome, status) = match answer {
        Answer::Done(_) => return,
        Answer::NotSent(_) => ("not_sent", 0),
        Answer::Refused(refusal) => ("refused", refusal.status),
        Answer::Strange(status) => ("strange", *status),
        Answer::Lost(_) => ("lost", 0),
    };
    tracing::info!(
        method = method.name(),
        outcome,
        status,
        elapsed_ms = millis(elapsed),
        "LiveKit did not do a request"
    );
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
