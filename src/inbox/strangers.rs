//! Connections on which nobody has signed anything yet.
//!
//! Whoever opens many of them and says nothing must not keep LiveKit out until they time out:
//! when all places are taken, the oldest of them makes room for whoever comes. One that has
//! signed a webhook is left in peace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Those who have not signed, oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    by_age: BTreeMap<u64, Arc<Notify>>,
}

/// One of them, for as long as its connection is there.
#[derive(Debug)]
pub(super) struct Stranger {
    of: Arc<Strangers>,
    id: u64,
    leave: Arc<Notify>,
}

impl Strangers {
    /// A connection was opened.
    pub(super) fn enter(self: &Arc<Self>) -> Stranger {
        let leave = Arc::new(Notify::new());
        let mut inside = self.lock();
        let id = inside.next;
        inside.next += 1;
        inside.by_age.insert(id, Arc::clone(&leave));
        Stranger {
            of: Arc::clone(self),
            id,
            leave,
        }
    }

    /// Asks the oldest of them to leave; whether there is one.
    pub(super) fn show_out(&self) -> bool {
        let oldest = self.lock().by_age.pop_first();
        // The permit of a notification waits for whoever does not listen yet.
        oldest.inspect(|(_, leave)| leave.notify_one()).is_some()
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// It has signed a webhook.
    pub(super) fn is_known(&self) {
        self.of.lock().by_age.remove(&self.id);
    }

    /// Waits until it must leave.
    pub(super) async fn shown_out(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_who_has_not_signed_leaves() {
        let strangers = Arc::new(Strangers::default());
        let [first, second, third] = [0; 3].map(|_| strangers.enter());
        first.is_known();
        assert!(strangers.show_out());
        second.shown_out().await;
        drop(third);
        assert!(!strangers.show_out(), "nobody is left who has not signed");
    }
}
