//! A queue that delivers at least once, and what takes its messages.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::script::Call;
use super::times::{DELIVERIES, REDELIVERY, VISIBILITY};
use crate::lab::stack;
use crate::model::time::Time;
use crate::runtime::tasks::Tasks;

/// What the queue hears of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Acknowledged: the message is done with.
    Ack,
    /// It failed: deliver it again.
    Failed,
    /// Nothing: whoever took it is gone.
    Nothing,
}

/// What a worker makes of a call, for the table and for the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// In a word or two, as "no answer".
    pub(super) word: String,
    /// In a sentence.
    pub(super) why: String,
    /// Whether nothing changes any more.
    pub(super) over: bool,
    /// Whether it was given up without a call.
    pub(super) failed: bool,
    /// Whether what became of it is not known.
    pub(super) uncertain: bool,
    /// When its last dial was about to leave.
    pub(super) dialed: Option<Time>,
    /// The rules and reasons that kept it from ringing, each once.
    pub(super) kept: Vec<String>,
}

/// Takes messages and places calls.
#[async_trait]
pub(super) trait Worker: Debug + Send + Sync {
    /// One delivery. Dropped where it waits, it is a caller that hangs up.
    async fn deliver(&self, call: &Call) -> Heard;
    /// Somebody wants the call stopped.
    async fn cancel(&self, call: &Call) -> Heard;
    /// `kill -9`.
    async fn kill(&self) -> Result<(), stack::Error>;
    /// Starts it again, with whatever outlived it.
    async fn restart(&self) -> Result<(), stack::Error>;
    /// How often it kept a second call from being placed, by reason, where it counts that.
    fn prevented(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// What it makes of its calls; `None` while it cannot be asked.
    async fn look(&self) -> Option<BTreeMap<String, Seen>>;
}

/// How a message stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// How often it was delivered.
    pub(super) deliveries: u32,
    /// Whether it was acknowledged.
    pub(super) done: bool,
    /// Whether it is not delivered any more.
    exhausted: bool,
    /// Deliveries of which nothing was heard yet.
    in_flight: u32,
}

impl Message {
    /// Whether nothing more comes of it: acknowledged, or put aside.
    pub(super) fn over(self) -> bool {
        self.done || (self.exhausted && self.in_flight == 0)
    }
}

/// When the first to take a message hangs up.
pub(super) type Gone = BoxFuture<'static, ()>;

/// The queue of one worker.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    worker: Arc<dyn Worker>,
    tasks: Tasks,
    messages: Arc<Mutex<BTreeMap<String, Message>>>,
}

impl Queue {
    pub(super) fn new(worker: Arc<dyn Worker>, tasks: Tasks) -> Self {
        Self {
            worker,
            tasks,
            messages: Arc::default(),
        }
    }

    /// Delivers a call's message until it is acknowledged, and too often rather than too
    /// seldom. The first to take it hangs up when `gone` is over.
    pub(super) fn send(&self, call: Call, gone: Option<Gone>) {
        self.note(&call.id, |_| {});
        let queue = self.clone();
        self.tasks.spawn("demo-message", async move {
            let (says, mut heard) = watch::channel(Heard::Nothing);
            let mut gone = gone;
            let mut pause = REDELIVERY;
            for nth in 1..=DELIVERIES {
                says.send_replace(Heard::Nothing);
                queue.deliver_apart(call.clone(), gone.take(), says.clone());
                let word = heard.wait_for(|heard| *heard != Heard::Nothing);
                let failed = tokio::time::timeout(VISIBILITY, word).await.is_ok();
                if queue.message(&call.id).done {
                    return;
                }
                if failed && nth < DELIVERIES {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
            queue.note(&call.id, |message| message.exhausted = true);
        });
    }

    /// Delivers it once more although it was acknowledged, as a queue may.
    pub(super) async fn again(&self, call: &Call) {
        self.note(&call.id, |message| message.deliveries += 1);
        self.worker.deliver(call).await;
    }

    /// Delivers it `times` more in this moment.
    pub(super) fn storm(&self, call: &Call, times: u32) {
        for _ in 0..times {
            self.deliver_apart(call.clone(), None, watch::Sender::new(Heard::Nothing));
        }
    }

    /// How a call's message stands.
    pub(super) fn message(&self, call: &str) -> Message {
        self.lock().get(call).copied().unwrap_or_default()
    }

    /// Whether nothing is to be delivered and nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().values().all(|message| message.over())
    }

    fn deliver_apart(&self, call: Call, gone: Option<Gone>, says: watch::Sender<Heard>) {
        self.note(&call.id, |message| {
            message.deliveries += 1;
            message.in_flight += 1;
        });
        let queue = self.clone();
        self.tasks.spawn("demo-delivery", async move {
            let hangs_up = gone.unwrap_or_else(|| Box::pin(pending()));
            let said = tokio::select! {
                biased;
                said = queue.worker.deliver(&call) => said,
                () = hangs_up => Heard::Nothing,
            };
            queue.note(&call.id, |message| {
                message.done |= said == Heard::Ack;
                message.in_flight = message.in_flight.saturating_sub(1);
            });
            if said != Heard::Nothing {
                says.send_replace(said);
            }
        });
    }

    fn note(&self, call: &str, change: impl FnOnce(&mut Message)) {
        change(self.lock().entry(call.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::super::script::calls;
    use super::*;

    /// Hears nothing of so many deliveries, and acknowledges the next.
    #[derive(Debug)]
    struct Deaf {
        to: usize,
        taken: AtomicUsize,
    }

    #[async_trait]
    impl Worker for Deaf {
        async fn deliver(&self, _: &Call) -> Heard {
            if self.taken.fetch_add(1, Ordering::SeqCst) < self.to {
                pending::<()>().await;
            }
            Heard::Ack
        }
        async fn cancel(&self, _: &Call) -> Heard {
            Heard::Ack
        }
        async fn kill(&self) -> Result<(), stack::Error> {
            Ok(())
        }
        async fn restart(&self) -> Result<(), stack::Error> {
            Ok(())
        }
        async fn look(&self) -> Option<BTreeMap<String, Seen>> {
            None
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_acknowledged_comes_again_but_not_for_ever() {
        for (to, deliveries, done) in [(0, 1, true), (2, 3, true), (9, DELIVERIES, false)] {
            let taken = AtomicUsize::new(0);
            let worker = Arc::new(Deaf { to, taken });
            let queue = Queue::new(worker, Tasks::default());
            let call = calls().remove(0);
            queue.send(call.clone(), None);
            tokio::time::sleep(Duration::from_mins(1)).await;
            let message = queue.message(&call.id);
            assert_eq!((message.deliveries, message.done), (deliveries, done));
            assert_eq!(queue.is_empty(), done);
        }
    }
}
