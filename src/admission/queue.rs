//! What waits, and who wakes it.
//!
//! Level-triggered: a poke or a tick, then the store is asked what is due. A poke may be
//! lost; the due time of each waiting attempt brings it back.
//!
//! What waits for the pace of a trunk is not asked one by one: there is one time for the
//! trunk, and then those that wait are admitted in their order until the first refusal,
//! which says when it is worth asking again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::enter::{Claim, Entered, Entry, Ticket};
use super::place::Admission;
use crate::ledger::record::{attempt_key, contact_key, number_key, pace_of, waits_for};
use crate::ledger::store::Queue;
use crate::ledger::{Decision, Error, Observer};
use crate::model::attempt::{Attempt, Rule, State};
use crate::model::id::{AttemptId, Partition, Workspace};
use crate::model::time::Time;
use crate::runtime::stop::Stop;

/// Longer than a task may take from its commit to telling of it; what is later still comes
/// back by its own time.
const LATELY: Duration = Duration::from_secs(1);

/// Hears what is committed: counts what waits, and rings for what was freed.
#[derive(Debug, Default)]
pub struct Bell {
    heard: Mutex<Heard>,
    ring: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    /// What waits, and what for.
    waiting: BTreeMap<Workspace, BTreeMap<AttemptId, Option<String>>>,
    /// How many wait for each of those: what nobody waits for need not be told when it is
    /// freed, and hardly anything is waited for.
    wanted: BTreeMap<String, usize>,
    /// Attempts that hold their contact and number. Only one that was among them frees
    /// anything: rung for every commit of a waiting attempt, the queue would decide it anew
    /// because it had just decided it, for as long as the pace says no.
    holding: BTreeSet<(Workspace, AttemptId)>,
    freed: BTreeSet<(Workspace, String)>,
    /// What was freed within [`LATELY`] although nobody waited for it. Of two commits the
    /// later one may be told first: whoever waits is woken by what was freed after its own
    /// commit, and before that was told.
    lately: BTreeMap<(Workspace, String), Instant>,
    /// When it is worth asking for those that wait for the pace of a trunk.
    paced: BTreeMap<String, Time>,
}

impl Heard {
    /// An attempt waits, or waits no more.
    fn changes(&mut self, attempt: &Attempt) {
        let (ws, id) = (&attempt.workspace, &attempt.id);
        let before = self.waiting.get_mut(ws).and_then(|ids| ids.remove(id));
        if let Some(Some(what)) = before
            && let Some(count) = self.wanted.get_mut(&what)
        {
            *count -= 1;
            if *count == 0 {
                self.wanted.remove(&what);
            }
        }
        if attempt.state != State::Queued {
            return;
        }
        let waiting = attempt.waiting.as_ref();
        let what = waiting.and_then(|waiting| waits_for(attempt, &waiting.reason));
        if let Some(what) = &what {
            *self.wanted.entry(what.clone()).or_default() += 1;
            let freed = (ws.clone(), what.clone());
            if self.lately.remove(&freed).is_some() {
                self.freed.insert(freed);
            }
        }
        let ids = self.waiting.entry(ws.clone()).or_default();
        ids.insert(id.clone(), what);
    }

    /// Somebody waits for a trunk, and it is not worth asking before `at`; whether that is
    /// earlier than was known.
    fn waits(&mut self, trunk: String, at: Time) -> bool {
        let known = self.paced.get(&trunk);
        let earlier = known.is_none_or(|known| at < *known);
        if earlier {
            self.paced.insert(trunk, at);
        }
        earlier
    }
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

    /// The trunks that it is worth asking for at `now`.
    fn take_paced(&self, now: Time) -> Vec<String> {
        let mut heard = self.lock();
        let later = heard.paced.extract_if(.., |_, at| *at <= now);
        later.map(|(trunk, _)| trunk).collect()
    }

    /// When it is worth asking for a trunk next.
    fn next_paced(&self) -> Option<Time> {
        self.lock().paced.values().min().copied()
    }

    fn take_freed(&self) -> BTreeSet<(Workspace, String)> {
        let mut heard = self.lock();
        let now = Instant::now();
        heard
            .lately
            .retain(|_, freed| now.duration_since(*freed) < LATELY);
        std::mem::take(&mut heard.freed)
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
            if let Some(at) = waits_for_pace(attempt)
                && heard.waits(pace_of(attempt), at)
            {
                self.ring.notify_one();
            }
            heard.changes(attempt);
            if attempt.state == State::Queued && !heard.freed.is_empty() {
                self.ring.notify_one();
            }
            let who = (ws.clone(), attempt.id.clone());
            if attempt.state.holds() {
                heard.holding.insert(who);
                return;
            }
            if !heard.holding.remove(&who) {
                return;
            }
            let now = Instant::now();
            for what in [
                contact_key(ws, &attempt.spec.contact).text(),
                number_key(ws, &attempt.number_key).text(),
            ] {
                if heard.wanted.contains_key(&what) {
                    heard.freed.insert((ws.clone(), what));
                } else {
                    heard.lately.insert((ws.clone(), what), now);
                }
            }
            if let Some(at) = heard.paced.get_mut(&pace_of(attempt)) {
                *at = Time::ZERO;
            } else if heard.freed.is_empty() {
                return;
            }
        }
        self.ring.notify_one();
    }
}

