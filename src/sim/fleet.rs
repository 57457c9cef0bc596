//! Many worlds, on all cores.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::chance::mix;
use super::plan::{CALLS_MAX, Plan};
use super::play::{Played, play};
use super::violation::{Invariant, Violation};
use crate::model::attempt::State;

/// How many broken promises a report shows in full.
const SHOWN: usize = 20;

/// What came of all worlds.
#[derive(Debug, Clone)]
pub struct Report {
    /// Attempts that were asked for.
    pub calls: usize,
    /// Worlds that were played.
    pub worlds: usize,
    /// The seed of them all.
    pub seed: u64,
    /// The hash over all that happened in them.
    pub digest: String,
    /// SIP calls that were started.
    pub started: u64,
    /// Cancels by the state of their attempt at that moment.
    pub cancels: BTreeMap<State, u64>,
    /// Attempts by state at the end of their world.
    pub states: BTreeMap<State, u64>,
    /// The broken promises, at most one a world.
    pub violations: Vec<Violation>,
    /// How long it took.
    pub elapsed: Duration,
}

/// The worlds that `calls` attempts make: each of at most [`CALLS_MAX`].
#[must_use]
pub fn plans(seed: u64, calls: usize) -> Vec<Plan> {
    let worlds = calls.div_ceil(CALLS_MAX);
    (0..worlds)
        .map(|at| {
            let left = calls - at * CALLS_MAX;
            Plan::new(mix(seed ^ mix(at as u64)), left.min(CALLS_MAX))
        })
        .collect()
}

/// Plays all worlds of `calls` attempts, as many at once as there are cores, and tells after
/// each how many are done.
///
/// # Errors
///
/// If a runtime or a thread does not start.
pub fn run(seed: u64, calls: usize, done: &(dyn Fn(usize) + Sync)) -> anyhow::Result<Report> {
    play_all(seed, calls, &plans(seed, calls), done)
}

/// Plays one world, as a [`Violation`] names it.
///
/// # Errors
///
/// As [`run`].
pub fn one(seed: u64, calls: usize) -> anyhow::Result<Report> {
    play_all(seed, calls, &[Plan::new(seed, calls)], &|_| {})
}

fn play_all(
    seed: u64,
    calls: usize,
    plans: &[Plan],
    done: &(dyn Fn(usize) + Sync),
) -> anyhow::Result<Report> {
    let begun = Instant::now();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let played: Mutex<BTreeMap<usize, anyhow::Result<Played>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..cores.min(plans.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(plan) = plans.get(at) else { return };
                    let one = alone(plan.clone());
                    let mut played = played.lock().unwrap_or_else(PoisonError::into_inner);
                    played.insert(at, one);
                    done(played.len());
                }
            });
        }
    });
    let played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = Report {
        calls,
        worlds: plans.len(),
        seed,
        digest: String::new(),
        started: 0,
        cancels: BTreeMap::new(),
        states: BTreeMap::new(),
        violations: Vec::new(),
        elapsed: Duration::ZERO,
    };
    let mut digest = Sha256::new();
    for world in played.into_values() {
        let world = world?;
        digest.update(world.digest);
        report.started += world.started;
        for (state, count) in world.cancels {
            *report.cancels.entry(state).or_default() += count;
        }
        for (state, count) in world.states {
            *report.states.entry(state).or_default() += count;
        }
        report.violations.extend(world.violation);
    }
    report.digest = hex(&digest.finalize());
    report.elapsed = begun.elapsed();
    Ok(report)
}

/// Plays one world in a paused runtime of its own, on this thread.
///
/// # Errors
///
/// If the runtime does not start.
pub fn alone(plan: Plan) -> anyhow::Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("failed to start a runtime")?;
    runtime.block_on(Box::pin(play(plan)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String can be written to");
        text
    })
}

impl Report {
    /// How many attempts ended in this state.
    #[must_use]
    pub fn in_state(&self, state: State) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    /// How many worlds ended by one of these.
    #[must_use]
    pub fn broke(&self, those: &[Invariant]) -> usize {
        let broke = |v: &&Violation| those.contains(&v.invariant);
        self.violations.iter().filter(broke).count()
    }

    /// As one object.
    #[must_use]
    pub fn json(&self) -> Value {
        let states: BTreeMap<_, _> = self.states.iter().map(|(s, n)| (s.name(), n)).collect();
        let cancels: BTreeMap<_, _> = self.cancels.iter().map(|(s, n)| (s.name(), n)).collect();
        let doubled = [
            Invariant::OneCall,
            Invariant::OneLegPerContact,
            Invariant::OneLegPerNumber,
        ];
        json!({
            "calls": self.calls,
            "worlds": self.worlds,
            "seed": self.seed,
            "digest": self.digest,
            "sip_calls": self.started,
            "double_rings": self.broke(&doubled),
            "leaked_rooms": self.broke(&[Invariant::NoRoomLeft]),
            "wedged": self.broke(&[Invariant::Moves, Invariant::Settles]),
            "uncertain": self.in_state(State::Uncertain),
            "needs_review": self.in_state(State::NeedsReview),
            "by_state": states,
            "cancels_by_state": cancels,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "violations": self.violations.iter().take(SHOWN).map(violation).collect::<Vec<_>>(),
        })
    }
}

fn violation(violation: &Violation) -> Value {
    json!({
        "invariant": violation.invariant.name(),
        "what": violation.what,
        "seed": violation.seed,
        "calls": violation.calls,
        "at_seconds": violation.at.as_secs_f64(),
        "story": violation.story,
        "last": violation.last,
    })
}
