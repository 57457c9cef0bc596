//! All rooms of the platform, for those that no live attempt owns: a ledger that lost its
//! history, a join into a deleted room, a deletion that nobody wrote down.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::Reconciler;
use super::gaps::Gap;
use super::sight::{Callee, Sight};
use crate::ledger::call::{Stray, call_key, stray_key};
use crate::ledger::record::{Room, RoomCause, RoomState};
use crate::ledger::{CallRecord, Change, Decision, Error};
use crate::model::attempt::Attempt;
use crate::model::id::{RoomName, SessionId, Workspace};
use crate::placement::rooms::Deletion;
use crate::provider::{Call, Kind, Lives, Metadata, Participant, RoomSeen, RoutingMetadata};
use crate::runtime::stop::Stop;

/// Rooms of ours without a record, as the last sweep saw them.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<BTreeSet<String>>);

impl Strangers {
    fn known(&self, name: &str) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.contains(name)
    }

    fn replace(&self, now: BTreeSet<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// Whose a listed room is.
enum Whose {
    /// It is recorded.
    Recorded(Box<Room>),
    /// Its metadata is ours, and nothing is recorded.
    Unknown(Box<RoutingMetadata>),
    /// Never touched.
    Foreign,
}

impl Reconciler {
    /// Sweeps until `stop` says so.
    pub(super) async fn sweep_on(self: Arc<Self>, mut stop: Stop) {
        while !stop.asked() {
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = tokio::time::sleep(self.config.reconcile.sweep_interval) => self.sweep().await,
            }
        }
    }

    /// One sweep, a page of rooms at a time.
    async fn sweep(&self) {
        self.budget.spend(1.0).await;
        let Call::Done(rooms) = self.rooms.client().all_rooms().await else {
            return;
        };
        let unknown = Mutex::new(BTreeSet::new());
        for page in rooms.chunks(self.config.reconcile.batch) {
            self.concurrently(page.to_vec(), |seen| self.sweep_room(seen, &unknown))
                .await;
        }
        self.strangers
            .replace(unknown.into_inner().unwrap_or_else(PoisonError::into_inner));
    }

    async fn sweep_room(
        &self,
        seen: RoomSeen,
        unknown: &Mutex<BTreeSet<String>>,
    ) -> Result<(), Error> {
        match self.whose(&seen).await? {
            Whose::Foreign => Ok(()),
            Whose::Recorded(room) => self.recorded(*room, &seen).await,
            Whose::Unknown(routing) => {
                unknown
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(seen.name.clone());
                self.unknown(*routing, &seen).await
            }
        }
    }

    /// Ours if the exact name is in our ledger, with or without metadata, or the metadata has
    /// our deployment.
    async fn whose(&self, seen: &RoomSeen) -> Result<Whose, Error> {
        let Some((p, session)) = RoomName::parse(&seen.name) else {
            return Ok(Whose::Foreign);
        };
        let routing = match Metadata::read(&seen.metadata, self.ledger.deployment()) {
            Metadata::Ours(routing) if routing.session == session => Some(routing),
            // A late join makes a room without metadata.
            Metadata::NotJson if seen.metadata.is_empty() => None,
            Metadata::Ours(_) | Metadata::Foreign | Metadata::NotJson => return Ok(Whose::Foreign),
        };
        let workspace: Option<Workspace> = match &routing {
            Some(routing) => Some(routing.workspace.clone()),
            None if self.ledger.partitions().any(|known| known == p) => {
                let owner = self.ledger.session(p, session).await?;
                owner.map(|owner| owner.workspace)
            }
            None => None,
        };
        let Some(workspace) = workspace else {
            return Ok(Whose::Foreign);
        };
        let record = self.ledger.room(&workspace, session).await?;
        Ok(match (record, routing) {
            (Some(room), _) if room.name.as_str() == seen.name => Whose::Recorded(Box::new(room)),
            (None, Some(routing)) => Whose::Unknown(routing),
            (Some(_), _) | (None, None) => Whose::Foreign,
        })
    }

    async fn recorded(&self, room: Room, seen: &RoomSeen) -> Result<(), Error> {
        match room.state {
            // Its own time brings the deletion.
            RoomState::Closing => Ok(()),
            RoomState::Planned | RoomState::Created => {
                let found = self.ledger.attempt(&room.workspace, &room.attempt).await?;
                if found.is_some_and(|(attempt, _)| owns(&attempt, room.session)) {
                    return Ok(());
                }
                tracing::error!(
                    event = "room.unowned",
                    room = %room.name,
                    attempt = %room.attempt,
                    "a room is listed that no live attempt owns: it is deleted"
                );
                let due = self.ledger.now();
                self.rewrite(&room, |record| record.close(RoomCause::Ended, due))
                    .await
            }
            // One that is looked at already, since somebody talks in it, has a time of its own.
            RoomState::Gone if room.leg_seen => Ok(()),
            RoomState::Gone | RoomState::Tombstone => self.came_back(room, seen).await,
        }
    }

    /// The ledger knows nothing of it. Somebody may talk in it: then it is left until it ends,
    /// and what was seen makes a later request for that attempt uncertain instead of a dial.
    /// One without a leg goes once it was seen twice, so that nothing is cut that only begins.
    async fn unknown(&self, routing: RoutingMetadata, seen: &RoomSeen) -> Result<(), Error> {
        let Some(name) = name_of(&routing, &seen.name) else {
            return Ok(());
        };
        self.budget.spend(1.0).await;
        let Call::Done(there) = self.rooms.client().participants(&name).await else {
            return Ok(());
        };
        let legs = there.iter().any(|p| p.kind == Kind::Sip);
        if legs && !self.outlived(seen) && self.node_answers(&name).await != Some(false) {
            return self.adopt(&routing, seen, &there).await;
        }
        if !self.strangers.known(&seen.name) {
            return Ok(());
        }
        let room = stranger(&routing, name, seen, self.ledger.now());
        if self.rooms.delete_within(&room, &self.budget).await == Deletion::Gone {
            self.gaps.found(Gap::RoomStarted);
            self.rooms.log_late(&room);
        }
        Ok(())
    }

    /// Whether it is older than any call may last.
    fn outlived(&self, seen: &RoomSeen) -> bool {
        let longest = self
            .config
            .dial
            .max_call_duration_max
            .saturating_add(self.config.reconcile.overrun_grace);
        seen.created_at
            .is_some_and(|at| self.ledger.now() > at.plus(longest))
    }

    async fn node_answers(&self, name: &RoomName) -> Option<bool> {
        self.budget.spend(1.0).await;
        match self.rooms.client().dispatches(name).await {
            Call::Done(Lives::Yes(_)) => Some(true),
            Call::Done(Lives::No) => Some(false),
            Call::Refused(_) | Call::Unclear(_) => None,
        }
    }

    /// What is alive without a record is kept as an observation.
    async fn adopt(
        &self,
        routing: &RoutingMetadata,
        seen: &RoomSeen,
        there: &[Participant],
    ) -> Result<(), Error> {
        let (ws, session) = (&routing.workspace, routing.session);
        let sight = Sight::of_room(&seen.sid, there, session);
        if !matches!(sight.callee, Callee::Present { .. }) {
            return Ok(());
        }
        let first = !self.strangers.known(&seen.name);
        if first {
            tracing::error!(
                event = "room.unknown",
                room = %seen.name,
                attempt = %routing.attempt,
                "a call lives that this ledger does not know: it lost history; the call is left \
                 until it ends"
            );
        }
        let keys = vec![call_key(ws, session), stray_key(ws, &routing.attempt)];
        self.ledger
            .decide(ws, keys, |view| {
                let mut record = view.call(ws, session)?.unwrap_or_else(|| {
                    CallRecord::new(ws.clone(), routing.attempt.clone(), session)
                });
                let before = record.seen.legs.clone();
                record.seen.merge(&sight.observation(self.ledger.now()));
                let stray = view.stray(ws, &routing.attempt)?;
                let mut stray =
                    stray.unwrap_or_else(|| Stray::new(ws.clone(), routing.attempt.clone()));
                // That attempt is not dialed: it was dialed in the history that is lost.
                let told = stray.add(session, routing.nonce);
                if record.seen.legs == before && !told {
                    return Ok(Decision::Keep(()));
                }
                let mut change = Change::default();
                change.put(&record)?;
                change.put(&stray)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}

/// Whether a live attempt owns this session's room.
fn owns(attempt: &Attempt, session: SessionId) -> bool {
    attempt.state.holds()
        && attempt
            .placed
            .as_ref()
            .is_some_and(|p| p.session == session)
}

/// The room's name, if it is that of the session in its metadata.
fn name_of(routing: &RoutingMetadata, name: &str) -> Option<RoomName> {
    let (p, session) = RoomName::parse(name)?;
    (session == routing.session).then(|| session.room(p))
}

/// A record of what has none, to delete it by.
fn stranger(
    routing: &RoutingMetadata,
    name: RoomName,
    seen: &RoomSeen,
    now: crate::model::time::Time,
) -> Room {
    Room {
        workspace: routing.workspace.clone(),
        attempt: routing.attempt.clone(),
        session: routing.session,
        name,
        nonce: routing.nonce,
        state: RoomState::Gone,
        planned_at: seen.created_at.unwrap_or(now),
        sid: Some(seen.sid.clone()),
        trunk: None,
        cause: Some(RoomCause::Late),
        horizon: None,
        due: None,
        setbacks: 0,
        leg_seen: false,
        rest: serde_json::Map::new(),
    }
}
