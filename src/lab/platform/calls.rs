//! Calls: from the bridge in the room to the end of the leg.
//!
//! The bridge joins **before** the INVITE leaves and makes a missing room, without
//! metadata: a dial that was held up rings in a room that had been deleted.

use std::time::Duration;

use livekit_protocol as lk;
use lk::DisconnectReason;
use lk::participant_info::Kind;

use super::agenda::{Event, Step};
use super::answer::{Code, Format, Refusal};
use super::callees::{Script, Talk, Told};
use super::machine::Platform;
use super::message::CallTicket;
use super::state::Leg;

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The bridge is on its way into the room.
    Joining,
    /// The INVITE has left.
    Dialing,
    /// The phone rings.
    Ringing,
    /// The callee answered.
    Active,
}

/// One `CreateSIPParticipant`.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) dial: lk::CreateSipParticipantRequest,
    /// Who waits for the answer.
    pub(super) ticket: Option<CallTicket>,
    pub(super) format: Format,
    pub(super) script: Script,
    pub(super) stage: Stage,
    /// Its bridge died: nothing is told any more, and the phone does as it likes.
    pub(super) killed: bool,
    /// How long the digits take after the answer.
    pub(super) digits: Duration,
    pub(super) participant: String,
    pub(super) sip_call_id: String,
    pub(super) identity: String,
    pub(super) from: String,
    pub(super) host: String,
    pub(super) ringing: Duration,
    pub(super) longest: Duration,
    /// The phone, while it rings or talks.
    pub(super) leg: Option<Leg>,
}

