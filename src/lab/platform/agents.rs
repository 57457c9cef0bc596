//! Agent dispatches, and the agents that join for them.

use std::time::Duration;

use livekit_protocol as lk;
use lk::DisconnectReason;
use lk::participant_info::Kind;

use super::agenda::{AgentJob, Event, Place};
use super::answer::{Code, Refusal};
use super::machine::Platform;
use super::serve::Caller;
use super::settings::Behaviour;

impl Platform {
    /// Not idempotent: each call is another dispatch and another agent. A missing room
    /// is made, without metadata.
    pub(super) fn create_dispatch(
        &mut self,
        caller: &Caller,
        request: lk::CreateAgentDispatchRequest,
    ) -> Result<lk::AgentDispatch, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        if !self.rooms.contains_key(&request.room) {
            if !self.settings.auto_create || self.now < self.nodes_back {
                return Err(Refusal::no_response().after(self.settings.times.no_room));
            }
            self.open_room(lk::CreateRoomRequest {
                name: request.room.clone(),
                ..lk::CreateRoomRequest::default()
            });
        }
        let name = request.room.clone();
        Ok(self.dispatch(&name, request))
    }

    /// Adds a dispatch to a living room and sends for its agent. Nobody asks again when
    /// no worker of that name is there.
    pub(super) fn dispatch(
        &mut self,
        name: &str,
        wanted: lk::CreateAgentDispatchRequest,
    ) -> lk::AgentDispatch {
        let dispatch = lk::AgentDispatch {
            id: self.sid("AD_"),
            agent_name: wanted.agent_name,
            room: name.to_owned(),
            metadata: wanted.metadata,
            state: Some(lk::AgentDispatchState {
                jobs: Vec::new(),
                created_at: self.wall_micros().saturating_mul(1_000),
                deleted_at: 0,
            }),
            restart_policy: wanted.restart_policy,
            deployment: wanted.deployment,
            attributes: wanted.attributes,
        };
        let Some(room) = self.rooms.get_mut(name) else {
            return dispatch;
        };
        room.dispatches.push(dispatch.clone());
        let place = Place {
            name: name.to_owned(),
            sid: room.record.sid.clone(),
        };
        let behaviour = self
            .settings
            .workers
            .iter()
            .filter(|worker| worker.agent_name == dispatch.agent_name)
            .map(|worker| worker.behaviour)
            .find(|behaviour| *behaviour != Behaviour::Absent);
        if !dispatch.agent_name.is_empty() && self.faults.agent_absent() {
            return dispatch;
        }
        match behaviour {
            None | Some(Behaviour::Absent) => {}
            Some(Behaviour::Joins { after } | Behaviour::Late { after }) => {
                self.send_agent(&place, &dispatch, after, None);
            }
            Some(Behaviour::Leaves { join, after }) => {
                self.send_agent(&place, &dispatch, join, Some(after));
            }
            Some(Behaviour::Doubled { after }) => {
                self.send_agent(&place, &dispatch, after, None);
                self.send_agent(&place, &dispatch, after, None);
            }
        }
        dispatch
    }

    fn send_agent(
        &mut self,
        place: &Place,
        dispatch: &lk::AgentDispatch,
        after: Duration,
        stays: Option<Duration>,
    ) {
        let job = AgentJob {
            place: place.clone(),
            dispatch: dispatch.id.clone(),
            agent_name: dispatch.agent_name.clone(),
            identity: self.sid("agent-AJ_"),
            stays,
        };
        self.agenda.put(self.now + after, Event::AgentJoins(job));
    }

    pub(super) fn agent_joins(&mut self, job: AgentJob) {
        let wanted = self.rooms.get(&job.place.name).is_some_and(|room| {
            room.record.sid == job.place.sid
                && room.dispatches.iter().any(|it| it.id == job.dispatch)
        });
        if !wanted {
            return;
        }
        let mut person = self.person(Kind::Agent, &job.identity);
        person.info.client_protocol = 2;
        person.info.capabilities = vec![
            lk::client_info::Capability::CapPacketTrailer.into(),
            lk::client_info::Capability::CapCompressionDeflateRaw.into(),
        ];
        if !job.agent_name.is_empty() {
            for name in ["lk.agent.name", "lk.agent_name"] {
                let value = job.agent_name.clone();
                person.info.attributes.insert(name.to_owned(), value);
            }
        }
        person.dispatch = Some(job.dispatch.clone());
        self.join(&job.place.name, person);
        if let Some(stays) = job.stays {
            self.agenda.put(self.now + stays, Event::AgentLeaves(job));
        }
    }

    pub(super) fn agent_leaves(&mut self, job: &AgentJob) {
        let sid = self
            .rooms
            .get(&job.place.name)
            .filter(|room| room.record.sid == job.place.sid)
            .and_then(|room| room.by_identity(&job.identity))
            .map(|person| person.info.sid.clone());
        if let Some(sid) = sid {
            self.leave(&job.place.name, &sid, DisconnectReason::ClientInitiated);
        }
    }

    /// Reads the room itself, not its record: after a flush of the records it tells the
    /// truth, seen on livekit-server 1.13.5.
    pub(super) fn list_dispatch(
        &mut self,
        caller: &Caller,
        request: &lk::ListAgentDispatchRequest,
    ) -> Result<lk::ListAgentDispatchResponse, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        let Some(room) = self.rooms.get(&request.room) else {
            return Err(Refusal::no_response().after(self.settings.times.no_room));
        };
        let agent_dispatches = room
            .dispatches
            .iter()
            .filter(|dispatch| request.dispatch_id.is_empty() || dispatch.id == request.dispatch_id)
            .cloned()
            .collect();
        Ok(lk::ListAgentDispatchResponse { agent_dispatches })
    }

    pub(super) fn delete_dispatch(
        &mut self,
        caller: &Caller,
        request: &lk::DeleteAgentDispatchRequest,
    ) -> Result<lk::AgentDispatch, Refusal> {
        caller.may(caller.claims.administers(&request.room))?;
        let deleted_at = self.wall_micros().saturating_mul(1_000);
        let Some(room) = self.rooms.get_mut(&request.room) else {
            return Err(Refusal::no_response().after(self.settings.times.no_room));
        };
        let Some(at) = room
            .dispatches
            .iter()
            .position(|dispatch| dispatch.id == request.dispatch_id)
        else {
            return Err(Refusal::inner(Code::NotFound, "dispatch ID not found"));
        };
        let mut dispatch = room.dispatches.remove(at);
        let agents: Vec<String> = room
            .people
            .iter()
            .filter(|person| person.dispatch.as_deref() == Some(dispatch.id.as_str()))
            .map(|person| person.info.sid.clone())
            .collect();
        if let Some(state) = &mut dispatch.state {
            state.deleted_at = deleted_at;
        }
        for sid in agents {
            self.leave(&request.room, &sid, DisconnectReason::ParticipantRemoved);
        }
        Ok(dispatch)
    }
}
