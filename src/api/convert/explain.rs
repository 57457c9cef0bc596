//! One sentence for a person: where an attempt stands, why, and what to do.

use std::borrow::Cow;

use crate::model::attempt::{Attempt, ReviewCause, Rule, State};
use crate::model::disposition::{Disposition, Permission};

/// Where it stands, why, and what to do.
pub(super) fn explanation(attempt: &Attempt) -> String {
    match attempt.state {
        State::Queued | State::Deferred | State::Refused => waiting(attempt).into_owned(),
        State::Reserved => "room and agent are being prepared; nothing was dialed".to_owned(),
        State::Dialing => "the dial was sent; the phone may be ringing".to_owned(),
        State::Answered => Disposition::Answered.explain().to_owned(),
        State::Ended => "the call was answered and is over".to_owned(),
        State::Uncertain => {
            "whether the platform accepted the dial is not known; it is not dialed again, and evidence is looked for".to_owned()
        }
        State::NeedsReview => {
            let why = attempt.review.map_or("evidence cannot settle it", ReviewCause::explain);
            format!("{why}; a person must settle it (ringonce review resolve)")
        }
        State::NotConnected | State::NotDialed | State::Canceled => ended(attempt),
    }
}

fn waiting(attempt: &Attempt) -> Cow<'static, str> {
    let Some(waiting) = &attempt.waiting else {
        return Cow::Borrowed(match attempt.state {
            State::Queued => "accepted; it is placed as soon as the rules let it pass",
            State::Deferred => "not now; ask again with the same id",
            State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => "it will not be placed",
        });
    };
    let why = waiting.reason.rule.explain();
    match (
        waiting.reason.rule,
        &waiting.reason.holder,
        attempt.last_failure,
    ) {
        (Rule::NextTry, _, Some(failure)) => format!(
            "try {} failed: {}; the next one waits a little",
            attempt.tries,
            failure.explain()
        )
        .into(),
        (_, Some(holder), _) => format!("{why}: {holder}").into(),
        (_, None, _) => why.into(),
    }
}

fn ended(attempt: &Attempt) -> String {
    let Some(settled) = &attempt.settled else {
        return "it is over".to_owned();
    };
    let why = settled.disposition.explain();
    match (attempt.state, attempt.last_failure) {
        (State::NotDialed, Some(failure)) => {
            format!(
                "{why}; the last of {} tries: {}",
                attempt.tries,
                failure.explain()
            )
        }
        (State::Canceled, _) if settled.call_started => {
            format!("{why} after the dial was sent; the phone may have rung")
        }
        (State::Canceled, _) => format!("{why}; nothing was dialed"),
        (_, _) => match &settled.sip {
            Some(sip) => format!("{why} (SIP {})", sip.code),
            None => why.to_owned(),
        },
    }
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
