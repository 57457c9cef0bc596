//! The janitor: takes over the rooms of pipelines that were dropped before the marker, by a
//! panic or an abort.
//!
//! `Drop` cannot await, so the room guard only sends. If the janitor's queue is full, or
//! the process dies too, the ledger's record of the room brings the reconciler to it.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::room_guard::OpenRoom;
use super::rooms::{Deletion, Rooms};
use super::settle::{Finding, Settler};
use crate::ledger::record::RoomCause;
use crate::model::attempt::{Cause, State};
use crate::model::verdict::TryFailure;
use crate::runtime::stop::Stop;
use crate::runtime::tasks::Tasks;

/// Where guards send their rooms. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Janitor {
    rooms: mpsc::Sender<OpenRoom>,
}

impl Janitor {
    /// The janitor and its end of the queue, which holds at most `queue` rooms.
    #[must_use]
    pub fn new(queue: usize) -> (Self, mpsc::Receiver<OpenRoom>) {
        let (rooms, queue) = mpsc::channel(queue.max(1));
        (Self { rooms }, queue)
    }

    /// Takes a room over. Never blocks and never fails: what does not fit is in the ledger.
    pub fn take(&self, room: OpenRoom) {
        if let Err(error) = self.rooms.try_send(room) {
            let room = match error {
                mpsc::error::TrySendError::Full(room) | mpsc::error::TrySendError::Closed(room) => {
                    room
                }
            };
            tracing::warn!(room = %room.record.name, "the janitor is busy; the reconciler deletes this room");
        }
    }
}

/// Works the queue off, until `stop` says so and it is empty.
pub async fn run(
    mut queue: mpsc::Receiver<OpenRoom>,
    settler: Arc<Settler>,
    rooms: Arc<Rooms>,
    tasks: Tasks,
    mut stop: Stop,
) {
    loop {
        let room = tokio::select! {
            biased;
            room = queue.recv() => room,
            () = stop.wait() => queue.try_recv().ok(),
        };
        let Some(room) = room else { return };
        let (settler, rooms) = (Arc::clone(&settler), Arc::clone(&rooms));
        tasks.spawn("janitor.room", async move {
            clean(room, &settler, &rooms).await;
        });
    }
}

/// Ends the try by the version that the guard's owner had, then deletes the room. If the
/// try went on (its marker is written after all), the room is not the janitor's.
async fn clean(mut open: OpenRoom, settler: &Settler, rooms: &Rooms) {
    let abandoned = Finding::NoCall(TryFailure::Abandoned, None);
    let settled = settler
        .settle(
            &open.of,
            Cause::TryFailed(TryFailure::Abandoned),
            None,
            |attempt| {
                let reserved = attempt.state == State::Reserved;
                reserved.then(|| (abandoned.clone(), "the pipeline was dropped".to_owned()))
            },
        )
        .await;
    match settled {
        Ok(Some(settlement)) if settlement.closing.is_some() => {}
        Ok(_) => return,
        Err(error) => {
            tracing::warn!(%error, room = %open.record.name, "the reconciler deletes this room");
            return;
        }
    }
    let deletion = if open.confirmed {
        rooms.delete(&open.record).await
    } else {
        let gives_up = open.gives_up;
        rooms
            .delete_unconfirmed(&mut open.record, gives_up, None)
            .await
    };
    if deletion == Deletion::Gone
        && let Err(error) = rooms.gone(&open.record, RoomCause::TryFailed).await
    {
        tracing::warn!(%error, room = %open.record.name, "a deleted room could not be recorded");
    }
}
