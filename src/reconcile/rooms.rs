//! Rooms whose attempt is closed: deleted, and looked at once more after the horizon.

use super::Reconciler;
use crate::ledger::record::{Room, RoomCause, RoomState, room_key};
use crate::ledger::{Change, Decision, Error};
use crate::model::time::Time;
use crate::placement::rooms::Deletion;
use crate::placement::settle::backoff;
use crate::provider::{Call, CallStatus, Kind};
use crate::runtime::mutant::{self, Mutant};

impl Reconciler {
    /// Does what is due with a room.
    pub(super) async fn room(&self, room: Room) -> Result<(), Error> {
        match room.state {
            RoomState::Planned | RoomState::Created | RoomState::Tombstone => Ok(()),
            RoomState::Closing => self.close(room).await,
            RoomState::Gone => self.look_once_more(room).await,
        }
    }

    async fn close(&self, mut room: Room) -> Result<(), Error> {
        if mutant::is(Mutant::RoomNotDeleted) {
            return Ok(());
        }
        self.budget.spend(1.0).await;
        let deletion = if room.sid.is_some() {
            self.rooms.delete(&room).await
        } else {
            let gives_up = room.horizon.unwrap_or(room.planned_at);
            self.rooms.delete_unconfirmed(&mut room, gives_up).await
        };
        match deletion {
            Deletion::Gone => {
                let cause = room.cause.unwrap_or(RoomCause::TryFailed);
                self.rooms.gone(&room, cause).await
            }
            Deletion::Left => self.again(&room).await,
        }
    }

    /// The platform did not delete it, or it may still appear: again, later and later.
    async fn again(&self, room: &Room) -> Result<(), Error> {
        let limits = &self.config.janitor;
        let setbacks = room.setbacks.saturating_add(1);
        let pause = backoff(setbacks, limits.backoff_first, limits.backoff_max, 0.0);
        if setbacks == ALARM_AFTER {
            tracing::error!(event = "room.stuck", room = %room.name, "a room cannot be deleted");
        }
        self.rewrite(room, |record| {
            record.setbacks = setbacks;
            record.due = Some(self.ledger.now().plus(pause));
        })
        .await
    }

    /// After the horizon the platform can no longer start the call. A late join makes a
    /// deleted room anew, without metadata and without an agent.
    async fn look_once_more(&self, room: Room) -> Result<(), Error> {
        self.budget.spend(1.0).await;
        let listed = match self
            .rooms
            .client()
            .list_rooms(std::slice::from_ref(&room.name))
            .await
        {
            Call::Done(listed) => listed,
            Call::Refused(_) | Call::Unclear(_) => return self.again(&room).await,
        };
        // A room of this name that carries another nonce belongs to a history that this store
        // has lost: a person may be talking in it, and it is not ours to touch.
        let ours = listed
            .first()
            .is_some_and(|seen| self.rooms.may_delete(&room, &seen.metadata));
        if !ours {
            return self.rewrite(&room, bury).await;
        }
        match self.who_talks(&room).await {
            Talk::Unknown => return self.again(&room).await,
            Talk::Heard => return self.leave_talking(&room, 0).await,
            // The agent may be about to come back: once more, and then nobody hears the callee.
            Talk::Unheard if room.setbacks == 0 => return self.leave_talking(&room, 1).await,
            Talk::Unheard | Talk::Nobody => {}
        }
        match self.rooms.delete(&room).await {
            Deletion::Gone => {
                self.rooms.log_late(&room);
                self.rewrite(&room, bury).await
            }
            Deletion::Left => self.again(&room).await,
        }
    }

    /// A closed attempt has an answered leg: its state is contradicted, and nobody is cut off.
    async fn leave_talking(&self, room: &Room, setbacks: u32) -> Result<(), Error> {
        tracing::error!(
            event = "room.talks",
            room = %room.name,
            attempt = %room.attempt,
            "a closed attempt has an answered leg: its state is contradicted"
        );
        let due: Time = self.ledger.now().plus(self.config.agent.lost_grace);
        self.rewrite(room, |record| {
            record.due = Some(due);
            record.setbacks = setbacks;
        })
        .await
    }

    async fn who_talks(&self, room: &Room) -> Talk {
        let Call::Done(there) = self.rooms.client().participants(&room.name).await else {
            return Talk::Unknown;
        };
        let agent = there.iter().any(|p| p.kind == Kind::Agent);
        let answered = there.iter().any(|p| {
            p.kind == Kind::Sip
                && matches!(
                    p.call_status,
                    Some(CallStatus::Active | CallStatus::Automation)
                )
        });
        match (answered, agent) {
            (false, _) => Talk::Nobody,
            (true, true) => Talk::Heard,
            (true, false) => Talk::Unheard,
        }
    }

    async fn rewrite(
        &self,
        room: &Room,
        with: impl Fn(&mut Room) + Send + Sync,
    ) -> Result<(), Error> {
        let (ws, session) = (&room.workspace, room.session);
        self.ledger
            .decide(ws, vec![room_key(ws, session)], |view| {
                let Some(mut record) = view.room(ws, session)? else {
                    return Ok(Decision::Keep(()));
                };
                if record.state != room.state {
                    return Ok(Decision::Keep(()));
                }
                with(&mut record);
                let mut change = Change::default();
                change.put(&record)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}

/// After so many failures to delete a room an operator is told, once.
const ALARM_AFTER: u32 = 10;

/// Who talks in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    /// No leg is answered.
    Nobody,
    /// An answered leg, and an agent that hears it.
    Heard,
    /// An answered leg that nobody hears.
    Unheard,
    /// The platform did not say.
    Unknown,
}

fn bury(record: &mut Room) {
    record.state = RoomState::Tombstone;
    record.due = None;
}
