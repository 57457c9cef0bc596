//! Rooms go here: deleted, seen finished, or never made; each way is logged and recorded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ledger::record::{Room, RoomCause, RoomState, room_key};
use crate::ledger::{Change, Decision, Error, Ledger, View};
use crate::model::id::SessionId;
use crate::model::time::Time;
use crate::provider::{Call, Client, Gone, Lives, Metadata};
use crate::runtime::budget::Budget;
use crate::telemetry::rooms as log;

/// More rooms than can end at one moment, at some thirty bytes each.
const TOLD_MAX: usize = 10_000;

/// Deletes rooms and says what became of them.
#[derive(Debug)]
pub struct Rooms {
    client: Arc<Client>,
    ledger: Arc<Ledger>,
    /// Rooms whose end this process has logged, [`TOLD_MAX`] of them.
    told: Mutex<BTreeSet<SessionId>>,
}

/// What became of an attempt to delete a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone.
    Gone,
    /// It lives, or may: again later.
    Left,
    /// It is not listed, and whether a node runs it was not answered: again later, and not for
    /// ever, since every call in it ends by itself.
    Unknown,
}

impl Rooms {
    /// Over the platform's client.
    #[must_use]
    pub fn new(client: Arc<Client>, ledger: Arc<Ledger>) -> Self {
        Self {
            client,
            ledger,
            told: Mutex::default(),
        }
    }

    /// Deletes a room whose making was confirmed. A 404 is the end only if no node answers
    /// for the room: a platform that lost its records says 404 while the phone rings.
    pub async fn delete(&self, room: &Room) -> Deletion {
        self.delete_at(room, None).await
    }

    /// The same, where each of its requests waits for the `budget`: one as a rule, and four
    /// of a platform that has lost a node or its records.
    pub async fn delete_within(&self, room: &Room, budget: &Budget) -> Deletion {
        self.delete_at(room, Some(budget)).await
    }

    async fn delete_at(&self, room: &Room, budget: Option<&Budget>) -> Deletion {
        spend(budget, 1.0).await;
        match self.client.delete_room(&room.name).await {
            Gone::Deleted => Deletion::Gone,
            Gone::NotThere => self.unless_it_lives(room, budget).await,
            Gone::Refused(_) => Deletion::Left,
            Gone::Unclear(_) => self.delete_stale(room, budget).await,
        }
    }

    /// Seen after a crash of the platform: the record is listed, nothing lives, and the
    /// deletion fails. Making it anew gives the record a node, and then it can go.
    async fn delete_stale(&self, room: &Room, budget: Option<&Budget>) -> Deletion {
        spend(budget, 1.0).await;
        let name = std::slice::from_ref(&room.name);
        match self.client.list_rooms(name).await {
            Call::Done(listed) if listed.is_empty() => self.unless_it_lives(room, budget).await,
            Call::Done(_) => {
                spend(budget, 2.0).await;
                match self.client.delete_stale(&room.name).await {
                    Gone::Deleted => Deletion::Gone,
                    Gone::NotThere | Gone::Refused(_) | Gone::Unclear(_) => Deletion::Left,
                }
            }
            Call::Refused(_) | Call::Unclear(_) => Deletion::Left,
        }
    }

    async fn unless_it_lives(&self, room: &Room, budget: Option<&Budget>) -> Deletion {
        spend(budget, 1.0).await;
        match self.client.dispatches(&room.name).await {
            Call::Done(Lives::No) => Deletion::Gone,
            Call::Done(Lives::Yes(_)) => Deletion::Left,
            Call::Refused(_) | Call::Unclear(_) => Deletion::Unknown,
        }
    }

    /// Deletes a room whose making was never confirmed: only once the platform lists it with
    /// our nonce, since a room of that name with another one is not ours to touch. While it is
    /// not listed it may still appear, until `gives_up`.
    ///
    /// With a `budget`, each of its requests waits for that.
    pub async fn delete_unconfirmed(
        &self,
        room: &mut Room,
        gives_up: Time,
        budget: Option<&Budget>,
    ) -> Deletion {
        spend(budget, 1.0).await;
        match self
            .client
            .list_rooms(std::slice::from_ref(&room.name))
            .await
        {
            Call::Done(listed) => match listed.into_iter().next() {
                Some(seen) if self.is_ours(room, &seen.metadata) => {
                    room.sid = Some(seen.sid);
                    self.delete_at(room, budget).await
                }
                Some(_) => {
                    tracing::error!(
                        event = "room.foreign",
                        room = %room.name,
                        "a room of our name is not ours; it is left alone: has this store lost history?"
                    );
                    room.cause = Some(RoomCause::NeverCreated);
                    Deletion::Gone
                }
                None if self.ledger.now() >= gives_up => {
                    room.cause = Some(RoomCause::NeverCreated);
                    Deletion::Gone
                }
                None => Deletion::Left,
            },
            Call::Refused(_) | Call::Unclear(_) => Deletion::Left,
        }
    }

