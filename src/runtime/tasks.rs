//! The supervisor: every task has a name, its panics are caught and counted, and a
//! test may count, pause or drop it at any poll.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::stop::Stop;

/// What a test lets a task do at a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Poll it.
    Run,
    /// Do not poll it now; the test wakes it by [`Tasks::wake_paused`].
    Pause,
    /// Panic inside it.
    Panic,
    /// Drop it, with all its guards.
    Drop,
}

/// Before a loop that panicked begins anew: long enough that one which panics each time
/// leaves the processor to the others.
const ANEW: Duration = Duration::from_secs(1);

/// Decides each poll of each task: the seam of the simulation. In a process there is none.
pub trait Polls: Debug + Send + Sync {
    /// Called before poll number `poll` (from 1) of the task `id`, named `name`.
    fn before(&self, name: &'static str, id: u64, poll: u64) -> Step;
}

/// Spawns, names and ends tasks. Cheap to clone.
#[derive(Clone)]
pub struct Tasks(Arc<Shared>);

struct Shared {
    polls: Option<Arc<dyn Polls>>,
    running: Mutex<Running>,
    count: watch::Sender<usize>,
    panics: watch::Sender<u64>,
}

#[derive(Default)]
struct Running {
    next: u64,
    closed: bool,
    tasks: BTreeMap<u64, (&'static str, AbortHandle)>,
    paused: Vec<std::task::Waker>,
}

impl Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("running", &self.names())
            .finish_non_exhaustive()
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Tasks {
    /// A supervisor; `polls` is the seam of the simulation.
    #[must_use]
    pub fn new(polls: Option<Arc<dyn Polls>>) -> Self {
        Self(Arc::new(Shared {
            polls,
            running: Mutex::default(),
            count: watch::Sender::new(0),
            panics: watch::Sender::new(0),
        }))
    }

    /// Runs `work` as a task named `name`. A panic in it is logged and counted, and ends
    /// that task alone. After [`Tasks::abort_all`] nothing is spawned any more.
    pub fn spawn<F>(&self, name: &'static str, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.start(name, Box::pin(work), None);
    }

    /// As [`Tasks::spawn`], for a loop `of` something that the process cannot do without:
    /// after a panic it is run anew, a second later. It ends when it returns, as it does
    /// after `stop`.
    pub fn keep<T, F>(
        &self,
        name: &'static str,
        of: &Arc<T>,
        stop: &Stop,
        run: impl Fn(Arc<T>, Stop) -> F + Send + Sync + 'static,
    ) where
        T: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (of, stop) = (Arc::clone(of), stop.clone());
        let make = move || -> Work { Box::pin(run(Arc::clone(&of), stop.clone())) };
        self.start(name, make(), Some(Box::new(make)));
    }

    /// Apart from `spawn`, so that the runtime's part of a task is compiled once.
    fn start(&self, name: &'static str, work: Work, anew: Option<Make>) {
        let mut running = self.lock();
        if running.closed {
            return;
        }
        running.next += 1;
        let id = running.next;
        let tasks = self.clone();
        let mut supervised = Supervised {
            name,
            id,
            poll: 0,
            polls: self.0.polls.clone(),
            tasks: self.clone(),
            work: Some(work),
        };
        // Made here and not inside the block: a task that is aborted before its first poll
        // never enters the block, and must be counted off all the same.
        let finish = scopeguard::guard(self.clone(), move |tasks| tasks.finished(id));
        let whole = async move {
            let _finish = finish;
            while AssertUnwindSafe(&mut supervised)
                .catch_unwind()
                .await
                .is_err()
            {
                // Dropped here, so that its guards have run before it begins anew.
                supervised.work = None;
                tasks.0.panics.send_modify(|n| *n += 1);
                tracing::error!(
                    task = name,
                    begins_anew = anew.is_some(),
                    "a task panicked; what it held is handed over or reconciled"
                );
                let Some(anew) = &anew else { return };
                tokio::time::sleep(ANEW).await;
                supervised.work = Some(anew());
            }
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where tasks are spawned"
        )]
        let handle = tokio::spawn(whole);
        running.tasks.insert(id, (name, handle.abort_handle()));
        self.0.count.send_replace(running.tasks.len());
    }

