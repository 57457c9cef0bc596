//! Rooms: what is asked of them, and how they are shown.

use super::enums;
use super::fields::{Violations, timestamp};
use crate::api::core::{Removal, RoomFilter, Standing};
use crate::api::limits::Limits;
use crate::api::proto;
use crate::ledger::record::RoomState;
use crate::model::id::ID_MAX;
use crate::model::time::Time;
use crate::node::{Leak, Leg};

/// A parsed `ListRooms`.
#[derive(Debug)]
pub(crate) struct ListRooms {
    pub(crate) filter: RoomFilter,
    pub(crate) size: usize,
    pub(crate) token: String,
}

pub(crate) fn list_rooms(
    message: proto::ListRoomsRequest,
    limits: &Limits,
) -> Result<ListRooms, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.optional("workspace", message.workspace);
    let size = wrong.page_size(message.page_size, limits);
    wrong.unless_any(Some(ListRooms {
        filter: RoomFilter {
            workspace,
            leaks_only: message.leaks_only,
        },
        size,
        token: message.page_token,
    }))
}

pub(crate) fn delete_room(
    message: proto::DeleteRoomRequest,
    limits: &Limits,
) -> Result<Removal, Violations> {
    let mut wrong = Violations::default();
    wrong.open_text("reason", &message.reason, limits.request.reason_max);
    wrong.open_text("requested_by", &message.requested_by, ID_MAX);
    wrong.unless_any(Some(Removal {
        name: message.name,
        force: message.force,
        reason: message.reason,
        by: message.requested_by,
    }))
}

/// A room as an operator sees it at `now`.
pub(crate) fn room(room: &Standing, now: Time) -> proto::Room {
    proto::Room {
        name: room.name.clone(),
        deployment: room.deployment.to_string(),
        workspace: room.workspace.to_string(),
        attempt_id: room.attempt.to_string(),
        session: room.session.to_string(),
        attempt_state: room
            .attempt_state
            .map_or(proto::attempt::State::Unspecified, enums::state)
            .into(),
        owned: room.owned,
        record: record(room.record).into(),
        listed: room.listed,
        leg: leg(room.leg).into(),
        create_time: room.created_at.map(timestamp),
        age: room.created_at.map(|at| now.since(at).into()),
        horizon_time: room.horizon.map(timestamp),
        leak: leak(room.leak).into(),
        explanation: explanation(room),
    }
}

const fn record(state: Option<RoomState>) -> proto::room::Record {
    use proto::room::Record as Out;
    match state {
        None => Out::Unspecified,
        Some(RoomState::Planned) => Out::Planned,
        Some(RoomState::Created) => Out::Created,
        Some(RoomState::Closing) => Out::Closing,
        Some(RoomState::Gone) => Out::Gone,
        Some(RoomState::Tombstone) => Out::Buried,
    }
}

const fn leg(leg: Leg) -> proto::room::Leg {
    use proto::room::Leg as Out;
    match leg {
        Leg::Unknown => Out::Unspecified,
        Leg::None => Out::None,
        Leg::Lives => Out::Lives,
    }
}

const fn leak(leak: Option<Leak>) -> proto::room::Leak {
    use proto::room::Leak as Out;
    match leak {
        None => Out::Unspecified,
        Some(Leak::NoRecord) => Out::NoRecord,
        Some(Leak::OtherHistory) => Out::OtherHistory,
        Some(Leak::NoOwner) => Out::NoOwner,
        Some(Leak::NotDeleted) => Out::NotDeleted,
        Some(Leak::CameBack) => Out::CameBack,
    }
}

/// What a person makes of it, and does.
fn explanation(room: &Standing) -> String {
    let sentence = match room.leak {
        Some(Leak::NoRecord) => {
            "it is ours by its metadata and the ledger has no record of it: has this store lost \
             history? Delete it once nobody talks in it"
        }
        Some(Leak::OtherHistory) => {
            "it has the name of a room of ours and not our nonce: has this store lost history? It \
             is not touched from here; delete it in LiveKit once nobody talks in it"
        }
        Some(Leak::NoOwner) => "it is recorded as wanted and no live attempt owns it; delete it",
        Some(Leak::NotDeleted) => {
            "it is to be deleted and that has failed or is overdue; it is tried again, or delete \
             it by hand"
        }
        Some(Leak::CameBack) => {
            "it was gone and is there again after its horizon, made anew by a late join; it is \
             looked for once, or delete it by hand"
        }
        None if room.owned => "a live attempt owns it",
        None => match room.record {
            Some(RoomState::Planned | RoomState::Created) | None => "it is known",
            Some(RoomState::Closing) => "its try is over and it is about to be deleted",
            Some(RoomState::Gone | RoomState::Tombstone) if room.listed => {
                "it was deleted and is looked for once more after its horizon"
            }
            Some(RoomState::Gone | RoomState::Tombstone) => "it is gone",
        },
    };
    sentence.to_owned()
}
