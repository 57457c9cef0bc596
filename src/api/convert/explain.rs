//! One sentence for a person: where an attempt stands, why, and what to do.

use std::time::Duration;

use super::{enums, stop, waits};
use crate::api::proto;
use crate::model::attempt::{Attempt, EndCause, Placed, ReviewCause, Rule, Settled, State};
use crate::model::disposition::{Disposition, Permission, Rang};
use crate::model::time::Time;

/// By when evidence or time settles it without anybody, in `UNCERTAIN` and `NEEDS_REVIEW`: at the
/// horizon, or at the next look once that is past; when the review closes itself.
pub(super) fn settles_at(attempt: &Attempt, review_hold: Duration) -> Option<Time> {
    match attempt.state {
        State::Uncertain => {
            let horizon = attempt.placed.as_ref().and_then(Placed::horizon);
            horizon.max(attempt.look_at)
        }
        State::NeedsReview => Some(attempt.since.plus(review_hold)),
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => None,
    }
}

/// Where it stands at `now`, why, and what to do; `settles` is [`settles_at`].
pub(super) fn explanation(attempt: &Attempt, settles: Option<Time>, now: Time) -> String {
    let stands = stands(attempt, settles, now);
    match stop::pending(attempt) {
        Some(pending) => format!("{stands}. Meanwhile {pending}"),
        None => stands,
    }
}

fn stands(attempt: &Attempt, settles: Option<Time>, now: Time) -> String {
    match attempt.state {
        State::Queued | State::Deferred | State::Refused => waits::explain(attempt, now),
        State::Reserved => "room and agent are being prepared; nothing was dialed".to_owned(),
        State::Dialing => "the dial was sent; the phone may be ringing".to_owned(),
        State::Answered => Disposition::Answered.explain().to_owned(),
        State::Ended => over(attempt),
        State::Uncertain => uncertain(attempt, settles, now),
        State::NeedsReview => {
            let why = attempt
                .review
                .map_or("evidence cannot settle it", ReviewCause::explain);
            let closes = match settles {
                Some(at) if at < now => {
                    format!("at once: since {at} it is due to close itself as UNRESOLVED")
                }
                Some(at) => format!("until {at}, when it closes itself as UNRESOLVED"),
                None => "before it closes itself".to_owned(),
            };
            format!(
                "{why}; it is never dialed again: drop the message. A person must settle it \
                 (ringonce review resolve) {closes}"
            )
        }
        State::NotConnected | State::NotDialed | State::Canceled => ended(attempt),
    }
}

/// How long settling takes after its time while all is well: the looks of a round, and their
/// budget.
const SOON: Duration = Duration::from_secs(15);

/// Whether the phone rang is not known: until when that stays so, and what to do meanwhile.
fn uncertain(attempt: &Attempt, settles: Option<Time>, now: Time) -> String {
    let horizon = attempt.placed.as_ref().and_then(Placed::horizon);
    let when = match (horizon, settles) {
        (Some(horizon), _) if now < horizon => format!(
            "evidence is looked for; at the latest soon after {horizon}, when LiveKit can no longer \
             start the call, it is settled or a person is asked, unless LiveKit does not say then \
             what there is"
        ),
        (horizon, Some(next)) if next < now => {
            let due = horizon.map_or(next, |horizon| horizon.max(next));
            if now < due.plus(SOON) {
                "LiveKit can no longer start the call, and it is being settled now".to_owned()
            } else {
                format!(
                    "LiveKit can no longer start the call, and it is overdue since {due} to settle \
                     it: LiveKit does not answer (ringonce status), or the service was started \
                     since and looks for as long again before an absence counts; then that settles \
                     it, or a person is asked"
                )
            }
        }
        // A look after the horizon has put the next one of the ledger off: it was answered, and
        // said nothing that counts.
        (_, Some(next)) => format!(
            "LiveKit can no longer start the call, and what it says since does not settle it: it \
             has lost its records, or does not tell whether the room lives. As soon as it tells, \
             that settles it or a person is asked; else a person is asked about {next}, or later \
             if the service was started since"
        ),
        (_, None) => "evidence is looked for".to_owned(),
    };
    format!(
        "whether the platform accepted the dial is not known; it is not dialed again: drop the \
         message, make no new attempt, and ask again later or watch. {when}"
    )
}

/// Of a call that was answered: what ended it.
fn over(attempt: &Attempt) -> String {
    let cause = attempt.settled.as_ref().and_then(|s| s.end_cause);
    match (cause, stop::canceled(attempt)) {
        (Some(EndCause::Canceled), Some(told)) => {
            format!("the call was answered, and hung up {told}")
        }
        (Some(EndCause::Canceled), None) => "the call was answered, and hung up by request".into(),
        (Some(EndCause::Maximum), _) => {
            "the call was answered, and ended as it lasted as long as it may".into()
        }
        (Some(EndCause::AgentLost), _) => {
            "the call was answered, and ended as its agent went away".into()
        }
        (Some(EndCause::Resolved), _) => {
            "a person found that the call was answered and is over".into()
        }
        (Some(EndCause::RoomGone | EndCause::LegLeft) | None, _) => {
            "the call was answered and is over".into()
        }
    }
}

