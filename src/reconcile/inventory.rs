//! The inventory of rooms: what the ledger has and what the platform lists, side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::leak::{Facts, judge};
pub use super::leak::{Leak, Leg, Standing};
use crate::config::Config;
use crate::ledger::record::{Room, RoomState, attempt_key, room_key};
use crate::ledger::{Decision, Error, Ledger};
use crate::model::attempt::Attempt;
use crate::model::id::{AttemptId, RoomName, SessionId, Workspace};
use crate::placement::rooms::Rooms;
use crate::provider::{Call, CallStatus, Kind, Metadata, RoomSeen, RoutingMetadata};
use crate::runtime::budget::Budget;

/// Looks at rooms, and deletes one when a person says so ([`super::removal`]).
#[derive(Debug)]
pub struct Inventory {
    pub(super) ledger: Arc<Ledger>,
    pub(super) rooms: Arc<Rooms>,
    /// Its own, so that a person who looks does not hold up what is being settled.
    budget: Budget,
    concurrency: usize,
    batch: usize,
}

/// Which rooms a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomFilter {
    /// Of this tenant.
    pub workspace: Option<Workspace>,
    /// Leaks alone.
    pub leaks_only: bool,
}

/// A page of rooms, and counts over all pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomPage {
    /// The rooms, by name.
    pub rooms: Vec<Standing>,
    /// Whether others follow the last one.
    pub more: bool,
    /// How many rooms the filter matches but for `leaks_only`.
    pub total: usize,
    /// How many of them are leaks.
    pub leaks: usize,
    /// How many rooms the platform lists that are not this deployment's.
    pub foreign: usize,
}

/// Why rooms could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The store failed.
    #[error(transparent)]
    Ledger(#[from] Error),
    /// The platform did not list its rooms.
    #[error("LiveKit did not list its rooms, so nothing is said of them")]
    Platform,
}

/// Record and attempt of a room, as they were at one moment.
pub(super) type Recorded = (Option<Room>, Option<Attempt>);

impl Inventory {
    /// Over the ledger and the rooms of a node.
    #[must_use]
    pub fn new(ledger: Arc<Ledger>, rooms: Arc<Rooms>, config: &Config) -> Self {
        let limits = &config.reconcile;
        Self {
            ledger,
            rooms,
            budget: Budget::new(f64::from(limits.requests_per_second)),
            concurrency: limits.concurrency,
            batch: limits.batch,
        }
    }

