//! Rooms whose attempt is closed: deleted, and looked at once more after the horizon.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use super::Reconciler;
use super::gaps::Gap;
use super::sight::answered;
use crate::ledger::record::{Room, RoomCause, RoomState, room_key};
use crate::ledger::store::Queue;
use crate::ledger::{Change, Decision, Error};
use crate::model::id::SessionId;
use crate::model::time::Time;
use crate::model::verdict::{After, Leg};
use crate::placement::rooms::Deletion;
use crate::placement::settle::{Settlement, backoff};
use crate::provider::{Call, Kind, RoomSeen};
use crate::runtime::mutant::{self, Mutant};
use crate::runtime::stop::Stop;

/// Rooms that are worked off beside those that are due, each once at a time. They are in the
/// ledger too: what is lost here is found there.
#[derive(Debug, Default)]
pub(super) struct Aside {
    rooms: Mutex<Rest>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Rest {
    waiting: VecDeque<Room>,
    /// Those that wait, and those that are being worked at.
    known: BTreeSet<SessionId>,
}

impl Aside {
    fn push(&self, room: Room) {
        let mut rest = self.lock();
        if rest.known.insert(room.session) {
            rest.waiting.push_back(room);
            self.news.notify_one();
        }
    }

    fn next(&self) -> Option<Room> {
        self.lock().waiting.pop_front()
    }

