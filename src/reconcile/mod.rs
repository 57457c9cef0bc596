//! What is open gets settled: looks first, decides purely, then acts. It never dials.
//!
//! Level-triggered: a tick, then the ledger is asked what is due. The lease of a due record
//! only saves work; the versioned commit that follows is the truth. What is still as it
//! was is not written: the lease alone puts the next look off.
//!
//! What is pure: `plan` (what is due), `uncertain` and `answered` (what a look means). What
//! looks: `looks`, `rooms`, `sweep`. What acts: `attempts`, `carry`, `closed`, `outlived`.
//! `watch` knows how well it was looked, `outage` since when nobody answers, `gaps` counts what
//! no webhook told. Beside that, `inventory` shows a person which rooms there are; what makes
//! one a leak is pure, too.

mod answered;
mod attempts;
mod carry;
mod closed;
pub mod gaps;
pub mod inventory;
mod leak;
mod looks;
mod outage;
mod outlived;
mod plan;
mod poke;
pub mod preflight;
pub mod removal;
pub mod review;
mod rooms;
#[cfg(test)]
mod sample;
mod sight;
mod sweep;
pub mod trim;
mod uncertain;
mod watch;
mod watched;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use crate::config::Config;
use crate::ledger::store::Queue;
use crate::ledger::{Error, Ledger, Observer};
use crate::model::attempt::{Attempt, State};
use crate::model::id::Partition;
use crate::placement::rooms::Rooms;
use crate::placement::settle::Settler;
use crate::runtime::budget::Budget;
use crate::runtime::stop::Stop;
use crate::runtime::streak::Streak;
use crate::runtime::tasks::Tasks;

pub use gaps::{Gap, Gaps};
pub use watch::Watches;

/// Settles what is open.
#[derive(Debug)]
pub struct Reconciler {
    ledger: Arc<Ledger>,
    rooms: Arc<Rooms>,
    settler: Arc<Settler>,
    config: Arc<Config>,
    budget: Budget,
    watches: Arc<Watches>,
    gaps: Gaps,
    strangers: sweep::Strangers,
    /// Rooms of attempts that were just closed; they are due in the ledger a little later.
    closing: rooms::Aside,
    /// Rooms of which nothing was said the last time.
    asking: rooms::Aside,
    outage: outage::Outage,
    silent: outlived::Silent,
    /// What was RESERVED or DIALING before this process admitted anything: never its own. What
    /// was taken over is not in it any more, and a loop that begins anew after a panic finds
    /// nothing here.
    left: Mutex<Vec<Attempt>>,
    /// Records that could not be read or reconciled, one after the other.
    refused: Streak,
}

impl Reconciler {
    /// Who is watched: an observer of the ledger's commits, made before the ledger is.
    #[must_use]
    pub fn watches(config: &Config) -> Arc<Watches> {
        let limits = &config.reconcile;
        Arc::new(Watches::new(watch::Pace {
            interval: limits.look_interval,
            gap_max: limits.look_gap_max,
            slow: limits.answered_look,
            overdue: limits.uncertain_look,
            limit: limits.watched_max,
        }))
    }

    /// With what it looks through and writes with. `watches` hears of every commit.
    #[must_use]
    pub fn new(
        ledger: Arc<Ledger>,
        rooms: Arc<Rooms>,
        settler: Arc<Settler>,
        watches: Arc<Watches>,
        config: Arc<Config>,
    ) -> Self {
        let budget = Budget::new(f64::from(config.reconcile.requests_per_second));
        Self {
            ledger,
            rooms,
            settler,
            gaps: Gaps::new(config.reconcile.webhook_silence),
            config,
            budget,
            watches,
            strangers: sweep::Strangers::default(),
            closing: rooms::Aside::default(),
            asking: rooms::Aside::default(),
            outage: outage::Outage::default(),
            silent: outlived::Silent::default(),
            left: Mutex::default(),
            refused: Streak::default(),
        }
    }

    /// Starts its loops.
    pub fn start(self: &Arc<Self>, tasks: &Tasks, stop: &Stop) {
        tasks.keep("reconciler", self, stop, Self::run);
        tasks.keep("reconciler.rooms", self, stop, Self::rooms_on);
        tasks.keep("reconciler.closing", self, stop, Self::close_on);
        tasks.keep("reconciler.asking", self, stop, Self::ask_on);
        tasks.keep("reconciler.looks", self, stop, Self::look_on);
        tasks.keep("reconciler.sweep", self, stop, Self::sweep_on);
    }

