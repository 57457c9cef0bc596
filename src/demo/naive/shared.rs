//! What outlives a process of the naive worker: locks and results, as in Redis.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::demo::queue::Seen;
use crate::demo::times::LOCK;

/// Whether the lock was free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// It is ours now.
    Ours,
    /// Somebody else has it.
    Taken,
}

#[derive(Debug, Default)]
struct Kept {
    locks: BTreeMap<String, Instant>,
    done: BTreeMap<String, String>,
    failed: BTreeMap<String, String>,
    prevented: BTreeMap<String, u64>,
}

/// A key-value store that everybody can reach.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Kept>);

impl Shared {
    pub(super) fn is_done(&self, call: &str) -> bool {
        let mut kept = self.kept();
        let done = kept.done.contains_key(call);
        if done {
            *kept.prevented.entry("exists_check".to_owned()).or_default() += 1;
        }
        done
    }

    /// Takes the lock unless somebody has it whose time is not over.
    pub(super) fn lock(&self, call: &str) -> Lock {
        let mut kept = self.kept();
        let now = Instant::now();
        if kept.locks.get(call).is_some_and(|until| now < *until) {
            *kept.prevented.entry("lock".to_owned()).or_default() += 1;
            return Lock::Taken;
        }
        kept.locks.insert(call.to_owned(), now + LOCK);
        Lock::Ours
    }

    /// Frees it, whoever has it by now: comparing first is what the second version does.
    pub(super) fn unlock(&self, call: &str) {
        self.kept().locks.remove(call);
    }

    pub(super) fn done(&self, call: &str, how: &str) {
        self.kept().done.insert(call.to_owned(), how.to_owned());
    }

    pub(super) fn failed(&self, call: &str, why: &str) {
        self.kept().failed.insert(call.to_owned(), why.to_owned());
    }

    pub(super) fn prevented(&self) -> BTreeMap<String, u64> {
        self.kept().prevented.clone()
    }

    /// What it knows of its calls.
    pub(super) fn seen(&self) -> BTreeMap<String, Seen> {
        let kept = self.kept();
        let failed = kept.failed.iter().map(|(call, why)| {
            let seen = Seen {
                word: "failed".to_owned(),
                failed: true,
                why: format!("the last try failed: {why}"),
                ..Seen::default()
            };
            (call.clone(), seen)
        });
        let done = kept.done.iter().map(|(call, how)| {
            let seen = Seen {
                word: how.clone(),
                why: format!("recorded as done: {how}"),
                over: true,
                ..Seen::default()
            };
            (call.clone(), seen)
        });
        failed.chain(done).collect()
    }

    // A std mutex, since nothing is awaited while it is held.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
