//! What is settled after the dial's own answer failed to: by looks, by events, by a person.

use super::{Decided, Settling};
use crate::ledger::record::RoomCause;
use crate::model::attempt::{Cause, EndCause, Event, Resolution, ReviewCause, Settled};
use crate::model::disposition::{Disposition, Rang};
use crate::model::verdict::Leg;

impl Settling<'_> {
    /// The callee's leg was seen alive: the placement marker, with its proof. A stop that hangs
    /// up may have been recorded since it was seen. Nobody has carried it out then, so the call
    /// goes on until a deletion has met it; it is not called hung up before.
    pub(super) fn adopted(mut self, leg: Leg) -> Decided {
        // Nothing was hung up: a stop that reaches ringing alone came too late.
        if !self.attempt.hangs_up() {
            self.attempt.stop = None;
        }
        self.placed(leg);
        self.goes_on()
    }

    /// The callee answered, and that is over.
    pub(super) fn was_answered(mut self, leg: Leg, why: EndCause) -> Decided {
        self.placed(leg);
        self.over(why)
    }

    /// Evidence cannot settle it: it waits for a person, and goes on holding.
    pub(super) fn review(mut self, why: ReviewCause) -> Decided {
        let config = &self.settler.config;
        // Soon once more, since its room may be listed yet; then hourly.
        let look = config
            .reconcile
            .answered_look
            .min(config.attempt.review_hold);
        self.attempt.review = Some(why);
        self.attempt.look_at = Some(self.now.plus(look));
        self.cause = Cause::Unsettled;
        self.apply_alive(Event::AskReview)
    }

    /// Nobody settled it in time: closed, so that no contact waits for ever.
    pub(super) fn unresolved(mut self) -> Decided {
        self.cause = Cause::Unresolved;
        self.end(Disposition::Unresolved, true);
        self.apply(Event::NotConnect, RoomCause::NotConnected, None)
    }

    /// A person says what became of it.
    pub(super) fn resolved(mut self, as_what: Resolution) -> Decided {
        self.cause = Cause::Resolved;
        match as_what {
            Resolution::Answered => {
                self.attempt.settled = Some(Settled::new(
                    Disposition::Answered,
                    Rang::Rang,
                    true,
                    self.now,
                ));
                self.contact.held.last_answer = Some(self.now);
                self.number.held.last_answer = Some(self.now);
                self.over(EndCause::Resolved)
            }
            Resolution::NotDialed => {
                self.end(Disposition::NotDialed, false);
                self.apply(Event::GiveUp, RoomCause::TryFailed, None)
            }
            Resolution::RangUnanswered => {
                self.attempt.settled = Some(Settled::new(
                    Disposition::NoAnswer,
                    Rang::Rang,
                    true,
                    self.now,
                ));
                self.apply(Event::NotConnect, RoomCause::NotConnected, None)
            }
        }
    }
}
