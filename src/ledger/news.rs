//! Who is told of a commit: those who wait for one attempt, those who follow the log, and
//! those who count.
//!
//! News carry no state: whoever is woken reads the ledger. A lost or doubled wake-up
//! changes nothing but the time.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::store::{Key, Version};
use crate::model::attempt::Attempt;
use crate::model::id::{AttemptId, Workspace};

/// Is told of every attempt that this process committed, in the order of the commits of
/// that attempt.
pub trait Observer: Debug + Send + Sync {
    /// `attempt` has been committed like this.
    fn committed(&self, attempt: &Attempt);
}

/// So many wait at most of whom something was told.
const TOLD_MAX: usize = 10_000;

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
        for attempt in attempts {
            for observer in &self.observers {
                observer.committed(attempt);
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