    /// What was found that no webhook told.
    #[must_use]
    pub const fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// What must be known before anything is admitted: `observers` hear of every attempt in
    /// a passing state, what may ring is watched from now on, and what others have begun is
    /// told from what this process begins. Nothing is looked at yet.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn tell_of_open(&self, observers: &[Arc<dyn Observer>]) -> Result<(), Error> {
        for p in self.ledger.partitions() {
            for state in State::ALL {
                self.each_in(p, state, |attempt| {
                    for observer in observers {
                        observer.committed(&attempt);
                    }
                    if matches!(state, State::Dialing | State::Uncertain) {
                        self.watches.find(&attempt);
                    }
                    if matches!(state, State::Reserved | State::Dialing) {
                        self.left().push(attempt);
                    }
                })
                .await?;
            }
        }
        Ok(())
    }

    /// What a dead predecessor left, taken over before anything is looked at, and at the next
    /// pass again if the store refuses: by itself its time may come in hours. What was
    /// RESERVED is a failed try, and its room is handed over to be deleted. What was DIALING is
    /// lost sight of at once: nobody waits for its answer any more, and a leg that is listed as
    /// answered settles it today and not when its window ends. The window and the horizon are
    /// stored with the marker and count on, the holds stay, and the id never dials again. The
    /// commits come first: a process that is killed again within a second, or a platform that
    /// does not answer, must not keep others from theirs.
    ///
    /// Only where holding the store proves that the predecessor is dead, or of an earlier
    /// history; elsewhere the deadline and the window tell. A stop that was recorded while it
    /// rang is carried out there, too: whoever waited for that dial may be dead, and the phone
    /// must not ring on until its window ends. A second deletion of the room harms nobody who
    /// lives; one that the platform did not answer is sent again at the next pass.
    async fn recover(&self) {
        let left = std::mem::take(&mut *self.left());
        let (epoch, dead) = (self.ledger.epoch().id, self.ledger.predecessor_is_dead());
        let (taken, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|attempt| dead || attempt.epoch != epoch);
        self.concurrently(taken, |attempt| async move {
            let taken = self.abandoned(&attempt, |_| true).await;
            self.kept_unless(taken.is_ok(), attempt);
            taken
        })
        .await;
        let dialing = |attempt: &Attempt| attempt.state == State::Dialing;
        let stopped = others
            .into_iter()
            .filter(|attempt| dialing(attempt) && attempt.stop.is_some());
        self.concurrently(stopped, |attempt| async move {
            let stopped = self.stop(&attempt).await;
            let is_over = matches!(stopped, Ok(true));
            self.kept_unless(is_over, attempt);
            stopped.map(|_| ())
        })
        .await;
    }

    fn kept_unless(&self, is_over: bool, attempt: Attempt) {
        if !is_over {
            self.left().push(attempt);
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn left(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn each_in(
        &self,
        p: Partition,
        state: State,
        mut each: impl FnMut(Attempt),
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let batch = self.config.reconcile.batch;
            let (attempts, next) = self.ledger.in_state(p, state, after, batch).await?;
            attempts.into_iter().for_each(&mut each);
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Passes until `stop` says so.
    async fn run(self: Arc<Self>, mut stop: Stop) {
        let mut heard = self.ledger.news().heard();
        while !stop.asked() {
            self.tell_outage();
            let now = self.ledger.news().heard();
            if std::mem::replace(&mut heard, now) != now {
                self.gaps.told();
            }
            self.recover().await;
            let pause = self.pause_after(self.pass().await);
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = self.ledger.news().rung() => self.poked_all().await,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Says in the log when LiveKit stops answering, and when it answers again.
    fn tell_outage(&self) {
        let (health, now) = (self.rooms.client().health(), self.ledger.now());
        match self.outage.turn(&health) {
            Some(outage::Turn::Began(since)) => tracing::warn!(
                event = "livekit.outage",
                %since,
                failure = health.failed.map_or("", |failed| failed.why.name()),
                "no request to LiveKit is done: {}; calls wait, and nothing that is not known \
                 is dialed again",
                health.failed.map_or("", |failed| failed.why.explain())
            ),
            Some(outage::Turn::Ended(since)) => tracing::info!(
                event = "livekit.recovered",
                %since,
                lasted_s = now.since(since).as_secs(),
                "LiveKit answers again; what waited for it is looked at now{}",
                // Whoever reads this line alone must not take it for calls.
                if self.rooms.client().clocks_differ() {
                    ", and nothing is dialed: its clock is not this host's (livekit.clock)"
                } else {
                    ""
                }
            ),
            None => {}
        }
    }

    /// How long a loop waits after a pass, which says whether more is due.
    fn pause_after(&self, pass: Result<bool, Error>) -> Duration {
        match pass {
            Ok(true) => Duration::ZERO,
            Ok(false) => self.config.reconcile.interval,
            Err(error) => {
                self.refused(&error);
                self.config.reconcile.interval
            }
        }
    }

    /// One pass over the attempts that are due; whether more are.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn pass(&self) -> Result<bool, Error> {
        let limits = &self.config.reconcile;
        let mut more = false;
        for p in self.ledger.partitions() {
            let due: Vec<Attempt> = self
                .ledger
                .claim_due(p, Queue::Attempts, limits.batch, limits.answered_look)
                .await?;
            more |= due.len() >= limits.batch;
            self.attempts(due).await;
        }
        Ok(more)
    }

    /// Does `work` for each item, so many at once as the configuration says. A failure of one
    /// is none of the others'.
    async fn concurrently<T, F>(&self, items: impl IntoIterator<Item = T>, work: impl Fn(T) -> F)
    where
        F: Future<Output = Result<(), Error>>,
    {
        let (done, failed) = (&AtomicBool::new(false), &AtomicBool::new(false));
        stream::iter(items)
            .for_each_concurrent(self.config.reconcile.concurrency, |item| {
                let end = work(item);
                async move {
                    match end.await {
                        Ok(()) => done.store(true, Ordering::Relaxed),
                        Err(error) => {
                            failed.store(true, Ordering::Relaxed);
                            self.refused(&error);
                        }
                    }
                }
            })
            .await;
        if done.load(Ordering::Relaxed)
            && !failed.load(Ordering::Relaxed)
            && let Some(told) = self.refused.ended()
        {
            tracing::info!(
                event = "reconcile.taken",
                failures = told.count,
                seconds = told.lasts.as_secs(),
                "records are reconciled again"
            );
        }
    }

    /// A store that refuses refuses every record, and each comes again.
    fn refused(&self, error: &Error) {
        if let Some(told) = self.refused.failed() {
            tracing::warn!(
                event = "reconcile.refused",
                %error,
                failures = told.count,
                seconds = told.lasts.as_secs(),
                "records could not be read or reconciled; they come again"
            );
        }
    }
}
