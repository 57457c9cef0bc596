//! The judge: hears of every commit and of every phone at the moment at which it happens, and
//! ends the world where a promise breaks.
//!
//! It knows the truth that no node knows: which phones ring. The ledger's commits come from
//! the store itself, so that one whose answer was lost, or that was done late, counts too.

mod clock;
mod commits;
mod phones;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use super::violation::{Invariant, Violation};
use crate::lab::platform::Phone;
use crate::lab::world::Watches;
use crate::ledger::store::memory::Witness;
use crate::ledger::store::{Commit, Version};
use crate::model::attempt::{Attempt, State};
use crate::model::id::{Partition, SessionId};
use crate::model::time::Time;
use clock::Check;

/// How many of the last things a violation shows.
const LAST: usize = 80;

/// How many of the last things of the attempt that it is about.
const STORY: usize = 30;

/// Hears and judges.
#[derive(Debug)]
pub(super) struct Judge {
    case: Mutex<Case>,
    found: Notify,
}

/// What is known of one attempt.
#[derive(Debug)]
struct Known {
    attempt: Attempt,
    /// SIP calls that were started for it.
    calls: u32,
    /// Phones of it that ring or talk now.
    legs: u32,
    /// Whether one of them was answered.
    answered: bool,
    /// What the last list of its room said since a stop was recorded: whether it was answered.
    listed: Option<bool>,
    /// When its stop was found to have come too late.
    spared: Option<Instant>,
    /// What happened to it last.
    story: VecDeque<(Duration, Thing)>,
}

/// Everything that was heard.
#[derive(Debug)]
struct Case {
    seed: u64,
    calls: usize,
    begun: Instant,
    wall_start: Time,
    /// Whether uncertain attempts settle by themselves.
    settles: bool,
    attempts: BTreeMap<String, Known>,
    sessions: BTreeMap<SessionId, String>,
    contacts: BTreeMap<String, u32>,
    numbers: BTreeMap<String, u32>,
    receipts: BTreeSet<String>,
    commits: BTreeMap<Partition, Version>,
    checks: BTreeMap<(Instant, u64), Check>,
    order: u64,
    /// Until when something that went wrong may hold things up.
    rough_until: Instant,
    /// How far the wall clock of a node was off at most.
    skew: Duration,
    orphans: BTreeMap<String, Instant>,
    /// Who waits for an attempt to come into a state.
    awaited: BTreeMap<String, Vec<(State, oneshot::Sender<()>)>>,
    cancels: BTreeMap<State, u64>,
    last: VecDeque<(Duration, Thing)>,
    acts: VecDeque<(Duration, Thing)>,
    digest: Sha256,
    violation: Option<Violation>,
}

/// Something that happened, kept cheaply until somebody asks.
#[derive(Debug, Clone)]
enum Thing {
    /// A commit of an attempt.
    Committed(Version, String, State, Option<Time>),
    /// Of a phone.
    Phone(String, Phone),
    /// The simulation did something.
    Did(String),
}

impl Judge {
    /// Of the world of `seed`, which begins now.
    pub(super) fn new(seed: u64, calls: usize, wall_start: Time, settles: bool) -> Arc<Self> {
        let begun = Instant::now();
        Arc::new(Self {
            case: Mutex::new(Case {
                seed,
                calls,
                begun,
                wall_start,
                settles,
                attempts: BTreeMap::new(),
                sessions: BTreeMap::new(),
                contacts: BTreeMap::new(),
                numbers: BTreeMap::new(),
                receipts: BTreeSet::new(),
                commits: BTreeMap::new(),
                checks: BTreeMap::new(),
                order: 0,
                rough_until: begun,
                skew: Duration::ZERO,
                orphans: BTreeMap::new(),
                awaited: BTreeMap::new(),
                cancels: BTreeMap::new(),
                last: VecDeque::new(),
                acts: VecDeque::new(),
                digest: Sha256::new(),
                violation: None,
            }),
            found: Notify::new(),
        })
    }

    /// The simulation did this, and its consequences may hold things up for `reach`.
    pub(super) fn did(&self, reach: Duration, what: impl FnOnce() -> String) {
        let mut case = self.case();
        case.rough_until = case.rough_until.max(Instant::now() + reach);
        let what = what();
        case.remember(Thing::Did(what));
    }

    /// A node's wall clock is off by so much.
    pub(super) fn skewed(&self, by: Duration) {
        let mut case = self.case();
        case.skew = case.skew.max(by);
    }

    /// Returns once the attempt is in this state, or after `limit`; whether it came there.
    pub(super) async fn reaches(&self, key: &str, state: State, limit: Duration) -> bool {
        let told = {
            let mut case = self.case();
            let known = case.attempts.get(key);
            if known.is_some_and(|known| known.attempt.state == state) {
                return true;
            }
            let (tell, told) = oneshot::channel();
            let awaited = case.awaited.entry(key.to_owned()).or_default();
            awaited.push((state, tell));
            told
        };
        timeout(limit, told).await.is_ok_and(|told| told.is_ok())
    }

    /// The calls of an attempt, its phones that ring or talk now, and whether one answered.
    pub(super) fn truth(&self, key: &str) -> (u32, u32, bool) {
        let case = self.case();
        let known = case.attempts.get(key);
        known.map_or((0, 0, false), |k| (k.calls, k.legs, k.answered))
    }

    /// An attempt is canceled in the state in which it is now.
    pub(super) fn cancels_at(&self, key: &str) {
        let mut case = self.case();
        if let Some(state) = case.attempts.get(key).map(|known| known.attempt.state) {
            *case.cancels.entry(state).or_default() += 1;
        }
    }

