//! The room's guard: before the marker every way out deletes the room.

use scopeguard::ScopeGuard;

use super::janitor::Janitor;
use super::settle::Try;
use crate::ledger::record::Room;
use crate::model::time::Time;

/// A room that may exist.
#[derive(Debug, Clone)]
pub struct OpenRoom {
    /// The try that owns it.
    pub of: Try,
    /// The room as recorded.
    pub record: Room,
    /// Whether the platform confirmed it.
    pub confirmed: bool,
    /// When an unconfirmed one can no longer appear.
    pub gives_up: Time,
}

/// Owns the room until the marker is written.
pub(super) struct RoomGuard(ScopeGuard<OpenRoom, Box<dyn FnOnce(OpenRoom) + Send>>);

impl RoomGuard {
    /// Armed before the room is made: a request that is cut off half-way may have made it.
    pub(super) fn arm(room: OpenRoom, janitor: Janitor) -> Self {
        let hand_over = move |room| janitor.take(room);
        Self(scopeguard::guard(room, Box::new(hand_over)))
    }

    /// The room.
    pub(super) fn room(&self) -> &OpenRoom {
        &self.0
    }

    /// The platform confirmed it under this id.
    pub(super) fn confirm(&mut self, sid: String) {
        self.0.record.sid = Some(sid);
        self.0.confirmed = true;
    }

    /// The marker is written, or the room is dealt with: from here on it is deleted only by a
    /// durable close or a recorded stop.
    pub(super) fn disarm(self) -> OpenRoom {
        ScopeGuard::into_inner(self.0)
    }
}
