//! The paired room events: every `room.created` is closed by a `room.deleted` of the same
//! room, so that an unmatched one is a visible leak.

use crate::ledger::record::{Room, RoomCause};
use crate::model::id::Deployment;
use crate::model::time::Time;

/// The target of both events in the log.
const TARGET: &str = "ringonce::rooms";

/// A room is about to be made, or (`confirmed`) the platform said that it is.
pub fn created(deployment: &Deployment, room: &Room, confirmed: bool) {
    tracing::info!(
        target: TARGET,
        event = "room.created",
        room = %room.name,
        sid = room.sid.as_deref().unwrap_or_default(),
        %deployment,
        workspace = %room.workspace,
        attempt = %room.attempt,
        session = %room.session,
        confirmed,
        "{}",
        if confirmed {
            "a room is made"
        } else {
            "a room is about to be made"
        }
    );
}

/// A room is gone, by our deletion, by itself, or because it was never made. A second
/// event for one room is no fault: whoever crashed between the deletion and its record
/// tells it again.
pub fn deleted(deployment: &Deployment, room: &Room, cause: RoomCause, now: Time) {
    tracing::info!(
        target: TARGET,
        event = "room.deleted",
        room = %room.name,
        sid = room.sid.as_deref().unwrap_or_default(),
        %deployment,
        workspace = %room.workspace,
        attempt = %room.attempt,
        session = %room.session,
        cause = cause.name(),
        age_ms = u64::try_from(now.since(room.planned_at).as_millis()).unwrap_or(u64::MAX),
        "a room is gone"
    );
}
