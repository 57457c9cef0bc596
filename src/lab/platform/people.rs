//! Participants: the bridge's, one for each call, and the agents'.

use livekit_protocol as lk;
use lk::DisconnectReason;
use lk::participant_info::{Kind, State};

use super::machine::Platform;

/// Somebody in a room.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) info: lk::ParticipantInfo,
    pub(super) track: Option<lk::TrackInfo>,
    /// The call of a bridge.
    pub(super) call: Option<u64>,
    /// The dispatch of an agent.
    pub(super) dispatch: Option<String>,
    /// Whether the platform's records have it; they are lost in a flush.
    pub(super) recorded: bool,
}

impl Person {
    /// Agents neither keep a room open nor are counted in it.
    pub(super) fn is_dependent(&self) -> bool {
        self.info.kind() == Kind::Agent
    }

    /// Changes an attribute, as the bridge does when the call's status changes.
    pub(super) fn set(&mut self, attribute: &str, value: &str) {
        self.info
            .attributes
            .insert(attribute.to_owned(), value.to_owned());
        self.info.version += 1;
    }
}

impl Platform {
    /// A participant as it is when it has just joined.
    pub(super) fn person(&mut self, kind: Kind, identity: &str) -> Person {
        let micros = self.wall_micros();
        #[expect(deprecated, reason = "the platform still writes these fields")]
        let permission = lk::ParticipantPermission {
            can_subscribe: true,
            can_publish: true,
            can_publish_data: true,
            can_update_metadata: true,
            agent: kind == Kind::Agent,
            ..lk::ParticipantPermission::default()
        };
        let info = lk::ParticipantInfo {
            sid: self.sid("PA_"),
            identity: identity.to_owned(),
            state: State::Active.into(),
            joined_at: micros.div_euclid(1_000_000),
            joined_at_ms: micros.div_euclid(1_000),
            version: 2,
            permission: Some(permission),
            kind: kind.into(),
            ..lk::ParticipantInfo::default()
        };
        Person {
            info,
            track: None,
            call: None,
            dispatch: None,
            recorded: true,
        }
    }

    /// Lets somebody into a living room. Who has the same identity is put out first.
    pub(super) fn join(&mut self, name: &str, person: Person) {
        let twin = self
            .rooms
            .get(name)
            .and_then(|room| room.by_identity(&person.info.identity))
            .map(|twin| twin.info.sid.clone());
        if let Some(twin) = twin {
            self.put_out(name, &twin, DisconnectReason::DuplicateIdentity);
        }
        let (now, every) = (self.now, self.settings.times.counts);
        let Some(room) = self.rooms.get_mut(name) else {
            return;
        };
        room.count(now, every);
        room.joined |= !person.is_dependent();
        let event = lk::WebhookEvent {
            room: Some(room.told(now, every)),
            participant: Some(person.info.clone()),
            ..lk::WebhookEvent::default()
        };
        room.people.push(person);
        self.tell(name, "participant_joined", event);
    }

    /// The bridge publishes its microphone.
    pub(super) fn publish(&mut self, name: &str, sid: &str) {
        let track = self.microphone();
        let (now, every) = (self.now, self.settings.times.counts);
        let Some(room) = self.rooms.get_mut(name) else {
            return;
        };
        room.count(now, every);
        let Some(person) = room.people.iter_mut().find(|person| person.info.sid == sid) else {
            return;
        };
        let track = lk::TrackInfo {
            name: person.info.identity.clone(),
            ..track
        };
        person.track = Some(track.clone());
        person.info.tracks = vec![track];
        person.info.is_publisher = true;
        person.info.version += 2;
        self.tell_track(name, "track_published", sid);
    }

    fn microphone(&mut self) -> lk::TrackInfo {
        lk::TrackInfo {
            sid: self.sid("TR_AM"),
            source: lk::TrackSource::Microphone.into(),
            mime_type: "audio/opus".to_owned(),
            mid: "0".to_owned(),
            codecs: vec![lk::SimulcastCodecInfo {
                mime_type: "audio/opus".to_owned(),
                mid: "0".to_owned(),
                cid: "audio".to_owned(),
                video_layer_mode: lk::video_layer::Mode::OneSpatialLayerPerStream.into(),
                ..lk::SimulcastCodecInfo::default()
            }],
            stream: "camera".to_owned(),
            version: Some(lk::TimedVersion {
                unix_micro: self.wall_micros(),
                ticks: 0,
            }),
            backup_codec_policy: lk::BackupCodecPolicy::Simulcast.into(),
            ..lk::TrackInfo::default()
        }
    }

    /// Track events name the room and the participant only.
    fn tell_track(&mut self, name: &str, event: &'static str, sid: &str) {
        let Some(room) = self.rooms.get(name) else {
            return;
        };
        let Some(person) = room.by_sid(sid) else {
            return;
        };
        let Some(track) = person.track.clone() else {
            return;
        };
        let body = lk::WebhookEvent {
            room: Some(lk::Room {
                sid: room.record.sid.clone(),
                name: room.record.name.clone(),
                ..lk::Room::default()
            }),
            participant: Some(lk::ParticipantInfo {
                sid: person.info.sid.clone(),
                identity: person.info.identity.clone(),
                ..lk::ParticipantInfo::default()
            }),
            track: Some(track),
            ..lk::WebhookEvent::default()
        };
        self.tell(name, event, body);
    }

    /// Somebody leaves a room, of itself or not. A room without callees closes after
    /// its departure timeout, although agents are still in it.
    pub(super) fn leave(&mut self, name: &str, sid: &str, reason: DisconnectReason) {
        self.tell_track(name, "track_unpublished", sid);
        let (now, every) = (self.now, self.settings.times.counts);
        let Some(room) = self.rooms.get_mut(name) else {
            return;
        };
        room.count(now, every);
        let Some(at) = room.people.iter().position(|person| person.info.sid == sid) else {
            return;
        };
        let person = room.people.remove(at);
        let mut info = person.info.clone();
        info.state = State::Disconnected.into();
        info.disconnect_reason = reason.into();
        info.version += 1;
        info.tracks.clear();
        let event = lk::WebhookEvent {
            room: Some(room.told(now, every)),
            participant: Some(info),
            ..lk::WebhookEvent::default()
        };
        if !person.is_dependent() {
            room.left = now;
            let departure = room.departure();
            self.look_after(name, departure);
        }
        self.tell(name, "participant_left", event);
    }

    /// Puts somebody out: a bridge hangs up for it.
    pub(super) fn put_out(&mut self, name: &str, sid: &str, reason: DisconnectReason) {
        let call = self
            .rooms
            .get(name)
            .and_then(|room| room.by_sid(sid))
            .and_then(|person| person.call);
        self.leave(name, sid, reason);
        if let Some(call) = call {
            self.call_put_out(call);
        }
    }
}
