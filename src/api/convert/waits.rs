//! What an attempt waits for, in words that hold when they are read: its last refusal is of a
//! moment that is past by then, and what comes next may be due already.

use crate::model::attempt::{Attempt, Cause, Rule, State, Waiting};
use crate::model::time::Time;
use crate::model::verdict::TryFailure;

/// Why an attempt in `QUEUED`, `DEFERRED` or `REFUSED` is not placed, and what comes next.
pub(super) fn explain(attempt: &Attempt, now: Time) -> String {
    let Some(waiting) = &attempt.waiting else {
        return without_reason(attempt.state).to_owned();
    };
    let mut parts = Vec::new();
    if attempt.state == State::Deferred {
        parts.push(asked_again(waiting, now));
    }
    if attempt.state != State::Refused
        && let Some((at, failure)) = last_failed(attempt)
    {
        let (number, why) = (attempt.tries, failure.explain());
        parts.push(format!("try {number} failed at {at}: {why}"));
    }
    parts.extend(rule(attempt, waiting, now));
    parts.join("; ")
}

const fn without_reason(state: State) -> &'static str {
    match state {
        State::Queued => "accepted; it is placed as soon as the rules let it pass",
        State::Deferred => "not now; its caller is to send the same id again",
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
    }
}

/// What its caller does with an attempt that it keeps itself.
fn asked_again(waiting: &Waiting, now: Time) -> String {
    let at = waiting.not_before.unwrap_or(waiting.until);
    if now < at {
        format!("its caller keeps it and is to send the same id again (REPEAT), not before {at}")
    } else {
        format!(
            "its caller keeps it, and nothing becomes of it until the same id is sent again \
             (REPEAT), which may be done since {at}"
        )
    }
}

/// When its last try failed, and why.
fn last_failed(attempt: &Attempt) -> Option<(Time, TryFailure)> {
    let failed = attempt.history.iter().rev();
    let mut failed = failed.filter_map(|transition| match transition.cause {
        Cause::TryFailed(failure) => Some((transition.at, failure)),
        Cause::Admitted
        | Cause::Rule(_)
        | Cause::Marked
        | Cause::Healed
        | Cause::Verdict
        | Cause::OwnerGone
        | Cause::Looked
        | Cause::Told
        | Cause::RoomGone
        | Cause::Canceled
        | Cause::StopRecorded
        | Cause::Maximum
        | Cause::EpochChanged
        | Cause::Unsettled
        | Cause::Resolved
        | Cause::Unresolved => None,
    });
    failed.next()
}

/// The rule that stands in the way; of a failed try there is none, but a next one.
fn rule(attempt: &Attempt, waiting: &Waiting, now: Time) -> Option<String> {
    let (rule, why) = (waiting.reason.rule, waiting.reason.rule.explain());
    let why = match &waiting.reason.holder {
        Some(holder) => format!("{why}: {holder}"),
        None => why.to_owned(),
    };
    match attempt.state {
        State::Queued if rule == Rule::NextTry => {
            let at = waiting.not_before.unwrap_or(waiting.until);
            Some(if now < at {
                format!("the next try follows at {at}")
            } else {
                format!("the next try is due since {at}, and begins as the rules let it pass")
            })
        }
        // Its caller is told above when.
        State::Deferred if rule == Rule::NextTry && last_failed(attempt).is_some() => None,
        // Nobody has asked since, and so nobody knows whether it stands yet.
        State::Deferred => Some(format!(
            "when it was asked last, at {}: {why}",
            waiting.last
        )),
        State::Queued
        | State::Refused
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::NeedsReview
        | State::Canceled => Some(why),
    }
}