    /// How many cancels came in each state.
    pub(super) fn cancels(&self) -> BTreeMap<State, u64> {
        self.case().cancels.clone()
    }

    /// Looks at what time alone breaks: call it every few seconds, with the rooms that live.
    pub(super) fn look(&self, rooms: &[String]) {
        let mut case = self.case();
        case.overdue();
        case.rooms(rooms);
        self.tell(&case);
    }

    /// Something in the simulation broke.
    pub(super) fn broken(&self, invariant: Invariant, what: String) {
        let mut case = self.case();
        case.violated(invariant, what);
        self.tell(&case);
    }

    /// Returns when a promise is broken.
    pub(super) async fn violated(&self) {
        while self.case().violation.is_none() {
            self.found.notified().await;
        }
    }

    /// The first broken promise, if one is.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.case().violation.clone()
    }

    /// How many attempts are in each state.
    pub(super) fn states(&self) -> BTreeMap<State, u64> {
        let mut states = BTreeMap::new();
        for known in self.case().attempts.values() {
            *states.entry(known.attempt.state).or_default() += 1;
        }
        states
    }

    /// How many attempts may still pass on by themselves, and how many phones ring or talk.
    pub(super) fn open(&self) -> (usize, u32) {
        let case = self.case();
        let passing = |known: &&Known| match known.attempt.state {
            State::Queued
            | State::Deferred
            | State::Reserved
            | State::Dialing
            | State::Answered => true,
            State::Uncertain => case.settles,
            State::Refused
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::NeedsReview
            | State::Canceled => false,
        };
        let open = case.attempts.values().filter(passing).count();
        (open, case.attempts.values().map(|known| known.legs).sum())
    }

    /// How many calls were started.
    pub(super) fn started(&self) -> u64 {
        let case = self.case();
        case.attempts.values().map(|k| u64::from(k.calls)).sum()
    }

    /// The hash over all that was heard.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.case().digest.clone().finalize().into()
    }

    fn tell(&self, case: &Case) {
        if case.violation.is_some() {
            self.found.notify_one();
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn case(&self) -> MutexGuard<'_, Case> {
        self.case.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Judge {
    fn applied(&self, p: Partition, commit: &Commit, version: Version) {
        let mut case = self.case();
        case.committed(p, commit, version);
        self.tell(&case);
    }
}

impl Watches for Judge {
    fn saw(&self, phone: &Phone) {
        let mut case = self.case();
        case.heard(phone);
        self.tell(&case);
    }
}

impl Case {
    /// The first broken promise is kept; what follows from it is not news.
    fn violated(&mut self, invariant: Invariant, what: String) {
        if self.violation.is_some() {
            return;
        }
        self.violation = Some(Violation {
            invariant,
            what,
            seed: self.seed,
            calls: self.calls,
            at: self.begun.elapsed(),
            story: Vec::new(),
            last: self.acts.iter().chain(&self.last).map(line).collect(),
        });
    }

    /// The same of a promise to one attempt, whose story is shown.
    fn failed(&mut self, key: &str, invariant: Invariant, what: String) {
        let news = self.violation.is_none();
        self.violated(invariant, what);
        if let Some(violation) = self.violation.as_mut().filter(|_| news)
            && let Some(known) = self.attempts.get(key)
        {
            violation.story = known.story.iter().map(line).collect();
        }
    }

    /// Remembers what happened to an attempt, for its story and for what happened last.
    fn remember_of(&mut self, key: &str, thing: Thing) {
        let at = self.begun.elapsed();
        if let Some(known) = self.attempts.get_mut(key) {
            if known.story.len() >= STORY {
                known.story.pop_front();
            }
            known.story.push_back((at, thing.clone()));
        }
        self.remember(thing);
    }

    fn remember(&mut self, thing: Thing) {
        if self.last.len() >= LAST
            && let Some((at, gone)) = self.last.pop_front()
            && matches!(gone, Thing::Did(_))
        {
            // What the simulation did is shown from further back than what came of it.
            if self.acts.len() >= LAST / 2 {
                self.acts.pop_front();
            }
            self.acts.push_back((at, gone));
        }
        self.last.push_back((self.begun.elapsed(), thing));
    }

    /// The moment at which a right clock shows `at`.
    fn moment(&self, at: Time) -> Instant {
        self.begun + at.since(self.wall_start)
    }

    fn wall(&self) -> Time {
        self.wall_start.plus(self.begun.elapsed())
    }
}

fn line((at, thing): &(Duration, Thing)) -> String {
    format!("{:10.3} {thing}", at.as_secs_f64())
}

impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Committed(version, key, state, due) => {
                write!(f, "commit {}: {key} {}", version.0, state.name())?;
                due.map_or(Ok(()), |due| write!(f, ", due {due}"))
            }
            Self::Phone(key, phone) => write!(f, "phone of {key}: {:?}", phone.what),
            Self::Did(what) => f.write_str(what),
        }
    }
}

/// Whether nothing more happens to an attempt in this state.
const fn is_over(state: State) -> bool {
    match state {
        State::Refused
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => true,
        State::Queued
        | State::Deferred
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Uncertain
        | State::NeedsReview => false,
    }
}

/// Whether this attempt says that no call was started for it. Written out here, and not asked of
/// the product, so that the judge does not share its mistakes.
fn denies_a_call(attempt: &Attempt) -> bool {
    let started = attempt.settled.as_ref().is_some_and(|s| s.call_started);
    match attempt.state {
        State::Queued | State::Deferred | State::Refused | State::Reserved | State::NotDialed => {
            true
        }
        State::Canceled => !started,
        State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::Uncertain
        | State::NeedsReview => false,
    }
}
