//! What waits, and who wakes it.
//!
//! Level-triggered: a poke or a tick, then the store is asked what is due. A poke may be
//! lost; the due time of each waiting attempt brings it back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::enter::{Claim, Entered, Entry, Ticket};
use super::place::Admission;
use crate::ledger::record::{attempt_key, contact_key, number_key, pace_of};
use crate::ledger::store::Queue;
use crate::ledger::{Decision, Error, Observer};
use crate::model::attempt::{Attempt, State};
use crate::model::id::{AttemptId, Partition, Workspace};
use crate::runtime::stop::Stop;

/// Hears what is committed: counts what waits, and rings for what was freed.
#[derive(Debug, Default)]
pub struct Bell {
    heard: Mutex<Heard>,
    ring: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    waiting: BTreeMap<Workspace, BTreeSet<AttemptId>>,
    /// Attempts that hold their contact and number. Only one that was among them frees
    /// anything: rung for every commit of a waiting attempt, the queue would decide it anew
    /// because it had just decided it, for as long as the pace says no.
    holding: BTreeSet<(Workspace, AttemptId)>,
    freed: BTreeSet<(Workspace, String)>,
}

impl Bell {
    /// How many attempts of a workspace wait.
    #[must_use]
    pub fn depth(&self, workspace: &Workspace) -> u64 {
        self.lock()
            .waiting
            .get(workspace)
            .map_or(0, |ids| ids.len() as u64)
    }

    fn take_freed(&self) -> BTreeSet<(Workspace, String)> {
        std::mem::take(&mut self.lock().freed)
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Bell {
    fn committed(&self, attempt: &Attempt) {
        let ws = &attempt.workspace;
        {
            let mut heard = self.lock();
            if attempt.state == State::Queued {
                heard
                    .waiting
                    .entry(ws.clone())
                    .or_default()
                    .insert(attempt.id.clone());
            } else if let Some(ids) = heard.waiting.get_mut(ws) {
                ids.remove(&attempt.id);
            }
            let who = (ws.clone(), attempt.id.clone());
            if attempt.state.holds() {
                heard.holding.insert(who);
                return;
            }
            if !heard.holding.remove(&who) {
                return;
            }
            for what in [
                contact_key(ws, &attempt.spec.contact).to_string(),
                number_key(ws, &attempt.number_key).to_string(),
                pace_of(attempt),
            ] {
                heard.freed.insert((ws.clone(), what));
            }
        }
        self.ring.notify_one();
    }
}

impl Admission {
    /// Admits what waits, until `stop` says so.
    pub async fn run_queue(self: Arc<Self>, mut stop: Stop) {
        while !stop.asked() {
            let pause = match self.pass().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "the queue could not be read; it is read again");
                    self.door.config.queue.poll_interval
                }
            };
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = self.bell.ring.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One pass over what was freed and what is due; how long to pause afterwards.
    async fn pass(&self) -> Result<Duration, Error> {
        let queue = &self.door.config.queue;
        for (ws, what) in self.bell.take_freed() {
            self.wake(&ws, &what).await?;
        }
        let mut pause = queue.poll_interval;
        for p in self.door.ledger.partitions() {
            let due: Vec<Attempt> = self
                .door
                .ledger
                .claim_due(p, Queue::Waiting, queue.batch, queue.lease)
                .await?;
            if due.len() >= queue.batch {
                pause = Duration::ZERO;
            }
            let admitted = due.iter().map(|a| self.admit(&a.workspace, &a.id));
            for result in join_all(admitted).await {
                result?;
            }
            pause = pause.min(self.until_due(p).await?);
        }
        Ok(pause)
    }

    async fn until_due(&self, p: Partition) -> Result<Duration, Error> {
        let ledger = &self.door.ledger;
        let next = ledger.next_due(p, Queue::Waiting).await?;
        Ok(next.map_or(Duration::MAX, |at| {
            at.since(ledger.now()).max(Duration::from_millis(1))
        }))
    }

    /// Admits, in order, those that wait for what was freed, until one must go on waiting.
    async fn wake(&self, ws: &Workspace, what: &str) -> Result<(), Error> {
        let ledger = &self.door.ledger;
        let batch = self.door.config.queue.batch;
        for attempt in ledger
            .waiting_for(ledger.partition(ws), what, batch)
            .await?
        {
            let entered = self.admit(&attempt.workspace, &attempt.id).await?;
            if entered.is_some_and(|e| e.attempt.state == State::Queued) {
                break;
            }
        }
        Ok(())
    }

    /// Decides a waiting attempt anew. `None`: it does not wait any more, or not yet.
    async fn admit(&self, ws: &Workspace, id: &AttemptId) -> Result<Option<Entered>, Error> {
        let ledger = &self.door.ledger;
        let mut ticket = Ticket::default();
        let mut opened = None;
        let decided = ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let now = ledger.now();
                let Some(attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(None));
                };
                let waiting = attempt.waiting.as_ref();
                let too_early = waiting
                    .and_then(|w| w.not_before)
                    .is_some_and(|at| now < at)
                    && now <= attempt.spec.expire_time;
                if attempt.state != State::Queued || too_early {
                    return Ok(Decision::Keep(None));
                }
                let keys = vec![
                    contact_key(ws, &attempt.spec.contact),
                    number_key(ws, &attempt.number_key),
                ];
                if keys.iter().any(|key| !view.has(key)) {
                    return Ok(Decision::More(keys));
                }
                let private = ledger.unseal(&attempt)?;
                let entry = Entry {
                    attempt,
                    known: true,
                    private: &private,
                    now,
                };
                let decision = self.door.enter(view, entry, &mut ticket)?;
                opened = Some(private);
                Ok(decision.map(Some))
            })
            .await?;
        let entered = decided.answer;
        if let Some(entered) = entered.as_ref().filter(|e| e.reserved)
            && let (Some(mut slot), Some(private)) = (ticket.into_slot(), opened)
        {
            slot.bind();
            let attempt = entered.attempt.clone();
            self.start.start(Claim {
                attempt,
                private,
                slot,
                seen: decided.seen,
            });
        }
        Ok(entered)
    }
}
