//! Blows at the awaits of a node: at some poll of some task, the process dies, stands still,
//! or loses a placement.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::placement;
use crate::runtime::life::Life;
use crate::runtime::tasks::{Polls, Step};

/// What befalls a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    /// As `kill -9`.
    Crash,
    /// The whole process stands still for so long, as a stopped or swapped-out one.
    Halt(Duration),
    /// One placement stands still for so long.
    Hold(Duration),
    /// One placement stands still for so long, right after its marker was sent to the store.
    HoldMarked(Duration),
    /// One placement is dropped, with its guards.
    Drop,
    /// One task that serves a request, a webhook or a try panics.
    Panic,
}

/// The blow that waits for a node.
#[derive(Debug)]
pub(super) struct Armed {
    life: Life,
    state: Mutex<State>,
    struck: Notify,
    died: Notify,
}

#[derive(Debug, Default)]
struct State {
    blow: Option<(Blow, u64)>,
    halted: Option<Instant>,
    held: BTreeMap<u64, Instant>,
    /// The task that was polled last.
    polled: Option<(&'static str, u64)>,
    panics: u64,
}

impl Armed {
    /// Nothing waits for this node yet.
    pub(super) fn new(life: Life) -> Arc<Self> {
        Arc::new(Self {
            life,
            state: Mutex::default(),
            struck: Notify::new(),
            died: Notify::new(),
        })
    }

    /// From now on `blow` falls at the poll after `polls` others that it could have fallen at.
    pub(super) fn arm(&self, blow: Blow, polls: u64) {
        self.state().blow = Some((blow, polls));
    }

    /// Nothing falls any more; whether something still waited to.
    pub(super) fn disarm(&self) -> bool {
        self.state().blow.take().is_some()
    }

    /// The task that is polled sends a marker to the store: whether it stands still from now.
    pub(super) fn marks(&self) -> bool {
        let mut state = self.state();
        match (state.blow, state.polled) {
            (Some((Blow::HoldMarked(span), _)), Some((placement::TASK, id))) => {
                state.blow = None;
                state.held.insert(id, Instant::now() + span);
                self.struck.notify_one();
                true
            }
            (Some(_) | None, _) => false,
        }
    }

    /// The process ends by itself.
    pub(super) fn leave(&self) {
        self.life.end();
        self.died.notify_one();
    }

    /// How many tasks were made to panic.
    pub(super) fn panics(&self) -> u64 {
        self.state().panics
    }

    /// Returns when a blow has fallen.
    pub(super) async fn struck(&self) {
        self.struck.notified().await;
    }

    /// Returns when the node has died of one.
    pub(super) async fn died(&self) {
        while !self.life.ended() {
            self.died.notified().await;
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strike(&self, state: &mut State, blow: Blow, id: u64) -> Step {
        state.blow = None;
        self.struck.notify_one();
        let now = Instant::now();
        match blow {
            Blow::Crash => {
                self.life.end();
                self.died.notify_one();
                Step::Pause
            }
            Blow::Halt(span) => {
                state.halted = Some(now + span);
                Step::Pause
            }
            Blow::Panic => {
                state.panics += 1;
                Step::Panic
            }
            Blow::Hold(span) | Blow::HoldMarked(span) => {
                state.held.insert(id, now + span);
                Step::Pause
            }
            Blow::Drop => Step::Drop,
        }
    }
}

/// Tasks that serve one request, webhook or try, which ends with a panic; and loops, which
/// begin anew after one.
const MAY_PANIC: [&str; 11] = [
    placement::TASK,
    "delivery",
    "webhook",
    "cancel",
    "reconciler",
    "reconciler.rooms",
    "reconciler.looks",
    "reconciler.sweep",
    "inbox",
    "trim",
    "queue",
];

impl Blow {
    /// Whether it may fall at a poll of this task.
    fn befalls(self, task: &str) -> bool {
        match self {
            Self::Crash | Self::Halt(_) => true,
            Self::Hold(_) | Self::Drop => task == placement::TASK,
            // It falls at a commit.
            Self::HoldMarked(_) => false,
            Self::Panic => MAY_PANIC.contains(&task),
        }
    }
}

impl Polls for Armed {
    fn before(&self, name: &'static str, id: u64, _poll: u64) -> Step {
        // The ports of a dead node are dead already; its futures do nothing until they drop.
        if self.life.ended() {
            return Step::Pause;
        }
        let mut state = self.state();
        let now = Instant::now();
        if state.halted.is_some_and(|until| now < until) {
            return Step::Pause;
        }
        state.halted = None;
        match state.held.get(&id) {
            Some(until) if now < *until => return Step::Pause,
            Some(_) => {
                state.held.remove(&id);
            }
            None => {}
        }
        state.polled = Some((name, id));
        let Some((blow, left)) = &mut state.blow else {
            return Step::Run;
        };
        if !blow.befalls(name) {
            return Step::Run;
        }
        if *left > 0 {
            *left -= 1;
            return Step::Run;
        }
        let blow = *blow;
        self.strike(&mut state, blow, id)
    }
}
