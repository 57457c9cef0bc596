//! Who is watched, and since when: in memory, on this process's own monotonic clock.
//!
//! What is proved by having looked all the time is proved by this process alone: a restart
//! begins anew, and a step of the wall clock changes nothing. The ledger keeps what was
//! seen; here is only how well it was looked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::sight::Sight;
use super::watched::{Watch, Watched};
use crate::ledger::Observer;
use crate::model::attempt::{Attempt, State};
use crate::model::id::SessionId;
use crate::model::time::Time;

/// The times that watching goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Between two looks.
    pub interval: Duration,
    /// A wider gap proves nothing.
    pub gap_max: Duration,
    /// Between two looks after a horizon that decided nothing, at the most.
    pub slow: Duration,
    /// After the horizon, when a person is asked although the platform does not answer.
    pub overdue: Duration,
    /// So many are watched at most; the due times of the ledger bring the others.
    pub limit: usize,
}

/// Everyone who is watched.
#[derive(Debug)]
pub struct Watches {
    watched: Mutex<BTreeMap<SessionId, Watch>>,
    /// Rung when something became due before its time.
    bell: Notify,
    pace: Pace,
}

impl Watches {
    /// Watches nobody yet.
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            watched: Mutex::default(),
            bell: Notify::new(),
            pace,
        }
    }

    /// Watches an attempt that was read and not committed here: nothing is known of how well
    /// it was looked at before.
    pub(super) fn find(&self, attempt: &Attempt) {
        if let Some(placed) = &attempt.placed
            && looks_at(attempt)
        {
            let mut watched = self.lock();
            let room = watched.len() < self.pace.limit;
            match watched.get_mut(&placed.session) {
                // Two commits may be heard of in the other order: that it is dialed came last
                // and stayed, and nobody would ever look. Or another process took the attempt
                // over from us, or settled it: a look at an answered call that is taken for one
                // at an UNCERTAIN one decides nothing before the horizon. When the marker was
                // written is known here all the same.
                Some(watch) if is_later(attempt.state, watch.state) => {
                    watch.passed_on(attempt, placed);
                }
                None if room => {
                    watched.insert(placed.session, Watch::of(attempt, placed, None));
                }
                Some(_) | None => {}
            }
        }
    }

    /// Looks at an attempt now, if it may be looked at.
    pub(super) fn hurry(&self, attempt: &Attempt) {
        self.find(attempt);
        if let Some(placed) = &attempt.placed
            && let Some(watch) = self.lock().get_mut(&placed.session)
        {
            watch.due = Instant::now();
        }
        self.bell.notify_one();
    }

    /// Those that are due within half an interval, longest waited first: looked at together,
    /// they share one list of rooms.
    pub(super) fn due(&self) -> Vec<Watch> {
        let until = Instant::now() + self.pace.interval / 4;
        let mut due: Vec<Watch> = self
            .lock()
            .values()
            .filter(|watch| watch.due <= until && watch.is_looked_at())
            .cloned()
            .collect();
        due.sort_by_key(|watch| watch.due);
        due
    }

    /// Waits until one is due.
    pub(super) async fn wait(&self) {
        let rung = self.bell.notified();
        let next = self
            .lock()
            .values()
            .filter(|watch| watch.is_looked_at())
            .map(|watch| watch.due)
            .min();
        match next {
            Some(at) => tokio::select! {
                biased;
                () = rung => {}
                () = tokio::time::sleep_until(at) => {}
            },
            None => rung.await,
        }
    }

    /// Takes a look down that was sent at `sent` and is answered now, with what it showed;
    /// how well it is watched, and whether the look showed anything new. `None` if it is not
    /// watched any more.
    pub(super) fn looked(
        &self,
        session: SessionId,
        sent: Instant,
        wall: Time,
        sight: &Sight,
    ) -> Option<(Watched, bool)> {
        let mut all = self.lock();
        let watch = all.get_mut(&session)?;
        Some(watch.looked(sent, wall, sight, &self.pace))
    }

    /// Remembers what was written of a look.
    pub(super) fn shown(&self, session: SessionId, sight: &Sight) {
        if let Some(watch) = self.lock().get_mut(&session) {
            watch.shown = Some(sight.clone());
        }
    }

    /// A look that nobody answered: it proves nothing, and the next one comes in its turn.
    pub(super) fn unanswered(&self, session: SessionId) -> Option<Watched> {
        let mut all = self.lock();
        let watch = all.get_mut(&session)?;
        Some(watch.unanswered(&self.pace))
    }

    /// Takes down whether a node answered for the room; how long none has.
    pub(super) fn node_answered(&self, session: SessionId, answered: bool) -> Option<Duration> {
        self.lock().get_mut(&session)?.node_answered(answered)
    }

    /// Looks again after `pause`.
    pub(super) fn again(&self, session: SessionId, pause: Duration) {
        if let Some(watch) = self.lock().get_mut(&session) {
            watch.due = Instant::now() + pause;
        }
    }

    /// Watches it no longer.
    pub(super) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    /// How many are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nobody is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Watch>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether looks may say something of an attempt in this state.
