//! How calls end: hung up, refused, timed out, put out of their room, or with a bridge that
//! died.

use livekit_protocol as lk;
use lk::DisconnectReason;

use super::agenda::{Event, Step};
use super::answer::{Answer, Code, Refusal};
use super::calls::Stage;
use super::machine::Platform;

impl Platform {
    /// The callee hangs up, or the longest duration is over.
    pub(super) fn hang_up(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (name, sid) = (call.dial.room_name.clone(), call.participant.clone());
        if let Some(person) = self
            .rooms
            .get_mut(&name)
            .and_then(|room| room.people.iter_mut().find(|person| person.info.sid == sid))
        {
            person.set("sip.callStatus", "hangup");
        }
        self.leave(&name, &sid, DisconnectReason::ClientInitiated);
        self.drop_call(id);
    }

    /// The server's deadline. A call that is not answered by then ends with it; one that
    /// was answered goes on although its caller hears 408.
    pub(super) fn deadline(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        if call.ticket.is_none() && (!call.dial.wait_until_answered || call.stage == Stage::Active)
        {
            return;
        }
        let answer = Refusal::inner(Code::DeadlineExceeded, "request timed out").answer();
        if call.stage == Stage::Active {
            self.answer_call(id, answer);
        } else {
            self.end_call(id, &answer, DisconnectReason::UserUnavailable);
        }
    }

    /// Who waits gets this answer, the bridge leaves and the phone is silent.
    pub(super) fn end_call(&mut self, id: u64, answer: &Answer, reason: DisconnectReason) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (name, sid) = (call.dial.room_name.clone(), call.participant.clone());
        self.leave(&name, &sid, reason);
        self.answer_call(id, answer.clone());
        self.drop_call(id);
    }

    /// Somebody put the bridge out of its room: CANCEL, or BYE. The caller cannot tell
    /// it from a ringing timeout.
    pub(super) fn call_put_out(&mut self, id: u64) {
        if self.calls.get(&id).is_some_and(|call| call.killed) {
            return;
        }
        let refusal = Refusal::inner(Code::Canceled, "sip request timed out");
        self.answer_call(id, refusal.answer());
        self.forget_call(id, true);
    }

    pub(super) fn answer_call(&mut self, id: u64, answer: Answer) {
        if let Some(ticket) = self.calls.get_mut(&id).and_then(|call| call.ticket.take()) {
            self.answer(ticket, answer);
        }
    }

    fn drop_call(&mut self, id: u64) {
        self.forget_call(id, false);
    }

    fn forget_call(&mut self, id: u64, put_out: bool) {
        if let Some(leg) = self.calls.remove(&id).and_then(|call| call.leg) {
            self.leg_ends(&leg, put_out);
        }
    }

    /// The bridge of this call dies. A talking callee hangs up; a phone that rings goes
    /// on until its carrier gives up.
    pub(super) fn bridge_dies(&mut self, id: u64) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.killed = true;
        if call.stage == Stage::Active
            && let Some(leg) = call.leg.take()
        {
            self.leg_ends(&leg, false);
        }
    }

    pub(super) fn step_killed(&mut self, id: u64, step: Step) {
        match step {
            Step::BridgeLost => self.bridge_lost(id),
            // Nobody is left who would cancel it.
            Step::RingTimeout => {
                let at = self.now + self.settings.times.rings_on;
                self.agenda.put(at, Event::Call(id, Step::CarrierTimeout));
            }
            Step::CarrierTimeout => {
                if let Some(leg) = self.calls.get_mut(&id).and_then(|call| call.leg.take()) {
                    self.leg_ends(&leg, false);
                }
            }
            Step::Deadline => {
                let refusal = Refusal::inner(Code::DeadlineExceeded, "request timed out");
                self.answer_call(id, refusal.answer());
            }
            Step::Join
            | Step::Publish
            | Step::Ring
            | Step::Decide
            | Step::Answered
            | Step::HangUp
            | Step::Cut => {}
        }
        self.forget_killed(id);
    }

    /// A killed call is kept until nothing more will be said of it.
    fn forget_killed(&mut self, id: u64) {
        let over = self.calls.get(&id).is_some_and(|call| {
            call.leg.is_none()
                && call.ticket.is_none()
                && self
                    .rooms
                    .get(&call.dial.room_name)
                    .is_none_or(|room| room.by_sid(&call.participant).is_none())
        });
        if over {
            self.calls.remove(&id);
        }
    }
}
