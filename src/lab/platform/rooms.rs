//! Rooms: created, listed, deleted, closed when nobody is left.

use std::time::Duration;

use livekit_protocol as lk;
use lk::DisconnectReason;

use super::agenda::{Entry, Event, Place};
use super::answer::{Code, Refusal};
use super::machine::Platform;
use super::people::Person;
use super::serve::Caller;

/// In bytes, as livekit-server 1.13.5 has it.
const NAME_LIMIT: usize = 256;
/// In bytes, since livekit-server 1.13.2.
const METADATA_LIMIT: usize = 512 * 1024;

/// What the records of every room list.
const CODECS: [&str; 10] = [
    "audio/PCMU",
    "audio/PCMA",
    "audio/opus",
    "audio/red",
    "video/VP8",
    "video/H264",
    "video/VP9",
    "video/AV1",
    "video/H265",
    "video/rtx",
];

/// A room that lives on the node.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) record: lk::Room,
    pub(super) people: Vec<Person>,
    pub(super) dispatches: Vec<lk::AgentDispatch>,
    pub(super) created: Duration,
    /// Whether anybody but an agent ever joined.
    pub(super) joined: bool,
    /// When the last of them left.
    pub(super) left: Duration,
    /// When it is next looked at whether it is over.
    pub(super) look: Option<Entry>,
    /// Whether the records list it.
    pub(super) listed: bool,
    /// Whether the records know its node, so that a delete reaches it.
    pub(super) routed: bool,
    /// The counts as last refreshed, and in which interval.
    counts: (u32, u32),
    refreshed: u128,
}

impl Room {
    pub(super) fn by_identity(&self, identity: &str) -> Option<&Person> {
        self.people
            .iter()
            .find(|person| person.info.identity == identity)
    }