fn ended(attempt: &Attempt) -> String {
    let Some(settled) = &attempt.settled else {
        return "it is over".to_owned();
    };
    let why = found(settled);
    match (attempt.state, attempt.last_failure) {
        (State::NotDialed, Some(failure)) => {
            format!(
                "{why}; the last of {} tries: {}",
                attempt.tries,
                failure.explain()
            )
        }
        (State::Canceled, _) => {
            let told = stop::canceled(attempt);
            let told = told.map_or(String::new(), |told| format!(" {told}"));
            if settled.call_started {
                format!("{why} after the dial was sent, and the phone may have rung:{told}")
            } else {
                format!("{why}, and nothing was dialed:{told}")
            }
        }
        (_, _) => match &settled.sip {
            Some(sip) => format!("{why} (SIP {})", sip.code),
            None => why.to_owned(),
        },
    }
}

/// How it ended, as surely as that is known.
fn found(settled: &Settled) -> &'static str {
    let sip = settled.sip.as_ref().map(|sip| sip.code);
    match (settled.disposition, settled.rang, sip) {
        (Disposition::Unreached, Rang::Rang, _) => {
            "it rang, and how that ended the carrier's side did not say"
        }
        // LiveKit says the same of a callee who lets it ring and of a host that is dead.
        (Disposition::NoAnswer, Rang::NoEvidence, None) => {
            "nobody answered, or the trunk's host did not: no ringing was seen"
        }
        // By how fast it came, or by its phrase: no person says so.
        (Disposition::CarrierCapacity, _, Some(480)) => {
            "the carrier was unavailable at once, as it is when its rate or concurrency limit is \
             reached; the callee itself may have been meant"
        }
        (Disposition::StoppedOnPlatform, _, Some(_)) => {
            "the carrier's side says that the call was ended by its caller, and it was not by us"
        }
        (other, _, _) => other.explain(),
    }
}

/// What waits and was decided last in another history of the store is told so at `now`.
pub(crate) fn of_another_history(out: &mut proto::Attempt, attempt: &Attempt, now: Time) {
    if let Some(explanation) = waits::distrusted(attempt, now) {
        out.explanation = explanation;
    }
}

/// What waits for `holder` is told where that one stands, and what would let it pass.
pub(crate) fn of_holder(out: &mut proto::Attempt, holder: &Attempt, review_hold: Duration) {
    let Some(reason) = &mut out.reason else {
        return;
    };
    reason.set_holder_state(enums::state(holder.state));
    let settles = settles_at(holder, review_hold);
    let by = settles.map_or(String::new(), |at| format!(" until {at}"));
    let state = holder.state.name().to_uppercase();
    let way_out = match holder.state {
        State::NeedsReview => format!(
            ", and holds it{by}, or until a person says what became of it \
             (ringonce review resolve {})",
            holder.id
        ),
        State::Uncertain => format!(
            ": whether its phone rings is not known, and it holds what this one needs until that \
             is settled (ringonce call get --attempt {})",
            holder.id
        ),
        State::Answered => ": somebody talks".to_owned(),
        State::Ended | State::NotConnected | State::NotDialed | State::Canceled => {
            let until = reason
                .until
                .map(|at| Time::from_micros(at.seconds * 1_000_000 + i64::from(at.nanos / 1_000)));
            until.map_or(", and passes it on soon".to_owned(), |at| {
                format!(", and holds it until {at}, in case its phone still rings")
            })
        }
        State::Queued | State::Deferred | State::Refused | State::Reserved | State::Dialing => {
            String::new()
        }
    };
    let stands = format!(", which is {state}{way_out}");
    out.explanation.push_str(&stands);
}

/// Whether a follow-up attempt would be accepted, and why.
pub(super) fn follow_up(attempt: &Attempt) -> (Permission, &'static str) {
    if !attempt.is_settled() {
        return (Permission::NotYet, "it is not settled");
    }
    if let Some(settled) = &attempt.settled {
        return match settled.permission {
            Permission::NotYet => (Permission::NotYet, "it is not settled"),
            Permission::Permitted => (
                Permission::Permitted,
                "a follow-up attempt would be accepted; this is no advice to call",
            ),
            Permission::Never => (Permission::Never, settled.disposition.explain()),
        };
    }
    match attempt.waiting.as_ref().map(|w| w.reason.rule) {
        Some(rule @ Rule::Number(_)) => (Permission::Never, rule.explain()),
        Some(
            Rule::HistoryLost
            | Rule::Expired
            | Rule::ContactReserved
            | Rule::NumberInUse
            | Rule::Pace
            | Rule::NextTry,
        )
        | None => (
            Permission::Permitted,
            "a follow-up attempt would be accepted; this is no advice to call",
        ),
    }
}
