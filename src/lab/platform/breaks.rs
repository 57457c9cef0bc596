//! Processes of the platform that die: the bridge, the server, both.

use livekit_protocol as lk;
use lk::DisconnectReason;

use super::agenda::{Event, Step};
use super::machine::Platform;
use super::people::Person;
use super::records::Stale;

impl Platform {
    /// The bridge is killed while phones ring. No CANCEL leaves, so they ring on; the
    /// server gives the participants up after a while, and dials are answered at their
    /// deadline only.
    pub(super) fn kill_bridge(&mut self) {
        let lost_at = self.now + self.settings.times.bridge_lost;
        let ids: Vec<u64> = self.calls.keys().copied().collect();
        for id in ids {
            self.bridge_dies(id);
            self.agenda.put(lost_at, Event::Call(id, Step::BridgeLost));
        }
    }

    /// The server is killed and comes back: connections break at once, the bridges ring
    /// on and join again, and their events are sent a second time under new ids.
    pub(super) fn crash_server(&mut self) {
        self.break_connections();
        self.hooks.forget();
        self.down_until = self.now + self.settings.times.restart;
        self.agenda.put(self.down_until, Event::ServerBack);
    }

    /// The bridges join again, as new participants of the same rooms. Seen once: a
    /// phone that had rung for long was told as `dialing` from then on.
    pub(super) fn server_back(&mut self) {
        let names: Vec<String> = self.rooms.keys().cloned().collect();
        for name in names {
            let Some(room) = self.rooms.get_mut(&name) else {
                continue;
            };
            let people = std::mem::take(&mut room.people);
            let record = room.record.clone();
            if people.is_empty() {
                self.rooms.remove(&name);
                let room = record;
                self.stale.insert(
                    name,
                    Stale {
                        room,
                        people: Vec::new(),
                    },
                );
                continue;
            }
            let started = lk::WebhookEvent {
                room: Some(record),
                ..lk::WebhookEvent::default()
            };
            self.tell(&name, "room_started", started);
            for person in people {
                self.join_again(&name, person);
            }
        }
    }

    fn join_again(&mut self, name: &str, old: Person) {
        let mut person = self.person(old.info.kind(), &old.info.identity);
        person.info.name = old.info.name;
        person.info.metadata = old.info.metadata;
        person.info.attributes = old.info.attributes;
        person.call = old.call;
        person.dispatch = old.dispatch;
        if let Some(status) = person.info.attributes.get_mut("sip.callStatus")
            && status == "ringing"
        {
            "dialing".clone_into(status);
        }
        let sid = person.info.sid.clone();
        if let Some(call) = old.call.and_then(|id| self.calls.get_mut(&id)) {
            call.participant.clone_from(&sid);
        }
        self.join(name, person);
        if old.track.is_some() {
            self.publish(name, &sid);
        }
    }

    /// Server and bridge are killed together and restarted: nothing lives, every record
    /// stays, and `participant_left` is never sent.
    pub(super) fn restart_all(&mut self) {
        self.break_connections();
        self.hooks.forget();
        let ids: Vec<u64> = self.calls.keys().copied().collect();
        for id in ids {
            self.bridge_dies(id);
        }
        for (name, room) in std::mem::take(&mut self.rooms) {
            let people = room
                .people
                .into_iter()
                .filter(|person| person.recorded)
                .map(|person| person.info)
                .collect();
            if room.listed {
                let room = room.record;
                self.stale.insert(name, Stale { room, people });
            }
        }
        self.down_until = self.now + self.settings.times.restart;
    }

    fn break_connections(&mut self) {
        let waiting: Vec<_> = self.waiting.iter().copied().collect();
        for ticket in waiting {
            self.cut(ticket);
        }
    }

    /// The participant of a killed bridge times out.
    pub(super) fn bridge_lost(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (name, sid) = (call.dial.room_name.clone(), call.participant.clone());
        self.leave(&name, &sid, DisconnectReason::ConnectionTimeout);
    }
}
