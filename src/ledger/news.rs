//! Who is told of a commit: those who wait for one attempt, those who follow the log, and
//! those who count.
//!
//! News carry no state: whoever is woken reads the ledger. A lost or doubled wake-up
//! changes nothing but the time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::store::{Key, Version};
use crate::model::attempt::Attempt;
use crate::model::id::{AttemptId, Workspace};

/// Is told of every attempt that this process committed, in the order of the commits of
/// that attempt. Of two commits at almost the same time the later one may be told first; the
/// earlier one is then not told any more, since whoever remembers the last that was told would
/// keep what is over, for ever.
pub trait Observer: Debug + Send + Sync {
    /// `attempt` has been committed like this.
    fn committed(&self, attempt: &Attempt);
}

/// So many wait at most of whom something was told.
const TOLD_MAX: usize = 10_000;

/// Of so many attempts it is remembered of which commit the observers were told last, some two
/// hundred bytes each. It matters for as long as a task may be on its way from its commit to
/// telling of it, which is moments.
const RECENT: usize = 10_000;

/// Of which commit the observers were told last, for the attempts that were last begun with.
#[derive(Debug, Default)]
struct Recent {
    told: HashMap<(Workspace, AttemptId), Version>,
    /// The same attempts, the first one first.
    order: VecDeque<(Workspace, AttemptId)>,
}

impl Recent {
    /// Whether `version` of an attempt is news, and no earlier commit than the last one told.
    fn is_news(&mut self, attempt: &Attempt, version: Version) -> bool {
        let who = (attempt.workspace.clone(), attempt.id.clone());
        match self.told.entry(who) {
            Entry::Occupied(mut told) => {
                let is_news = *told.get() <= version;
                if is_news {
                    told.insert(version);
                }
                is_news
            }
            Entry::Vacant(place) => {
                self.order.push_back(place.key().clone());
                place.insert(version);
                if self.order.len() > RECENT
                    && let Some(first) = self.order.pop_front()
                {
                    self.told.remove(&first);
                }
                true
            }
        }
    }
}

/// The present listeners.
#[derive(Debug, Default)]
pub struct News {
    waiting: Mutex<HashMap<Key, watch::Sender<Version>>>,
    latest: watch::Sender<u64>,
    /// Of whom something was told from outside.
    told: Mutex<BTreeSet<(Workspace, AttemptId)>>,
    bell: Notify,
    /// How much was told from outside at all.
    heard: AtomicU64,
    observers: Vec<Arc<dyn Observer>>,
    recent: Mutex<Recent>,
}

impl News {
    /// With observers that are told first.
    #[must_use]
    pub fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self {
            observers,
            ..Self::default()
        }
    }

    /// Counts commits: changes with each one.
    #[must_use]
    pub fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Waits for commits of one record. Subscribe first and read the record afterwards:
    /// what is committed in between wakes at once.
    #[must_use]
    pub fn of(&self, key: &Key) -> watch::Receiver<Version> {
        let mut waiting = self.lock();
        // Those whom nobody awaits any more are dropped when the map has doubled.
        if waiting.len() >= 1024 && waiting.len().is_power_of_two() {
            waiting.retain(|_, sender| sender.receiver_count() > 0);
        }
        waiting
            .entry(key.clone())
            .or_insert_with(|| watch::Sender::new(Version(0)))
            .subscribe()
    }

    /// Something new was told of this attempt's call from outside: whoever settles what is
    /// open looks at it. Never blocks and never fails; one that does not fit is found by its
    /// time.
    pub fn told(&self, workspace: &Workspace, attempt: &AttemptId) {
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() < TOLD_MAX {
                told.insert((workspace.clone(), attempt.clone()));
            }
        }
        self.bell.notify_one();
    }

    /// Something was told from outside, whatever it was.
    pub fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// How often something was told from outside: whoever waits for that compares.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Takes those of whom something was told.
    #[must_use]
    pub fn take_told(&self) -> BTreeSet<(Workspace, AttemptId)> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something is told.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    pub(super) fn tell(&self, keys: &[Key], attempts: &[Attempt], version: Version) {
        if !attempts.is_empty() {
            // Held while the observers are told, so that no other commit comes in between.
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            for attempt in attempts {
                if recent.is_news(attempt, version) {
                    for observer in &self.observers {
                        observer.committed(attempt);
                    }
                }
            }
        }
        {
            let mut waiting = self.lock();
            for key in keys {
                let Some(sender) = waiting.get(key) else {
                    continue;
                };
                if sender.receiver_count() == 0 {
                    waiting.remove(key);
                } else {
                    // Of two commits the later one may be told first.
                    sender.send_modify(|told| *told = version.max(*told));
                }
            }
        }
        self.latest.send_modify(|n| *n = n.wrapping_add(1));
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, watch::Sender<Version>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attempt::{Keyed, Spec, State};
    use crate::model::time::Time;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<(String, State)>>);

    impl Observer for Heard {
        fn committed(&self, attempt: &Attempt) {
            let heard = (attempt.id.as_str().to_owned(), attempt.state);
            self.0.lock().unwrap().push(heard);
        }
    }

    fn attempt(id: &str, state: State) -> Attempt {
        let now = Time::from_secs(100);
        let (ws, id) = ("w".parse().unwrap(), id.parse().unwrap());
        let epoch = uuid::Uuid::from_u128(7);
        let mut attempt = Attempt::new(ws, id, Spec::sample(now), Keyed::default(), epoch, now);
        attempt.state = state;
        attempt
    }

    #[test]
    fn an_observer_does_not_hear_an_earlier_commit_after_a_later_one() {
        let heard = Arc::new(Heard::default());
        let news = News::new(vec![Arc::clone(&heard) as Arc<dyn Observer>]);
        let tell = |id: &str, state, version| {
            news.tell(&[], &[attempt(id, state)], Version(version));
        };
        tell("a", State::Reserved, 1);
        tell("a", State::NotDialed, 4);
        // Committed before, and told after.
        tell("a", State::Dialing, 2);
        tell("b", State::Queued, 3);
        tell("a", State::Reserved, 5);
        let expected = [
            ("a", State::Reserved),
            ("a", State::NotDialed),
            ("b", State::Queued),
            ("a", State::Reserved),
        ];
        let expected = expected.map(|(id, state)| (id.to_owned(), state));
        assert_eq!(*heard.0.lock().unwrap(), expected);
        assert_eq!(
            *news.latest().borrow(),
            5,
            "whoever follows is woken all the same"
        );
    }

    #[test]
    fn what_is_remembered_of_commits_has_a_limit() {
        let mut recent = Recent::default();
        let first = attempt("first", State::Queued);
        assert!(recent.is_news(&first, Version(9)));
        for n in 0..RECENT {
            assert!(recent.is_news(&attempt(&n.to_string(), State::Queued), Version(10)));
        }
        assert_eq!((recent.told.len(), recent.order.len()), (RECENT, RECENT));
        assert!(recent.is_news(&first, Version(8)), "forgotten");
    }
}
