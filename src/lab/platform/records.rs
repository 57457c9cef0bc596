//! The platform's records (its Redis), which are not the rooms: what reads them, and
//! how the two part.

use livekit_protocol as lk;
use lk::DisconnectReason;

use super::agenda::Event;
use super::answer::{Code, Refusal};
use super::machine::Platform;
use super::serve::Caller;

/// The record of a room that lives nowhere.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) room: lk::Room,
    pub(super) people: Vec<lk::ParticipantInfo>,
}

impl Platform {
    /// Of a missing room: an empty list, not an error.
    pub(super) fn list_participants(
        &mut self,
        caller: &Caller,
        request: &lk::ListParticipantsRequest,
    ) -> Result<lk::ListParticipantsResponse, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        let participants = self.recorded(&request.room);
        self.legs_listed(&request.room, &participants);
        Ok(lk::ListParticipantsResponse { participants })
    }

    /// What whoever listed a room was told of its phones.
    fn legs_listed(&mut self, room: &str, listed: &[lk::ParticipantInfo]) {
        let calls = self.calls.values();
        for call in calls.filter(|call| call.dial.room_name == room) {
            let Some(leg) = &call.leg else { continue };
            let answered = listed.iter().any(|person| {
                person.identity == call.identity
                    && person
                        .attributes
                        .get("sip.callStatus")
                        .is_some_and(|s| s == "active")
            });
            self.counts.leg_listed(leg, answered);
        }
    }

    pub(super) fn get_participant(
        &mut self,
        caller: &Caller,
        request: &lk::RoomParticipantIdentity,
    ) -> Result<lk::ParticipantInfo, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        self.recorded(&request.room)
            .into_iter()
            .find(|info| info.identity == request.identity)
            .ok_or_else(no_participant)
    }

    pub(super) fn remove_participant(
        &mut self,
        caller: &Caller,
        request: &lk::RoomParticipantIdentity,
    ) -> Result<lk::RemoveParticipantResponse, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        let Some(room) = self.rooms.get(&request.room) else {
            let stale = self.stale.get(&request.room).is_some_and(|stale| {
                stale
                    .people
                    .iter()
                    .any(|info| info.identity == request.identity)
            });
            return Err(if stale {
                Refusal::no_response().after(self.settings.times.no_room)
            } else {
                no_participant()
            });
        };
        let sid = room
            .by_identity(&request.identity)
            .filter(|person| person.recorded)
            .map(|person| person.info.sid.clone())
            .ok_or_else(no_participant)?;
        self.put_out(&request.room, &sid, DisconnectReason::ParticipantRemoved);
        Ok(lk::RemoveParticipantResponse::default())
    }

    fn recorded(&self, name: &str) -> Vec<lk::ParticipantInfo> {
        match self.rooms.get(name) {
            Some(room) => room
                .people
                .iter()
                .filter(|person| person.recorded)
                .map(|person| person.info.clone())
                .collect(),
            None => self
                .stale
                .get(name)
                .map(|stale| stale.people.clone())
                .unwrap_or_default(),
        }
    }

    /// FLUSHALL while phones ring: every record is gone, no node is known for a while,
    /// and the rooms live on. They are listed again later, without their participants.
    pub(super) fn flush_records(&mut self) {
        self.stale.clear();
        for room in self.rooms.values_mut() {
            room.listed = false;
            room.routed = false;
            for person in &mut room.people {
                person.recorded = false;
            }
        }
        self.trunks.clear();
        self.nodes_back = self.now + self.settings.times.nodes_back;
        self.agenda.put(self.nodes_back, Event::Listed);
        self.agenda.put(self.nodes_back, Event::TrunksBack);
    }

    pub(super) fn list_again(&mut self) {
        for room in self.rooms.values_mut() {
            room.listed = true;
        }
    }
}

fn no_participant() -> Refusal {
    Refusal::inner(Code::NotFound, "participant does not exist")
}
