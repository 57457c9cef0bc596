//! Twirp's JSON: snake case and every field, unlike the webhooks' JSON.

use livekit_protocol as lk;
use serde_json::{Value, json};

/// A message as Twirp writes it in JSON: snake case, defaults included, 64-bit numbers
/// as strings, enums by name.
pub(super) trait Shown {
    fn shown(&self) -> Value;
}

impl Shown for lk::Room {
    fn shown(&self) -> Value {
        let codecs: Vec<Value> = self
            .enabled_codecs
            .iter()
            .map(|codec| json!({"mime": codec.mime, "fmtp_line": codec.fmtp_line}))
            .collect();
        json!({
            "sid": self.sid,
            "name": self.name,
            "empty_timeout": self.empty_timeout,
            "departure_timeout": self.departure_timeout,
            "max_participants": self.max_participants,
            "creation_time": self.creation_time.to_string(),
            "creation_time_ms": self.creation_time_ms.to_string(),
            "turn_password": self.turn_password,
            "enabled_codecs": codecs,
            "metadata": self.metadata,
            "num_participants": self.num_participants,
            "num_publishers": self.num_publishers,
            "active_recording": self.active_recording,
            "version": self.version.as_ref().map(Shown::shown),
        })
    }
}

impl Shown for lk::TimedVersion {
    fn shown(&self) -> Value {
        json!({"unix_micro": self.unix_micro.to_string(), "ticks": self.ticks})
    }
}

impl Shown for lk::ListRoomsResponse {
    fn shown(&self) -> Value {
        json!({"rooms": all(&self.rooms)})
    }
}

impl Shown for lk::DeleteRoomResponse {
    fn shown(&self) -> Value {
        json!({})
    }
}

impl Shown for lk::RemoveParticipantResponse {
    fn shown(&self) -> Value {
        json!({})
    }
}

impl Shown for lk::ListParticipantsResponse {
    fn shown(&self) -> Value {
        json!({"participants": all(&self.participants)})
    }
}

impl Shown for lk::ParticipantInfo {
    fn shown(&self) -> Value {
        let capabilities: Vec<&str> = self
            .capabilities
            .iter()
            .map(|capability| {
                lk::client_info::Capability::try_from(*capability)
                    .unwrap_or_default()
                    .as_str_name()
            })
            .collect();
        json!({
            "sid": self.sid,
            "identity": self.identity,
            "state": self.state().as_str_name(),
            "tracks": all(&self.tracks),
            "metadata": self.metadata,
            "joined_at": self.joined_at.to_string(),
            "joined_at_ms": self.joined_at_ms.to_string(),
            "name": self.name,
            "version": self.version,
            "permission": self.permission.as_ref().map(Shown::shown),
            "region": self.region,
            "is_publisher": self.is_publisher,
            "kind": self.kind().as_str_name(),
            "attributes": self.attributes,
            "disconnect_reason": self.disconnect_reason().as_str_name(),
            "kind_details": [],
            "data_tracks": [],
            "client_protocol": self.client_protocol,
            "capabilities": capabilities,
        })
    }
}

#[expect(deprecated, reason = "the platform still writes these fields")]
impl Shown for lk::ParticipantPermission {
    fn shown(&self) -> Value {
        json!({
            "can_subscribe": self.can_subscribe,
            "can_publish": self.can_publish,
            "can_publish_data": self.can_publish_data,
            "can_publish_sources": [],
            "hidden": self.hidden,
            "recorder": self.recorder,
            "can_update_metadata": self.can_update_metadata,
            "agent": self.agent,
            "can_subscribe_metrics": self.can_subscribe_metrics,
            "can_manage_agent_session": self.can_manage_agent_session,
        })
    }
}

impl Shown for lk::TrackInfo {
    fn shown(&self) -> Value {
        json!({
            "sid": self.sid,
            "type": self.r#type().as_str_name(),
            "name": self.name,
            "muted": self.muted,
            "source": self.source().as_str_name(),
            "mime_type": self.mime_type,
            "mid": self.mid,
            "stream": self.stream,
            "version": self.version.as_ref().map(Shown::shown),
            "backup_codec_policy": self.backup_codec_policy().as_str_name(),
        })
    }
}

impl Shown for lk::AgentDispatch {
    fn shown(&self) -> Value {
        let state = self.state.as_ref().map(|state| {
            json!({
                "jobs": [],
                "created_at": state.created_at.to_string(),
                "deleted_at": state.deleted_at.to_string(),
            })
        });
        json!({
            "id": self.id,
            "agent_name": self.agent_name,
            "room": self.room,
            "metadata": self.metadata,
            "state": state,
            "restart_policy": self.restart_policy().as_str_name(),
            "deployment": self.deployment,
            "attributes": self.attributes,
        })
    }
}

impl Shown for lk::ListAgentDispatchResponse {
    fn shown(&self) -> Value {
        json!({"agent_dispatches": all(&self.agent_dispatches)})
    }
}

impl Shown for lk::SipParticipantInfo {
    fn shown(&self) -> Value {
        json!({
            "participant_id": self.participant_id,
            "participant_identity": self.participant_identity,
            "room_name": self.room_name,
            "sip_call_id": self.sip_call_id,
        })
    }
}

impl Shown for lk::SipOutboundTrunkInfo {
    fn shown(&self) -> Value {
        json!({
            "sip_trunk_id": self.sip_trunk_id,
            "name": self.name,
            "metadata": self.metadata,
            "address": self.address,
            "destination_country": self.destination_country,
            "transport": self.transport().as_str_name(),
            "numbers": self.numbers,
            "auth_username": self.auth_username,
            "auth_password": self.auth_password,
            "headers": self.headers,
            "headers_to_attributes": self.headers_to_attributes,
            "attributes_to_headers": self.attributes_to_headers,
            "include_headers": self.include_headers().as_str_name(),
            "media_encryption": self.media_encryption().as_str_name(),
            "media": null,
            "from_host": self.from_host,
            "created_at": null,
            "updated_at": null,
        })
    }
}

impl Shown for lk::ListSipOutboundTrunkResponse {
    fn shown(&self) -> Value {
        json!({"items": all(&self.items)})
    }
}

impl Shown for lk::GetSipOutboundTrunkResponse {
    fn shown(&self) -> Value {
        json!({"trunk": self.trunk.as_ref().map(Shown::shown)})
    }
}

/// `DeleteSIPTrunk` answers with an old kind of trunk; only its id is of interest.
impl Shown for lk::SipTrunkInfo {
    fn shown(&self) -> Value {
        json!({"sip_trunk_id": self.sip_trunk_id})
    }
}

fn all<T: Shown>(items: &[T]) -> Vec<Value> {
    items.iter().map(Shown::shown).collect()
}