    pub(super) fn by_sid(&self, sid: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.info.sid == sid)
    }

    pub(super) fn departure(&self) -> Duration {
        Duration::from_secs(u64::from(self.record.departure_timeout))
    }

    fn empty(&self) -> Duration {
        Duration::from_secs(u64::from(self.record.empty_timeout))
    }

    /// Refreshes the counts if an interval has begun. Called before every change, so
    /// that they are those of the interval's beginning: a short call is never counted,
    /// as was seen.
    pub(super) fn count(&mut self, now: Duration, every: Duration) {
        let interval = now.saturating_sub(self.created).as_nanos() / every.as_nanos().max(1);
        if interval <= self.refreshed {
            return;
        }
        self.refreshed = interval;
        let guests = self.people.iter().filter(|person| !person.is_dependent());
        let publishers = self.people.iter().filter(|person| person.track.is_some());
        self.counts = (number(guests.count()), number(publishers.count()));
    }

    /// The room as its events and answers tell it.
    pub(super) fn told(&mut self, now: Duration, every: Duration) -> lk::Room {
        self.count(now, every);
        lk::Room {
            num_participants: self.counts.0,
            num_publishers: self.counts.1,
            ..self.record.clone()
        }
    }

    /// Whether it has been without callees for so long that it closes.
    fn is_over(&self, now: Duration) -> bool {
        if self.people.iter().any(|person| !person.is_dependent()) {
            return false;
        }
        if self.joined {
            now >= self.left + self.departure()
        } else {
            now >= self.created + self.empty()
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Platform {
    pub(super) fn create_room(
        &mut self,
        caller: &Caller,
        request: lk::CreateRoomRequest,
    ) -> Result<lk::Room, Refusal> {
        caller.may(caller.claims.video.room_create)?;
        if request.name.len() > NAME_LIMIT {
            let msg = format!("room name length exceeds limits: max length {NAME_LIMIT}");
            return Err(Refusal::inner(Code::InvalidArgument, &msg));
        }
        if request.metadata.len() > METADATA_LIMIT {
            let what = "metadata size exceeds limits";
            let msg = format!("{what} {METADATA_LIMIT}");
            return Err(Refusal::own(Code::InvalidArgument, msg).with("argument", what.to_owned()));
        }
        if self.now < self.nodes_back {
            return Err(Refusal::own(
                Code::Unknown,
                "could not find any available nodes".to_owned(),
            ));
        }
        let (now, every) = (self.now, self.settings.times.counts);
        let name = request.name.clone();
        self.open_room(request);
        match self.rooms.get_mut(&name) {
            Some(room) => {
                room.listed = true;
                room.routed = true;
                Ok(room.told(now, every))
            }
            None => Err(Refusal::own(Code::Internal, "room is gone".to_owned())),
        }
    }

    /// Makes a room, unless one of that name lives: that one stays as it is.
    pub(super) fn open_room(&mut self, request: lk::CreateRoomRequest) {
        if self.rooms.contains_key(&request.name) {
            return;
        }
        let name = request.name.clone();
        let agents = request.agents.clone();
        let record = self.new_record(request);
        let room = Room {
            record,
            people: Vec::new(),
            dispatches: Vec::new(),
            created: self.now,
            joined: false,
            left: self.now,
            look: None,
            listed: true,
            routed: true,
            counts: (0, 0),
            refreshed: 0,
        };
        let event = lk::WebhookEvent {
            room: Some(room.record.clone()),
            ..lk::WebhookEvent::default()
        };
        let empty = room.empty();
        self.rooms.insert(name.clone(), room);
        self.look_after(&name, empty);
        self.tell(&name, "room_started", event);
        if agents.is_empty() {
            self.dispatch(&name, lk::CreateAgentDispatchRequest::default());
        }
        for agent in agents {
            let wanted = lk::CreateAgentDispatchRequest {
                agent_name: agent.agent_name,
                metadata: agent.metadata,
                deployment: agent.deployment,
                attributes: agent.attributes,
                ..lk::CreateAgentDispatchRequest::default()
            };
            self.dispatch(&name, wanted);
        }
    }

    /// A new record; over a stale one of that name, whose sid and times stay.
    fn new_record(&mut self, request: lk::CreateRoomRequest) -> lk::Room {
        let times = &self.settings.times;
        let or = |asked: u32, default: Duration| {
            if asked > 0 {
                asked
            } else {
                u32::try_from(default.as_secs()).unwrap_or(u32::MAX)
            }
        };
        let (empty, departure) = (
            or(request.empty_timeout, times.empty),
            or(request.departure_timeout, times.departure),
        );
        if let Some(mut record) = self.stale.remove(&request.name).map(|stale| stale.room) {
            if request.empty_timeout > 0 {
                record.empty_timeout = empty;
            }
            if request.departure_timeout > 0 {
                record.departure_timeout = departure;
            }
            if !request.metadata.is_empty() {
                record.metadata = request.metadata;
            }
            return record;
        }
        let micros = self.wall_micros();
        lk::Room {
            sid: self.sid("RM_"),
            name: request.name,
            empty_timeout: empty,
            departure_timeout: departure,
            max_participants: request.max_participants,
            creation_time: micros.div_euclid(1_000_000),
            creation_time_ms: micros.div_euclid(1_000),
            turn_password: self.word(44),
            metadata: request.metadata,
            ..lk::Room::default()
        }
    }

    pub(super) fn list_rooms(
        &mut self,
        caller: &Caller,
        request: lk::ListRoomsRequest,
    ) -> Result<lk::ListRoomsResponse, Refusal> {
        caller.may(caller.claims.video.room_list)?;
        let names = if request.names.is_empty() {
            let mut all: Vec<String> = self
                .rooms
                .keys()
                .chain(self.stale.keys())
                .cloned()
                .collect();
            all.sort_unstable();
            all
        } else {
            request.names
        };
        let (now, every) = (self.now, self.settings.times.counts);
        let rooms = names
            .iter()
            .filter_map(|name| match self.rooms.get_mut(name) {
                Some(room) => room.listed.then(|| room.told(now, every)),
                None => self.stale.get(name).map(|stale| stale.room.clone()),
            })
            .map(|room| lk::Room {
                enabled_codecs: CODECS
                    .iter()
                    .map(|mime| lk::Codec {
                        mime: (*mime).to_owned(),
                        fmtp_line: String::new(),
                    })
                    .collect(),
                ..room
            })
            .collect();
        Ok(lk::ListRoomsResponse { rooms })
    }

    pub(super) fn delete_room(
        &mut self,
        caller: &Caller,
        request: &lk::DeleteRoomRequest,
    ) -> Result<lk::DeleteRoomResponse, Refusal> {
        caller.may(caller.claims.video.room_create)?;
        let missing = || Refusal::inner(Code::NotFound, "requested room does not exist");
        match self.rooms.get(&request.room) {
            Some(room) if !room.listed => return Err(missing()),
            Some(room) if !room.routed => {
                let msg = "could not find object".to_owned();
                return Err(Refusal::own(Code::Unknown, msg));
            }
            Some(_) => self.close_room(&request.room, DisconnectReason::RoomDeleted),
            None if self.stale.contains_key(&request.room) => {
                return Err(Refusal::no_response().after(self.settings.times.no_room));
            }
            None => return Err(missing()),
        }
        Ok(lk::DeleteRoomResponse::default())
    }

    pub(super) fn update_room_metadata(
        &mut self,
        caller: &Caller,
        request: lk::UpdateRoomMetadataRequest,
    ) -> Result<lk::Room, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        let (now, every) = (self.now, self.settings.times.counts);
        match self.rooms.get_mut(&request.room) {
            Some(room) => {
                room.record.metadata = request.metadata;
                Ok(room.told(now, every))
            }
            None => Err(Refusal::inner(
                Code::NotFound,
                "requested room does not exist",
            )),
        }
    }

    /// Ends a room with everybody in it: the callees leave first, then the agents, then
    /// it is finished.
    pub(super) fn close_room(&mut self, name: &str, reason: DisconnectReason) {
        let Some(room) = self.rooms.get(name) else {
            return;
        };
        let (agents, guests): (Vec<&Person>, Vec<&Person>) =
            room.people.iter().partition(|person| person.is_dependent());
        let sids: Vec<String> = guests
            .iter()
            .chain(&agents)
            .map(|person| person.info.sid.clone())
            .collect();
        for sid in sids {
            self.put_out(name, &sid, reason);
        }
        let (now, every) = (self.now, self.settings.times.counts);
        if let Some(mut room) = self.rooms.remove(name) {
            if let Some(look) = room.look {
                self.agenda.take_back(look);
            }
            let event = lk::WebhookEvent {
                room: Some(room.told(now, every)),
                ..lk::WebhookEvent::default()
            };
            self.tell(name, "room_finished", event);
        }
    }

    /// Looks after `span` whether the room is over; an earlier look is taken back.
    pub(super) fn look_after(&mut self, name: &str, span: Duration) {
        let Some(room) = self.rooms.get_mut(name) else {
            return;
        };
        let place = Place {
            name: name.to_owned(),
            sid: room.record.sid.clone(),
        };
        let look = self.agenda.put(self.now + span, Event::Idle(place));
        if let Some(earlier) = room.look.replace(look) {
            self.agenda.take_back(earlier);
        }
    }

    pub(super) fn idle(&mut self, place: &Place) {
        let over = self
            .rooms
            .get(&place.name)
            .is_some_and(|room| room.record.sid == place.sid && room.is_over(self.now));
        if over {
            self.close_room(&place.name, DisconnectReason::RoomClosed);
        }
    }
}