impl Platform {
    pub(super) fn step(&mut self, id: u64, step: Step) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        if call.killed {
            self.step_killed(id, step);
            return;
        }
        let stage = call.stage;
        match step {
            Step::Join => self.call_joins(id),
            Step::Publish => {
                let (room, sid) = (call.dial.room_name.clone(), call.participant.clone());
                self.publish(&room, &sid);
            }
            Step::Ring => self.status(id, Stage::Ringing),
            Step::Decide => self.decide(id),
            Step::Answered => self.tell_answered(id),
            Step::HangUp => self.hang_up(id),
            Step::RingTimeout if stage < Stage::Active => {
                let refusal = Refusal::inner(Code::Canceled, "sip request timed out");
                self.end_call(id, &refusal.answer(), DisconnectReason::UserUnavailable);
            }
            Step::Deadline => self.deadline(id),
            Step::Cut => {
                if let Some(ticket) = self.calls.get_mut(&id).and_then(|call| call.ticket.take()) {
                    self.cut(ticket);
                }
            }
            Step::BridgeLost => self.bridge_lost(id),
            Step::RingTimeout | Step::CarrierTimeout => {}
        }
    }

    fn call_joins(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (name, identity) = (call.dial.room_name.clone(), call.identity.clone());
        if !self.rooms.contains_key(&name) {
            if !self.settings.auto_create || self.now < self.nodes_back {
                let msg = "update room failed: requested room does not exist";
                let answer = Refusal::inner(Code::Internal, msg).answer();
                self.answer_call(id, answer);
                self.calls.remove(&id);
                return;
            }
            self.open_room(lk::CreateRoomRequest {
                name: name.clone(),
                ..lk::CreateRoomRequest::default()
            });
        }
        let mut person = self.person(Kind::Sip, &identity);
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.participant.clone_from(&person.info.sid);
        person.info.name.clone_from(&call.dial.participant_name);
        person
            .info
            .metadata
            .clone_from(&call.dial.participant_metadata);
        person.info.attributes = attributes(call);
        person.call = Some(id);
        self.join(&name, person);
        self.invite(id);
    }

    /// The INVITE leaves, unless the trunk's host cannot be reached; the rest of the
    /// call is put on the agenda.
    fn invite(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (script, ringing, waits) = (call.script, call.ringing, call.dial.wait_until_answered);
        let times = self.settings.times.clone();
        let metadata = self
            .rooms
            .get(&call.dial.room_name)
            .map(|room| room.record.metadata.clone())
            .unwrap_or_default();
        let invites = !matches!(script, Script::Unresolved | Script::Unreachable);
        if invites {
            let leg = self.counts.leg_starts(&call.dial, &metadata);
            self.leg_began(&leg);
            if let Some(call) = self.calls.get_mut(&id) {
                call.leg = Some(leg);
            }
        }
        self.status(id, Stage::Dialing);
        let mut put = |after: Duration, step| {
            self.agenda.put(self.now + after, Event::Call(id, step));
        };
        put(times.publish, Step::Publish);
        // The time of ringing bounds the wait for what the INVITE brings, and not what comes
        // before it leaves: the look-up of a name may take longer (read in livekit-sip).
        if invites {
            put(ringing, Step::RingTimeout);
        }
        let ring = times.ring_after;
        match script {
            Script::Answers { slow, .. } => {
                put(ring, Step::Ring);
                let answer = if slow {
                    times.slow_answer
                } else {
                    times.answer_after
                };
                put(ring + answer, Step::Decide);
            }
            Script::NoCodec => {
                put(ring, Step::Ring);
                put(ring + times.answer_after, Step::Decide);
            }
            Script::Rings => put(ring, Step::Ring),
            Script::RingsCut => {
                put(ring, Step::Ring);
                put(ring + times.cut_after, Step::Cut);
            }
            Script::Refuses { rings: true, .. } => {
                put(ring, Step::Ring);
                put(ring + times.refuse_after, Step::Decide);
            }
            Script::Refuses { rings: false, .. } | Script::Unreachable => {
                put(times.refuse_after, Step::Decide);
            }
            // Seen: over before the bridge had published anything.
            Script::Challenged => put(times.publish / 2, Step::Decide),
            Script::Silent => put(times.transaction, Step::Decide),
            Script::Unresolved => put(times.resolve, Step::Decide),
            Script::Trying => {}
        }
        if !waits {
            self.tell_answered(id);
        }
    }

    /// The call's status changes, in the room and in the counts. No webhook tells it.
    fn status(&mut self, id: u64, stage: Stage) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.stage = stage;
        let word = match stage {
            Stage::Joining | Stage::Dialing => "dialing",
            Stage::Ringing => "ringing",
            Stage::Active => "active",
        };
        if let Some(leg) = &mut call.leg {
            self.counts.leg_is(leg, word);
            if stage == Stage::Active {
                self.counts.leg_answered(leg);
            }
        }
        let full = if stage == Stage::Active {
            self.word(27)
        } else {
            String::new()
        };
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        if let Some(person) = self.rooms.get_mut(&call.dial.room_name).and_then(|room| {
            room.people
                .iter_mut()
                .find(|person| person.info.sid == call.participant)
        }) {
            if stage > Stage::Dialing {
                person.set("sip.callStatus", word);
            }
            if stage == Stage::Active {
                person.set("sip.callIDFull", &full);
                person.set("sip.callTag", "uas1");
            }
        }
    }

    fn decide(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let failed = |msg: &str| Refusal::inner(Code::FailedPrecondition, msg);
        let (refusal, reason) = match call.script {
            Script::Answers { talk, told, .. } => return self.answered(id, talk, told),
            Script::Refuses { status, .. } => (status.refusal(), status.disconnect()),
            Script::Challenged => (
                failed("sip server required auth, but no username or password was provided"),
                DisconnectReason::UserRejected,
            ),
            Script::NoCodec => (
                failed("common audio codec not found"),
                DisconnectReason::UserRejected,
            ),
            Script::Silent => {
                let msg = "transaction failed to complete (0 intermediate responses)";
                let refusal = Refusal::inner(Code::Canceled, msg);
                (refusal, DisconnectReason::UserUnavailable)
            }
            Script::Unresolved => {
                let msg = "fail to resolve target for \"no-such-host.invalid\": lookup \
                           _sip._udp.no-such-host.invalid on 10.255.255.53:53: no such host";
                let refusal = Refusal::inner(Code::InvalidArgument, msg);
                (refusal, DisconnectReason::ClientInitiated)
            }
            Script::Unreachable => (
                failed(
                    "transport<TCP> dial err=dial tcp :0->127.0.0.1:5999: connect: connection refused",
                ),
                DisconnectReason::ClientInitiated,
            ),
            Script::Rings | Script::RingsCut | Script::Trying => return,
        };
        self.end_call(id, &refusal.answer(), reason);
    }

    fn answered(&mut self, id: u64, talk: Talk, told: Told) {
        self.status(id, Stage::Active);
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let talks = match talk {
            Talk::Long => self.settings.times.talk,
            Talk::Short => self.settings.times.short_talk,
        };
        let until = self.now + talks.min(call.longest);
        let told_at = self.now + call.digits;
        let step = match told {
            Told::Answered => Some(Step::Answered),
            Told::Lost => Some(Step::Cut),
            Told::TooLate => None,
        };
        self.agenda.put(until, Event::Call(id, Step::HangUp));
        if let Some(step) = step {
            self.agenda.put(told_at, Event::Call(id, step));
        }
    }

    fn tell_answered(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let info = lk::SipParticipantInfo {
            participant_id: call.participant.clone(),
            participant_identity: call.identity.clone(),
            room_name: call.dial.room_name.clone(),
            sip_call_id: call.sip_call_id.clone(),
        };
        let answer = call.format.write(&info);
        self.answer_call(id, answer);
    }
}

/// What the bridge's participant says of itself when it joins.
fn attributes(call: &Call) -> std::collections::HashMap<String, String> {
    let mut attributes = call.dial.participant_attributes.clone();
    let mut set = |key: &str, value: &str| attributes.insert(key.to_owned(), value.to_owned());
    set("sip.callID", &call.sip_call_id);
    set("sip.callStatus", "dialing");
    set("sip.trunkID", &call.dial.sip_trunk_id);
    if !call.dial.hide_phone_number {
        set("sip.phoneNumber", &call.dial.sip_call_to);
        set("sip.trunkPhoneNumber", &call.from);
        set("sip.hostname", &call.host);
    }
    attributes
}