pub(super) fn looks_at(attempt: &Attempt) -> bool {
    match attempt.state {
        State::Dialing | State::Answered | State::Uncertain | State::NeedsReview => true,
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => false,
    }
}

/// Whether an attempt that is `read` in this state has gone on since it was `known` in that one.
const fn is_later(read: State, known: State) -> bool {
    match known {
        State::Dialing => !matches!(read, State::Dialing),
        State::Uncertain => matches!(read, State::NeedsReview | State::Answered),
        State::NeedsReview => matches!(read, State::Answered),
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => false,
    }
}

impl Observer for Watches {
    /// Every attempt that this process commits: the moment of its marker and of its unclear
    /// answer is taken from our own clock here.
    fn committed(&self, attempt: &Attempt) {
        let Some(placed) = &attempt.placed else {
            return;
        };
        let mut all = self.lock();
        let room = all.len() < self.pace.limit;
        let known = all.get_mut(&placed.session);
        match (attempt.state, known) {
            (State::Dialing, Some(watch)) => watch.marked(placed),
            (State::Dialing, None) if room => {
                let watch = Watch::of(attempt, placed, Some(Instant::now()));
                all.insert(placed.session, watch);
            }
            (State::Uncertain, Some(watch)) if watch.state == State::Uncertain => {
                // A cancel came: it is carried out now.
                watch.stops = attempt.stop.is_some();
                if watch.stops {
                    watch.due = Instant::now();
                    self.bell.notify_one();
                }
            }
            (State::Uncertain, Some(watch)) => {
                watch.lost_sight(attempt, placed);
                self.bell.notify_one();
            }
            (State::Uncertain, None) if room => {
                let mut watch = Watch::of(attempt, placed, None);
                watch.lost_sight(attempt, placed);
                all.insert(placed.session, watch);
                self.bell.notify_one();
            }
            (State::Answered | State::NeedsReview, Some(watch)) if attempt.stop.is_some() => {
                watch.state = attempt.state;
                watch.stops = true;
                watch.due = Instant::now();
                self.bell.notify_one();
            }
            (
                State::Queued
                | State::Deferred
                | State::Refused
                | State::Reserved
                | State::Answered
                | State::Ended
                | State::NotConnected
                | State::NotDialed
                | State::NeedsReview
                | State::Canceled,
                Some(watch),
            ) => {
                // Answered calls and reviews are looked at by the ledger's due time.
                let session = watch.session;
                all.remove(&session);
            }
            (
                State::Queued
                | State::Deferred
                | State::Refused
                | State::Reserved
                | State::Dialing
                | State::Answered
                | State::Ended
                | State::NotConnected
                | State::NotDialed
                | State::Uncertain
                | State::NeedsReview
                | State::Canceled,
                None,
            ) => {}
        }
    }
}
