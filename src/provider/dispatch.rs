//! Agents are dispatched to rooms; and the list of dispatches tells whether a room lives.

use livekit_protocol as proto;

use super::call::{Call, no_response};
use super::client::Client;
use super::token::Grant;
use super::wire::Method;
use crate::model::id::{AgentName, RoomName};

/// LiveKit's id of a dispatch (`AD_…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchId(pub String);

/// A dispatch of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Its id.
    pub id: DispatchId,
    /// The agent's name; empty for the dispatch that the platform makes by itself.
    pub agent_name: String,
}

/// Whether a room lives on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lives {
    /// It does, with these dispatches.
    Yes(Vec<Dispatch>),
    /// It does not: no node answered for it.
    No,
}

impl Client {
    /// Dispatches an agent to a room. Sent once: two sends are two agents. After an unclear
    /// answer [`Client::dispatches`] decides.
    pub async fn create_dispatch(
        &self,
        room: &RoomName,
        agent: &AgentName,
        metadata: &str,
    ) -> Call<DispatchId> {
        let request = proto::CreateAgentDispatchRequest {
            room: room.as_str().to_owned(),
            agent_name: agent.as_str().to_owned(),
            metadata: metadata.to_owned(),
            ..Default::default()
        };
        let reply = self
            .once(Method::CreateDispatch, Grant::Room(room), &request)
            .await;
        Call::<proto::AgentDispatch>::read(&reply.answer).map(|dispatch| DispatchId(dispatch.id))
    }

    /// Whether a room lives, and its dispatches. LiveKit's records say that a room *was* made;
    /// this request is answered by the node that runs it, or, after some 3 s, by nobody: 503 "no
    /// response from servers" (seen on livekit-server 1.13.5).
    pub async fn dispatches(&self, room: &RoomName) -> Call<Lives> {
        let request = proto::ListAgentDispatchRequest {
            room: room.as_str().to_owned(),
            ..Default::default()
        };
        let reply = self
            .safe(Method::ListDispatch, Grant::Room(room), &request)
            .await;
        if no_response(&reply.answer) {
            return Call::Done(Lives::No);
        }
        Call::<proto::ListAgentDispatchResponse>::read(&reply.answer).map(|list| {
            let dispatches = list.agent_dispatches.into_iter().map(|dispatch| Dispatch {
                id: DispatchId(dispatch.id),
                agent_name: dispatch.agent_name,
            });
            Lives::Yes(dispatches.collect())
        })
    }
}
