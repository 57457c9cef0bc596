//! What is settled once somebody has answered, with a stop that is recorded or without.

use std::time::Duration;

use super::{Decided, Settling};
use crate::ledger::record::RoomCause;
use crate::model::attempt::{Answered, EndCause, Event, Settled, Stop, StopWhy};
use crate::model::disposition::{Disposition, Rang};
use crate::model::verdict::Leg;

impl Settling<'_> {
    /// By the dial's own answer; a stop that is recorded has deleted the room, or is about to.
    pub(super) fn answered(mut self, leg: Leg) -> Decided {
        self.placed(leg);
        match self.attempt.stop.clone() {
            Some(stop) => self.hung_up(&stop),
            None => self.goes_on(),
        }
    }

    /// The placement marker; the first one stays.
    pub(super) fn placed(&mut self, leg: Leg) {
        let (now, evidence) = (self.now, self.evidence.clone());
        if let Some(placed) = &mut self.attempt.placed {
            placed.answer.get_or_insert(Answered {
                at: now,
                leg,
                proof: evidence,
            });
        }
        self.contact.held.last_answer = Some(now);
        self.number.held.last_answer = Some(now);
        self.attempt.settled = Some(Settled::new(Disposition::Answered, Rang::Rang, true, now));
    }

    /// Somebody talks. A stop that is recorded yet is to be carried out: at once.
    pub(super) fn goes_on(mut self) -> Decided {
        let next = match self.attempt.stop {
            Some(_) => Duration::ZERO,
            None => self.settler.config.reconcile.answered_look,
        };
        self.attempt.look_at = Some(self.now.plus(next));
        self.apply_alive(Event::Answer)
    }

    /// Answered while a stop was recorded: the room is being deleted, so it is over. Whether
    /// the deletion has reached the phone is not known here, and until then the person talks:
    /// whoever waits for this contact would ring beside it, so it stays held as after silence.
    fn hung_up(mut self, stop: &Stop) -> Decided {
        let (end, cause) = match stop.why {
            StopWhy::Cancel => (EndCause::Canceled, RoomCause::Canceled),
            StopWhy::AgentLost => (EndCause::AgentLost, RoomCause::AgentLost),
            StopWhy::Maximum => (EndCause::Maximum, RoomCause::Maximum),
        };
        if let Some(settled) = &mut self.attempt.settled {
            settled.end_cause = Some(end);
        }
        let until = self.now.plus(self.settler.config.dial.hold_after_silence);
        self.apply(Event::End, cause, Some(until))
    }
}