    /// Ends every task at its next await; their guards run. Nothing is spawned afterwards.
    pub fn abort_all(&self) {
        let handles: Vec<AbortHandle> = {
            let mut running = self.lock();
            running.closed = true;
            running
                .tasks
                .values()
                .map(|(_, handle)| handle.clone())
                .collect()
        };
        for handle in handles {
            handle.abort();
        }
    }

    /// Waits until no task runs, at most `limit`; whether that came true.
    pub async fn idle(&self, limit: Duration) -> bool {
        let mut count = self.0.count.subscribe();
        tokio::time::timeout(limit, count.wait_for(|n| *n == 0))
            .await
            .is_ok()
    }

    /// Waits until no task named `name` runs, at most `limit`; whether that came true.
    pub async fn idle_named(&self, name: &'static str, limit: Duration) -> bool {
        let mut count = self.0.count.subscribe();
        let none = async {
            while self.running(name) > 0 {
                if count.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, none).await.is_ok()
    }

    /// How many tasks named `name` run.
    #[must_use]
    pub fn running(&self, name: &str) -> usize {
        self.lock()
            .tasks
            .values()
            .filter(|(n, _)| *n == name)
            .count()
    }

    /// How many tasks have panicked so far.
    #[must_use]
    pub fn panics(&self) -> u64 {
        *self.0.panics.borrow()
    }

    /// Wakes the tasks that a test had paused.
    pub fn wake_paused(&self) {
        let paused = std::mem::take(&mut self.lock().paused);
        for waker in paused {
            waker.wake();
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.lock().tasks.values().map(|(name, _)| *name).collect()
    }

    fn finished(&self, id: u64) {
        let mut running = self.lock();
        running.tasks.remove(&id);
        self.0.count.send_replace(running.tasks.len());
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> std::sync::MutexGuard<'_, Running> {
        self.0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Make = Box<dyn Fn() -> Work + Send + Sync>;

struct Supervised {
    name: &'static str,
    id: u64,
    poll: u64,
    polls: Option<Arc<dyn Polls>>,
    tasks: Tasks,
    work: Option<Work>,
}

impl Future for Supervised {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(work) = this.work.as_mut() else {
            return Poll::Ready(());
        };
        this.poll += 1;
        let step = match &this.polls {
            Some(polls) => polls.before(this.name, this.id, this.poll),
            None => Step::Run,
        };
        match step {
            Step::Run => work.as_mut().poll(cx),
            Step::Pause => {
                this.tasks.lock().paused.push(cx.waker().clone());
                Poll::Pending
            }
            // Past the hook, which would print each of thousands.
            Step::Panic => std::panic::resume_unwind(Box::new("injected")),
            Step::Drop => {
                this.work = None;
                Poll::Ready(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::runtime::stop::stop;

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_one_task_and_is_counted() {
        let tasks = Tasks::default();
        tasks.spawn("bad", async { panic!("on purpose") });
        tasks.spawn("good", async {
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
        assert!(tasks.idle_named("bad", Duration::from_millis(10)).await);
        assert_eq!(tasks.panics(), 1);
        assert_eq!(tasks.running("good"), 1);
        assert!(tasks.idle(Duration::from_secs(2)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_kept_begins_anew_after_a_panic() {
        let tasks = Tasks::default();
        let begun = Arc::new(AtomicU64::new(0));
        let (_owner, stop) = stop();
        tasks.keep("loop", &begun, &stop, |begun, _| async move {
            let nth = begun.fetch_add(1, Ordering::SeqCst);
            assert!(nth > 1, "on purpose");
        });
        assert!(tasks.idle_named("loop", ANEW * 3).await);
        assert_eq!(tasks.panics(), 2);
        assert_eq!(begun.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn aborted_tasks_end_and_nothing_is_spawned_afterwards() {
        let tasks = Tasks::default();
        tasks.spawn("waits", std::future::pending());
        tasks.abort_all();
        assert!(tasks.idle(Duration::from_secs(1)).await);
        tasks.spawn("late", std::future::pending());
        assert_eq!(tasks.running("late"), 0);
    }
}