/// Of what waits since before the store's history changed: it is not placed any more, and
/// refused as soon as it is decided anew.
pub(super) fn distrusted(attempt: &Attempt, now: Time) -> Option<String> {
    let waits = match attempt.state {
        State::Queued => {
            let at = attempt.due().unwrap_or(now);
            if now < at {
                format!("; it is refused at {at}")
            } else {
                format!("; it is refused at once, which is due since {at}")
            }
        }
        State::Deferred => "; it is refused when its caller sends the same id again".to_owned(),
        State::Refused
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::NeedsReview
        | State::Canceled => return None,
    };
    let rule = Rule::HistoryLost;
    Some(format!(
        "it waits since before this store came back from a backup or was copied (store restored), \
         and is not dialed any more, since it may have rung meanwhile{waits} ({}): {}",
        rule.name(),
        rule.explain()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attempt::{Keep, Keyed, Reason, Spec};

    const NOW: Time = Time::from_secs(1_000);
    const NEXT: Time = Time::from_secs(1_030);

    /// One whose first try failed, and that waits for `rule` since.
    fn failed(keep: Keep, rule: Rule) -> Attempt {
        let mut spec = Spec::sample(NOW);
        spec.keep = keep;
        let (workspace, id) = ("w".parse().unwrap(), "a".parse().unwrap());
        let keyed = Keyed::default();
        let mut attempt = Attempt::new(workspace, id, spec, keyed, uuid::Uuid::nil(), NOW);
        let waits = match keep {
            Keep::UntilExpiry => State::Queued,
            Keep::Return => State::Deferred,
        };
        let failure = TryFailure::AgentUnavailable;
        (attempt.tries, attempt.last_failure) = (1, Some(failure));
        attempt.enter(None, State::Reserved, NOW, Cause::Admitted, String::new());
        let cause = Cause::TryFailed(failure);
        attempt.enter(Some(State::Reserved), waits, NOW, cause, String::new());
        let reason = Reason::of(rule);
        attempt.waiting = Some(Waiting::first(reason, NEXT, Some(NEXT), NOW));
        attempt
    }

    #[test]
    fn a_failed_try_has_its_time_and_the_next_one_is_to_come_or_is_due() {
        let queued = failed(Keep::UntilExpiry, Rule::NextTry);
        assert_eq!(
            explain(&queued, NOW),
            "try 1 failed at 1970-01-01T00:16:40Z: the agent did not join in time; check that its \
             worker runs and is registered under this name; the next try follows at \
             1970-01-01T00:17:10Z"
        );
        let due = explain(&queued, NEXT);
        assert!(due.contains("is due since 1970-01-01T00:17:10Z"), "{due}");
    }

    #[test]
    fn what_its_caller_keeps_is_told_as_such_before_its_time_and_after_it() {
        let deferred = failed(Keep::Return, Rule::NextTry);
        let early = explain(&deferred, NOW);
        assert!(
            early.starts_with(
                "its caller keeps it and is to send the same id again (REPEAT), not before \
                 1970-01-01T00:17:10Z; try 1 failed at 1970-01-01T00:16:40Z: the agent"
            ),
            "{early}"
        );
        let late = explain(&deferred, NEXT.plus(std::time::Duration::from_hours(1)));
        assert!(late.contains("until the same id is sent again"), "{late}");
        assert!(!late.contains("not before"), "{late}");
        let held = explain(&failed(Keep::Return, Rule::ContactReserved), NOW);
        assert!(
            held.ends_with("asked last, at 1970-01-01T00:16:40Z: another attempt has this contact"),
            "{held}"
        );
    }

    #[test]
    fn what_another_history_left_waiting_says_until_when_it_stays_so() {
        let queued = distrusted(&failed(Keep::UntilExpiry, Rule::Pace), NOW).unwrap();
        assert!(
            queued.contains("it is refused at 1970-01-01T00:17:10Z (HISTORY_LOST)"),
            "{queued}"
        );
        let deferred = distrusted(&failed(Keep::Return, Rule::Pace), NOW).unwrap();
        assert!(
            deferred.contains("sends the same id again (HISTORY_LOST)"),
            "{deferred}"
        );
        let mut over = failed(Keep::Return, Rule::Pace);
        over.state = State::NotDialed;
        assert_eq!(distrusted(&over, NOW), None);
    }
}
