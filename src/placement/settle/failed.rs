//! A try that certainly started no call: the next one waits, or the attempt ends.

use std::time::Duration;

use super::{Decided, Settling, backoff};
use crate::admission::enter::refused_as;
use crate::admission::rules::Answer;
use crate::ledger::Decision;
use crate::ledger::record::RoomCause;
use crate::model::attempt::{Cause, Event, Keep, Reason, Rule, State, Waiting};
use crate::model::disposition::Disposition;
use crate::model::verdict::TryFailure;

impl Settling<'_> {
    /// A failed try: the next one waits, or the attempt ends here.
    pub(super) fn no_call(mut self, failure: TryFailure, turned: Option<Answer>) -> Decided {
        // A process that was paused finds that the try was taken from it and given back: the
        // attempt waits for its next one, and this is no second failure.
        if matches!(self.attempt.state, State::Queued | State::Deferred) {
            return Ok(Decision::Keep((self.before, None)));
        }
        let waits = matches!(self.attempt.state, State::Reserved | State::Dialing);
        self.attempt.last_failure = Some(failure);
        // A late proof counts as one in time: nothing rang, and nothing will.
        let open = waits || matches!(self.attempt.state, State::Uncertain | State::NeedsReview);
        if open && self.attempt.cancel.is_some() {
            self.end(Disposition::Canceled, false);
            return self.apply(Event::Cancel, RoomCause::Canceled, None);
        }
        if waits && let Some(Answer::Never(reason)) = &turned {
            let rule = reason.rule;
            self.cause = Cause::Rule(rule);
            self.attempt.waiting = Some(Waiting::first(reason.clone(), self.now, None, self.now));
            if let Some(disposition) = refused_as(rule) {
                self.end(disposition, false);
            }
            return self.apply(Event::Refuse, RoomCause::TryFailed, None);
        }
        if !waits {
            self.end(failure.disposition(), false);
            return self.apply(Event::GiveUp, RoomCause::TryFailed, None);
        }
        self.next_try(failure, turned)
    }

    fn next_try(mut self, failure: TryFailure, turned: Option<Answer>) -> Decided {
        let limits = &self.settler.config.attempt;
        let turned = match turned {
            Some(Answer::NotNow(reason)) => Some(reason),
            Some(Answer::Never(_) | Answer::Pass) | None => None,
        };
        if failure.counts() {
            self.attempt.failed = self.attempt.failed.saturating_add(1);
        }
        let pause = if turned.is_some() {
            // A rule's time is its own; the platform did not fail.
            Duration::ZERO
        } else {
            self.attempt.setbacks = self.attempt.setbacks.saturating_add(1);
            backoff(
                self.attempt.setbacks,
                limits.backoff_first,
                limits.backoff_max,
                limits.backoff_jitter * self.jitter,
            )
        };
        let not_before = self.now.plus(pause);
        if self.attempt.failed >= limits.tries || not_before > self.attempt.spec.expire_time {
            self.end(failure.disposition(), false);
            return self.apply(Event::GiveUp, RoomCause::TryFailed, None);
        }
        let reason = turned.unwrap_or(Reason {
            rule: Rule::NextTry,
            holder: None,
            until: Some(not_before),
        });
        let until = reason.until.unwrap_or(not_before).max(not_before);
        let until = until.min(self.attempt.spec.expire_time.plus(Duration::from_millis(1)));
        let event = match self.attempt.spec.keep {
            Keep::UntilExpiry => Event::Wait,
            Keep::Return => Event::Defer,
        };
        self.cause = Cause::TryFailed(failure);
        let now = self.now;
        self.attempt.waiting = Some(Waiting::first(reason, until, Some(not_before), now));
        self.apply(event, RoomCause::TryFailed, None)
    }
}