    /// At most `limit` rooms that `filter` shows, by name, behind the one called `after`.
    ///
    /// # Errors
    ///
    /// The store or the platform did not answer.
    pub async fn page(
        &self,
        filter: &RoomFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RoomPage, LookError> {
        let (mut rooms, foreign) = self.all().await?;
        let of = |room: &Standing| {
            filter
                .workspace
                .as_ref()
                .is_none_or(|w| *w == room.workspace)
        };
        rooms.retain(of);
        let total = rooms.len();
        let leaks = rooms.iter().filter(|room| room.leak.is_some()).count();
        rooms.retain(|room| {
            (!filter.leaks_only || room.leak.is_some())
                && after.is_none_or(|after| room.name.as_str() > after)
        });
        let more = rooms.len() > limit;
        rooms.truncate(limit);
        self.look_inside(&mut rooms).await;
        Ok(RoomPage {
            rooms,
            more,
            total,
            leaks,
            foreign,
        })
    }

    /// Every room of ours, by name, and how many others there are.
    ///
    /// The platform is asked before the ledger: a room is recorded before it is made, so what
    /// is listed and ours has its record by then. A room that was deleted in between would
    /// look like one that came back, so whatever looks like a leak is listed once more.
    async fn all(&self) -> Result<(Vec<Standing>, usize), LookError> {
        let Call::Done(listed) = self.rooms.client().all_rooms().await else {
            return Err(LookError::Platform);
        };
        let mut listed: BTreeMap<String, RoomSeen> = listed
            .into_iter()
            .map(|seen| (seen.name.clone(), seen))
            .collect();
        let mut ours = Vec::new();
        for record in self.recorded().await? {
            let seen = listed.remove(record.name.as_str());
            let of = (&record.workspace, &record.attempt, record.session);
            let standing = self.stand(seen.as_ref(), of).await?;
            ours.extend(standing.filter(|room| room.listed || !is_gone(room.record)));
        }
        let mut foreign = 0;
        for seen in listed.into_values() {
            let standing = match self.whose(&seen.name, Some(&seen)).await? {
                Some((ws, attempt, session)) => {
                    self.stand(Some(&seen), (&ws, &attempt, session)).await?
                }
                None => None,
            };
            match standing {
                Some(standing) => ours.push(standing),
                None => foreign += 1,
            }
        }
        self.look_again(&mut ours).await?;
        ours.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((ours, foreign))
    }

    /// The rooms that the ledger does not know to be gone.
    async fn recorded(&self) -> Result<Vec<Room>, Error> {
        let mut found = Vec::new();
        for p in self.ledger.partitions() {
            let mut after = None;
            loop {
                let (rooms, next) = self.ledger.rooms(p, after, self.batch).await?;
                found.extend(rooms);
                after = next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Whose try a room was made for, by its metadata or else by the session in its name.
    pub(super) async fn whose(
        &self,
        name: &str,
        seen: Option<&RoomSeen>,
    ) -> Result<Option<(Workspace, AttemptId, SessionId)>, Error> {
        let metadata = seen.map_or("", |seen| &seen.metadata);
        if let Metadata::Ours(routing) = Metadata::read(metadata, self.ledger.deployment()) {
            let RoutingMetadata {
                workspace,
                attempt,
                session,
                ..
            } = *routing;
            return Ok(Some((workspace, attempt, session)));
        }
        let Some((partition, session)) = RoomName::parse(name) else {
            return Ok(None);
        };
        // A name that anybody may have chosen: no store has such a partition.
        if !self.ledger.partitions().any(|known| known == partition) {
            return Ok(None);
        }
        let found = self.ledger.session(partition, session).await?;
        Ok(found.map(|found| (found.workspace, found.attempt, session)))
    }

    async fn stand(
        &self,
        seen: Option<&RoomSeen>,
        of: (&Workspace, &AttemptId, SessionId),
    ) -> Result<Option<Standing>, Error> {
        let (record, attempt) = self.read(of).await?;
        let facts = Facts {
            listed: seen,
            record: record.as_ref(),
            attempt: attempt.as_ref(),
        };
        Ok(judge(facts, self.ledger.deployment(), self.ledger.now()))
    }

    /// Reads both at one moment: a settling changes both in one commit, and half of it would
    /// look like a room without an owner.
    pub(super) async fn read(
        &self,
        (ws, attempt, session): (&Workspace, &AttemptId, SessionId),
    ) -> Result<Recorded, Error> {
        let keys = vec![attempt_key(ws, attempt), room_key(ws, session)];
        let read = self
            .ledger
            .decide(ws, keys, |view| {
                let recorded = (view.room(ws, session)?, view.attempt(ws, attempt)?);
                Ok(Decision::Keep(recorded))
            })
            .await?;
        Ok(read.answer)
    }

    /// Lists what looks like a leak once more, and keeps what is still there.
    async fn look_again(&self, ours: &mut Vec<Standing>) -> Result<(), LookError> {
        let suspect = |room: &&Standing| room.leak.is_some() && room.listed;
        let names: Vec<RoomName> = ours
            .iter()
            .filter(suspect)
            .filter_map(|room| RoomName::parse(&room.name))
            .map(|(partition, session)| session.room(partition))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let Call::Done(still) = self.rooms.client().list_rooms(&names).await else {
            return Err(LookError::Platform);
        };
        let still: BTreeMap<&str, &RoomSeen> = still
            .iter()
            .map(|seen| (seen.name.as_str(), seen))
            .collect();
        let mut kept = Vec::with_capacity(ours.len());
        for room in ours.drain(..) {
            if !suspect(&&room) || still.contains_key(room.name.as_str()) {
                kept.push(room);
                continue;
            }
            // It went meanwhile; a record that is not gone stays on the list.
            let of = (&room.workspace, &room.attempt, room.session);
            kept.extend(
                self.stand(None, of)
                    .await?
                    .filter(|now| !is_gone(now.record)),
            );
        }
        *ours = kept;
        Ok(())
    }

    /// Asks who is in each room, within the budget.
    async fn look_inside(&self, rooms: &mut [Standing]) {
        stream::iter(rooms)
            .for_each_concurrent(self.concurrency, |room| async {
                room.leg = if room.listed {
                    self.leg(&room.name).await
                } else {
                    Leg::None
                };
            })
            .await;
    }

    /// Who is in the room of this name, if it is one of ours.
    pub(super) async fn leg(&self, name: &str) -> Leg {
        let Some((partition, session)) = RoomName::parse(name) else {
            return Leg::Unknown;
        };
        self.budget.spend(1.0).await;
        let name = session.room(partition);
        let Call::Done(there) = self.rooms.client().participants(&name).await else {
            return Leg::Unknown;
        };
        let lives = there
            .iter()
            .any(|p| p.kind == Kind::Sip && p.call_status != Some(CallStatus::Hangup));
        if lives { Leg::Lives } else { Leg::None }
    }
}

/// Whether the ledger knows that it is gone.
pub(super) const fn is_gone(record: Option<RoomState>) -> bool {
    match record {
        Some(RoomState::Gone | RoomState::Tombstone) => true,
        Some(RoomState::Planned | RoomState::Created | RoomState::Closing) | None => false,
    }
}
