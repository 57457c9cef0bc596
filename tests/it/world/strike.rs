//! What a test does to a placement at one of its polls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ringonce::placement;
use ringonce::runtime::life::Life;
use ringonce::runtime::tasks::{Polls, Step};
use tokio::sync::Notify;

/// What is done to it.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Its process dies, as by `kill -9`.
    Crash(Life),
    /// It is not run until [`Strike::release`].
    Pause,
    /// It panics.
    Panic,
    /// It is dropped, with its guards.
    Drop,
}

/// Strikes the `nth` placement of a node at its poll number `poll`.
#[derive(Debug)]
pub(crate) struct Strike {
    pub(crate) act: Act,
    nth: usize,
    poll: u64,
    seen: Mutex<Vec<u64>>,
    struck: AtomicBool,
    released: AtomicBool,
    news: Notify,
}

impl Strike {
    pub(crate) fn new(nth: usize, poll: u64, act: Act) -> Self {
        Self {
            act,
            nth,
            poll,
            seen: Mutex::default(),
            struck: AtomicBool::new(false),
            released: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    pub(crate) fn struck(&self) -> bool {
        self.struck.load(Ordering::SeqCst)
    }

    /// Waits until it has struck.
    pub(crate) async fn strikes(&self) {
        while !self.struck() {
            self.news.notified().await;
        }
    }

    /// Lets what is paused run; [`ringonce::runtime::tasks::Tasks::wake_paused`] wakes it.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
    }
}

impl Polls for Strike {
    fn before(&self, name: &'static str, id: u64, poll: u64) -> Step {
        if name != placement::TASK {
            return Step::Run;
        }
        let nth = {
            let mut seen = self.seen.lock().unwrap();
            seen.iter()
                .position(|known| *known == id)
                .unwrap_or_else(|| {
                    seen.push(id);
                    seen.len() - 1
                })
        };
        if nth != self.nth || poll < self.poll {
            return Step::Run;
        }
        let first = !self.struck.swap(true, Ordering::SeqCst);
        self.news.notify_one();
        match &self.act {
            Act::Crash(life) => {
                life.end();
                Step::Pause
            }
            // A timer that it waits for must not wake it: the pause holds until its release.
            Act::Pause if !self.released.load(Ordering::SeqCst) => Step::Pause,
            Act::Panic if first => Step::Panic,
            Act::Drop if first => Step::Drop,
            Act::Pause | Act::Panic | Act::Drop => Step::Run,
        }
    }
}