    fn done(&self, session: SessionId) {
        self.lock().known.remove(&session);
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Rest> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler {
    /// Hands a closed attempt's room over to be deleted. Whoever settles does not wait for
    /// the platform: the next attempt's time may be over as well.
    pub(super) fn hand_over(&self, settled: Option<Settlement>) {
        if let Some(room) = settled.and_then(|settled| settled.closing) {
            self.closing.push(room);
        }
    }

    /// Deletes the rooms that are handed over until `stop` says so: the room of a call that was
    /// just ended waits for no other.
    pub(super) async fn close_on(self: Arc<Self>, stop: Stop) {
        self.work_off(&self.closing, stop).await;
    }

    /// Asks after the rooms of which nothing was said the last time, until `stop` says so. Each
    /// such question takes as long as it may: a hundred of them take minutes, in which the
    /// others that are due would wait.
    pub(super) async fn ask_on(self: Arc<Self>, stop: Stop) {
        self.work_off(&self.asking, stop).await;
    }

    /// Each room as soon as there is a place for it.
    async fn work_off(&self, aside: &Aside, mut stop: Stop) {
        let places = self.config.reconcile.concurrency;
        let mut going = FuturesUnordered::new();
        while !stop.asked() {
            while going.len() < places
                && let Some(room) = aside.next()
            {
                going.push(async move {
                    let session = room.session;
                    self.concurrently([room], |room| self.room(room)).await;
                    aside.done(session);
                });
            }
            tokio::select! {
                biased;
                () = stop.wait() => {}
                Some(()) = going.next() => {}
                () = aside.news.notified() => {}
            }
        }
        // What was begun is not left in the middle.
        while let Some(()) = going.next().await {}
    }

    /// Looks after the rooms that are due until `stop` says so, beside the attempts: a platform
    /// that does not answer holds up rooms alone.
    pub(super) async fn rooms_on(self: Arc<Self>, mut stop: Stop) {
        while !stop.asked() {
            let pause = self.pause_after(self.rooms_pass().await);
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One pass over the rooms that are due; whether more are.
    async fn rooms_pass(&self) -> Result<bool, Error> {
        let limits = &self.config.reconcile;
        let mut more = false;
        for p in self.ledger.partitions() {
            let due: Vec<Room> = self
                .ledger
                .claim_due(p, Queue::Rooms, limits.batch, limits.lease)
                .await?;
            more |= due.len() >= limits.batch;
            self.rooms_due(due).await;
        }
        Ok(more)
    }

    /// Does what is due with rooms: all that are to be looked at once more share a list.
    pub(super) async fn rooms_due(&self, due: Vec<Room>) {
        let (silent, due): (Vec<_>, Vec<_>) = due.into_iter().partition(|room| {
            room.state == RoomState::Closing && self.silent.is_asked_for(room.session)
        });
        for room in silent {
            self.asking.push(room);
        }
        let (gone, others): (Vec<_>, Vec<_>) = due
            .into_iter()
            .partition(|room| room.state == RoomState::Gone);
        self.concurrently(others, |room| self.room(room)).await;
        for chunk in gone.chunks(self.rooms.client().names_per_list()) {
            let names: Vec<_> = chunk.iter().map(|room| room.name.clone()).collect();
            self.budget.spend(1.0).await;
            let listed: BTreeMap<String, RoomSeen> =
                match self.rooms.client().list_rooms(&names).await {
                    Call::Done(rooms) => rooms
                        .into_iter()
                        .map(|room| (room.name.clone(), room))
                        .collect(),
                    Call::Refused(_) | Call::Unclear(_) => {
                        self.concurrently(chunk.to_vec(), |room| async move {
                            self.unseen(&room).await
                        })
                        .await;
                        continue;
                    }
                };
            self.concurrently(chunk.to_vec(), |room| {
                let seen = listed.get(room.name.as_str()).cloned();
                self.looked_once_more(room, seen)
            })
            .await;
        }
    }

    /// Does what is due with one room.
    pub(super) async fn room(&self, room: Room) -> Result<(), Error> {
        match room.state {
            RoomState::Closing => self.close(room).await,
            // What is gone has a time of its own.
            RoomState::Planned | RoomState::Created | RoomState::Gone | RoomState::Tombstone => {
                Ok(())
            }
        }
    }

    async fn close(&self, mut room: Room) -> Result<(), Error> {
        if mutant::is(Mutant::RoomNotDeleted) {
            return Ok(());
        }
        let budget = &self.budget;
        let deletion = if room.sid.is_some() {
            self.rooms.delete_within(&room, budget).await
        } else {
            let gives_up = room.horizon.unwrap_or(room.planned_at);
            self.rooms
                .delete_unconfirmed(&mut room, gives_up, Some(budget))
                .await
        };
        match deletion {
            Deletion::Gone => {
                self.silent.answered(room.session);
                let cause = room.cause.unwrap_or(RoomCause::TryFailed);
                self.rooms.gone(&room, cause).await
            }
            Deletion::Left => {
                self.silent.answered(room.session);
                if room.sid.is_some() {
                    self.again(&room).await
                } else {
                    self.unseen(&room).await
                }
            }
            Deletion::Unknown => self.unheard(&room).await,
        }
    }

    /// It is there as far as is known, and the platform did not delete it: again, later and
    /// later.
    async fn again(&self, room: &Room) -> Result<(), Error> {
        if room.setbacks.saturating_add(1) == ALARM_AFTER {
            tracing::error!(event = "room.stuck", room = %room.name, "a room cannot be deleted");
        }
        self.setback(room, self.pause(room)).await
    }

    /// Nothing says that it is there: it was never confirmed, or it is gone, and the platform
    /// did not say whether it lists it. It may still appear, so it is looked for again.
    async fn unseen(&self, room: &Room) -> Result<(), Error> {
        self.waits(room);
        self.setback(room, self.pause(room)).await
    }

    /// A room that nothing says is there is no leak; but where LiveKit answers nothing at all
    /// that is what is wrong, and it is told once for all of them.
    pub(super) fn waits(&self, room: &Room) {
        let long = room.setbacks.saturating_add(1) >= ALARM_AFTER;
        let failing = self.rooms.client().health().failing_since;
        let waiting = failing.and_then(|since| self.outage.waits(room.session, since, long));
        if let Some(count) = waiting {
            tracing::warn!(
                event = "livekit.unreachable",
                rooms = count,
                "LiveKit does not answer; so many rooms are looked for once it does. None is known \
                 to be there, so that they are no leak: check livekit.url and the network"
            );
        }
    }

    fn pause(&self, room: &Room) -> Duration {
        let limits = &self.config.janitor;
        let setbacks = room.setbacks.saturating_add(1);
        backoff(setbacks, limits.backoff_first, limits.backoff_max, 0.0)
    }

    /// It did not go: again after `pause`.
    pub(super) async fn setback(&self, room: &Room, pause: Duration) -> Result<(), Error> {
        let setbacks = room.setbacks.saturating_add(1);
        self.rewrite(room, |record| {
            record.setbacks = setbacks;
            record.due = Some(self.ledger.now().plus(pause));
        })
        .await
    }

    /// After the horizon the platform can no longer start the call. A late join makes a
    /// deleted room anew, without metadata and without an agent.
    async fn looked_once_more(&self, room: Room, seen: Option<RoomSeen>) -> Result<(), Error> {
        if let Some(seen) = seen {
            return self.came_back(room, &seen).await;
        }
        if room.leg_seen {
            self.leg_gone(&room, After::Over).await?;
        }
        self.rewrite(&room, bury).await
    }

    /// A room that was gone is listed: whoever is in it holds the contact again until it is
    /// over, and nobody who talks to our agent is cut off.
    pub(super) async fn came_back(&self, room: Room, seen: &RoomSeen) -> Result<(), Error> {
        // A room of this name that carries another nonce belongs to a history that this store
        // has lost: a person may be talking in it, and it is not ours to touch.
        if !self.rooms.may_delete(&room, &seen.metadata) {
            return self.rewrite(&room, bury).await;
        }
        let after = match self.who_talks(&room).await {
            Talk::Unknown => return self.again(&room).await,
            Talk::Heard(leg) => return self.leave_talking(&room, &leg, 0).await,
            // The agent may be about to come back: once more, and then nobody hears the callee.
            Talk::Unheard(leg) if room.setbacks == 0 => {
                return self.leave_talking(&room, &leg, 1).await;
            }
            // The deletion cancels it, if its bridge lives; a listed leg does not say that.
            Talk::Rings => {
                self.leg_lives(&room, None).await?;
                After::Silent
            }
            Talk::Unheard(_) | Talk::Nobody => After::Over,
        };
        let held_again = room.leg_seen || after == After::Silent;
        match self.rooms.delete_within(&room, &self.budget).await {
            Deletion::Gone => {
                self.gaps.found(Gap::RoomStarted);
                self.rooms.log_late(&room);
                if held_again {
                    self.leg_gone(&room, after).await?;
                }
                // Before the horizon it may come back once more.
                let now = self.ledger.now();
                match room.horizon {
                    Some(horizon) if now < horizon => {
                        self.rewrite(&room, |record| record.due = Some(horizon))
                            .await
                    }
                    Some(_) | None => self.rewrite(&room, bury).await,
                }
            }
            Deletion::Left | Deletion::Unknown => self.again(&room).await,
        }
    }

    /// A closed attempt has an answered leg: its state is contradicted, and nobody is cut off.
    async fn leave_talking(&self, room: &Room, leg: &Leg, setbacks: u32) -> Result<(), Error> {
        tracing::error!(
            event = "room.talks",
            room = %room.name,
            attempt = %room.attempt,
            "a closed attempt has an answered leg: its state is contradicted"
        );
        self.leg_lives(room, Some(leg)).await?;
        let due: Time = self.ledger.now().plus(self.config.agent.lost_grace);
        self.rewrite(room, |record| {
            record.state = RoomState::Gone;
            record.due = Some(due);
            record.setbacks = setbacks;
            record.leg_seen = true;
        })
        .await
    }

    async fn who_talks(&self, room: &Room) -> Talk {
        self.budget.spend(1.0).await;
        let Call::Done(there) = self.rooms.client().participants(&room.name).await else {
            return Talk::Unknown;
        };
        let agent = there.iter().any(|p| p.kind == Kind::Agent);
        let legs = there.iter().filter(|p| p.kind == Kind::Sip);
        let mut rings = false;
        for leg in legs {
            if answered(leg.call_status) {
                let leg = Leg {
                    call: leg.call_id.clone().unwrap_or_default(),
                    participant: leg.sid.clone(),
                };
                return if agent {
                    Talk::Heard(leg)
                } else {
                    Talk::Unheard(leg)
                };
            }
            rings = true;
        }
        if rings { Talk::Rings } else { Talk::Nobody }
    }

    pub(super) async fn rewrite(
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

/// After so many failures to delete a room, or to look for it, an operator is told, once.
const ALARM_AFTER: u32 = 10;

/// Who talks in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Talk {
    /// No leg.
    Nobody,
    /// A leg that nobody answered yet.
    Rings,
    /// An answered leg, and an agent that hears it.
    Heard(Leg),
    /// An answered leg that nobody hears.
    Unheard(Leg),
    /// The platform did not say.
    Unknown,
}

fn bury(record: &mut Room) {
    record.state = RoomState::Tombstone;
    record.due = None;
    record.leg_seen = false;
}