    fn is_ours(&self, room: &Room, metadata: &str) -> bool {
        match Metadata::read(metadata, self.ledger.deployment()) {
            Metadata::Ours(routing) => {
                routing.session == room.session && routing.nonce == room.nonce
            }
            Metadata::Foreign | Metadata::NotJson => false,
        }
    }

    /// Whether a room of this name may be deleted: ours by its nonce, or without metadata, as
    /// a late join makes it.
    #[must_use]
    pub fn may_delete(&self, room: &Room, metadata: &str) -> bool {
        metadata.is_empty() || self.is_ours(room, metadata)
    }

    /// Logs that a room is gone, and records it: it is looked at once more after its
    /// horizon, since a late join makes a deleted room anew. A room that is recorded as gone
    /// is not logged again: a cancel lets placement and reconciler delete the same room, and
    /// an uncertain call's room may have finished before it settles. The log comes before the
    /// record, since whoever crashes in between shall rather tell it twice than never. This
    /// process remembers what it has told: a store that refuses the record for minutes, or two
    /// who find the room gone at one moment, are no reason to tell it twice.
    ///
    /// # Errors
    ///
    /// If the store fails; the record then stays as it is, and the reconciler comes back to it.
    pub async fn gone(&self, room: &Room, cause: RoomCause) -> Result<(), Error> {
        self.gone_from(room, cause, None).await
    }

    /// The same, by whoever has `seen` the record and knows that nobody else deletes the room.
    ///
    /// # Errors
    ///
    /// As [`Rooms::gone`].
    pub async fn gone_from(
        &self,
        room: &Room,
        cause: RoomCause,
        seen: Option<View>,
    ) -> Result<(), Error> {
        let key = room_key(&room.workspace, room.session);
        if seen.is_none() {
            let known = self.ledger.room(&room.workspace, room.session).await?;
            match known.map(|record| record.state) {
                Some(RoomState::Gone | RoomState::Tombstone) => return Ok(()),
                Some(RoomState::Planned | RoomState::Created | RoomState::Closing) | None => {}
            }
        }
        if self.tells(room.session) {
            log::deleted(self.ledger.deployment(), room, cause, self.ledger.now());
        }
        let seen = seen.unwrap_or_default().only(|seen| *seen == key);
        self.ledger
            .decide_from(&room.workspace, seen, |view| {
                if !view.has(&key) {
                    return Ok(Decision::More(vec![key.clone()]));
                }
                let Some(mut record) = view.room(&room.workspace, room.session)? else {
                    return Ok(Decision::Keep(()));
                };
                match record.state {
                    RoomState::Planned | RoomState::Created | RoomState::Closing => {}
                    RoomState::Gone | RoomState::Tombstone => return Ok(Decision::Keep(())),
                }
                record.state = RoomState::Gone;
                record.cause = Some(cause);
                record.sid.clone_from(&room.sid);
                record.setbacks = 0;
                record.due = Some(
                    record
                        .horizon
                        .unwrap_or(record.planned_at)
                        .max(self.ledger.now()),
                );
                let mut change = Change::default();
                change.put(&record)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }

    /// Whether the end of this session's room is still to be told, by the one who asks.
    fn tells(&self, session: SessionId) -> bool {
        // A std mutex, since nothing is awaited while it is held.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            // Sessions sort by chance, so this forgets one of them, whichever.
            told.pop_first();
        }
        told.insert(session)
    }

    /// Logs that a room was found again after its horizon, and deleted.
    pub fn log_late(&self, room: &Room) {
        self.log_again(room, RoomCause::Late);
    }

    /// Logs that a room was deleted of which there is nothing left to record: it had gone
    /// before, or the ledger never knew it.
    pub fn log_again(&self, room: &Room, cause: RoomCause) {
        log::deleted(self.ledger.deployment(), room, cause, self.ledger.now());
    }

    /// The platform's client.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

async fn spend(budget: Option<&Budget>, cost: f64) {
    if let Some(budget) = budget {
        budget.spend(cost).await;
    }
}
