//! Who is in a room: the callee's leg and the agents.
//!
//! A listed participant is a record in LiveKit's Redis; whether the room lives is asked
//! by [`Client::dispatches`].

use std::collections::HashMap;

use livekit_protocol as proto;
use proto::participant_info;

use super::call::{Call, not_found};
use super::client::Client;
use super::token::Grant;
use super::wire::Method;
use crate::model::id::RoomName;
pub use crate::model::observation::CallStatus;

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// The identity; of a callee's leg, the session's.
    pub identity: String,
    /// LiveKit's id of this join (`PA_…`).
    pub sid: String,
    /// What it is.
    pub kind: Kind,
    /// How far its join has come.
    pub state: State,
    /// The name that an agent registered with (`lk.agent.name`, of old `lk.agent_name`); empty
    /// for a worker without a name.
    pub agent_name: Option<String>,
    /// Where a SIP leg stands (`sip.callStatus`).
    pub call_status: Option<CallStatus>,
    /// LiveKit's id of the SIP call (`SCL_…`).
    pub call_id: Option<String>,
}

/// What a participant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A SIP leg.
    Sip,
    /// An agent.
    Agent,
    /// Anyone else.
    Other,
}

/// How far a join has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not yet in: joining or joined without media.
    Joining,
    /// In.
    Active,
    /// Out, or unknown to us.
    Other,
}

impl Client {
    /// The participant of this identity, or `None` (404) if there is none.
    pub async fn participant(&self, room: &RoomName, identity: &str) -> Call<Option<Participant>> {
        let request = proto::RoomParticipantIdentity {
            room: room.as_str().to_owned(),
            identity: identity.to_owned(),
            ..Default::default()
        };
        let reply = self
            .safe(Method::GetParticipant, Grant::Room(room), &request)
            .await;
        if not_found(&reply.answer) {
            return Call::Done(None);
        }
        Call::<proto::ParticipantInfo>::read(&reply.answer).map(|info| Some(info.into()))
    }

    /// All participants of a room; none too if the room is not there.
    pub async fn participants(&self, room: &RoomName) -> Call<Vec<Participant>> {
        let request = proto::ListParticipantsRequest {
            room: room.as_str().to_owned(),
        };
        let reply = self
            .safe(Method::ListParticipants, Grant::Room(room), &request)
            .await;
        Call::<proto::ListParticipantsResponse>::read(&reply.answer)
            .map(|list| list.participants.into_iter().map(Into::into).collect())
    }
}

impl From<proto::ParticipantInfo> for Participant {
    fn from(info: proto::ParticipantInfo) -> Self {
        let kind = match info.kind() {
            participant_info::Kind::Sip => Kind::Sip,
            participant_info::Kind::Agent => Kind::Agent,
            participant_info::Kind::Standard
            | participant_info::Kind::Ingress
            | participant_info::Kind::Egress
            | participant_info::Kind::Connector
            | participant_info::Kind::Bridge => Kind::Other,
        };
        let state = match participant_info::State::try_from(info.state) {
            Ok(participant_info::State::Joining | participant_info::State::Joined) => {
                State::Joining
            }
            Ok(participant_info::State::Active) => State::Active,
            Ok(participant_info::State::Disconnected) | Err(_) => State::Other,
        };
        let attributes = &info.attributes;
        Self {
            kind,
            state,
            agent_name: attribute(attributes, "lk.agent.name")
                .or_else(|| attribute(attributes, "lk.agent_name")),
            call_status: attributes
                .get("sip.callStatus")
                .map(|text| CallStatus::read(text)),
            call_id: attribute(attributes, "sip.callID"),
            identity: info.identity,
            sid: info.sid,
        }
    }
}

fn attribute(attributes: &HashMap<String, String>, name: &str) -> Option<String> {
    attributes.get(name).cloned()
}