/// When it is worth asking for an attempt that waits for the pace of its trunk.
fn waits_for_pace(attempt: &Attempt) -> Option<Time> {
    let waiting = attempt.waiting.as_ref()?;
    let paced = attempt.state == State::Queued && waiting.reason.rule == Rule::Pace;
    paced.then(|| waiting.reason.until.unwrap_or(waiting.until))
}

/// How far a wake came.
enum Woken {
    /// This one must go on waiting.
    Refused(Box<Attempt>),
    /// Through all that waited.
    All,
    /// Through a batch, and more may be behind it.
    Some { admitted: usize },
}

/// How long until `at`; never nothing, since what is due is done before anybody waits.
fn until(at: Time, now: Time) -> Duration {
    at.since(now).max(Duration::from_millis(1))
}

impl Admission {
    /// Admits what waits, until `stop` says so.
    pub async fn run_queue(self: Arc<Self>, mut stop: Stop) {
        while !stop.asked() {
            let pause = match self.pass().await {
                Ok(pause) => {
                    self.read_again();
                    pause
                }
                Err(error) => {
                    self.not_read(&error);
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

    fn not_read(&self, error: &Error) {
        if let Some(told) = self.refused.failed() {
            tracing::warn!(
                event = "queue.refused",
                %error,
                passes = told.count,
                seconds = told.lasts.as_secs(),
                "what waits could not be read or admitted; it comes again"
            );
        }
    }

    fn read_again(&self) {
        if let Some(told) = self.refused.ended() {
            tracing::info!(
                event = "queue.taken",
                passes = told.count,
                seconds = told.lasts.as_secs(),
                "what waits is read and admitted again"
            );
        }
    }

    /// One pass over what was freed and what is due; how long to pause afterwards.
    async fn pass(&self) -> Result<Duration, Error> {
        let queue = &self.door.config.queue;
        // What is left of the disk is for what is under way.
        if !self.door.ledger.has_room() {
            return Ok(queue.poll_interval);
        }
        for (ws, what) in self.bell.take_freed() {
            let p = self.door.ledger.partition(&ws);
            self.wake(p, &what).await?;
        }
        for trunk in self.bell.take_paced(self.door.ledger.now()) {
            if let Err(error) = self.wake_trunk(&trunk).await {
                let again = self.door.ledger.now().plus(queue.poll_interval);
                self.bell.lock().waits(trunk, again);
                return Err(error);
            }
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
        if let Some(at) = self.bell.next_paced() {
            pause = pause.min(until(at, self.door.ledger.now()));
        }
        Ok(pause)
    }

    async fn until_due(&self, p: Partition) -> Result<Duration, Error> {
        let ledger = &self.door.ledger;
        let next = ledger.next_due(p, Queue::Waiting).await?;
        Ok(next.map_or(Duration::MAX, |at| until(at, ledger.now())))
    }

    /// Admits, in order, those that wait for the pace of a trunk, until one must go on
    /// waiting: its refusal says when to ask again.
    async fn wake_trunk(&self, trunk: &str) -> Result<(), Error> {
        for p in self.door.ledger.partitions() {
            loop {
                match self.wake(p, trunk).await? {
                    Woken::Refused(refused) => {
                        if let Some(at) = waits_for_pace(&refused) {
                            self.bell.lock().waits(trunk.to_owned(), at);
                            return Ok(());
                        }
                        // It waits for somebody else now, and those behind it do not.
                    }
                    Woken::All => break,
                    Woken::Some { admitted } if admitted > 0 => {}
                    // All of them must not be asked yet, and more may be behind them.
                    Woken::Some { .. } => {
                        let again = self.door.ledger.now().plus(self.door.config.queue.recheck);
                        self.bell.lock().waits(trunk.to_owned(), again);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Admits, in order, those that wait for what was freed, until one must go on waiting;
    /// one batch of them.
    async fn wake(&self, p: Partition, what: &str) -> Result<Woken, Error> {
        let batch = self.door.config.queue.batch;
        let waiting = self.door.ledger.waiting_for(p, what, batch).await?;
        let (count, mut admitted) = (waiting.len(), 0_usize);
        for attempt in waiting {
            match self.admit(&attempt.workspace, &attempt.id).await? {
                Some(entered) if entered.attempt.state == State::Queued => {
                    return Ok(Woken::Refused(Box::new(entered.attempt)));
                }
                Some(_) => admitted += 1,
                None => {}
            }
        }
        Ok(if count < batch {
            Woken::All
        } else {
            Woken::Some { admitted }
        })
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
