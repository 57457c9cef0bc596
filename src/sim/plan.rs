//! What a seed makes of a world: how many nodes, how crowded, and what goes wrong in it.

use std::time::Duration;

use super::chance::Chance;

/// The most calls of one world: few enough that a failing one can be read.
pub const CALLS_MAX: usize = 500;

/// A world as its seed makes it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Everything in the world comes from it.
    pub seed: u64,
    /// How many attempts are asked for.
    pub calls: usize,
    /// How many processes serve from the one store.
    pub nodes: usize,
    /// Whether a node that opens the store may take its predecessor for dead, as the lock on
    /// a file proves; with one node only.
    pub alone: bool,
    /// How long calls come and things go wrong.
    pub span: Duration,
    /// How many people there are in each workspace.
    pub contacts: usize,
    /// Whether the platform sends webhooks at all.
    pub webhooks: bool,
    /// Of a hundred calls so many are canceled.
    pub cancels: f64,
    /// Of a hundred calls so many keys are used again for another call.
    pub reuses: f64,
    /// Of a hundred attempts that wait for a person so many are resolved by one.
    pub resolves: f64,
    /// How often a whole campaign is canceled.
    pub bulk: u64,
    /// What goes wrong.
    pub storm: Storm,
}

/// What goes wrong in a world: mean spans between blows, and shares of cases. A world with
/// every fault at once hides what one alone would show, so each is there or not.
#[derive(Debug, Clone)]
pub struct Storm {
    /// A process dies.
    pub crash: Option<Duration>,
    /// A process, or one task of it, stands still, also for longer than any lease.
    pub pause: Option<Duration>,
    /// A placement is dropped with its guards, as by a panic.
    pub drop: Option<Duration>,
    /// One placement stands still right after its marker.
    pub marked: Option<Duration>,
    /// A task that serves a request, a webhook or a try panics.
    pub panic: Option<Duration>,
    /// A process is told to end, and drains.
    pub drain: Option<Duration>,
    /// The share of store calls that go wrong.
    pub store: f64,
    /// The store refuses everything for seconds.
    pub outage: Option<Duration>,
    /// A request to the platform is lost, late, or refused.
    pub wire: Option<Duration>,
    /// Something of the platform dies or forgets.
    pub breaks: Option<Duration>,
    /// The share of webhooks that are lost, doubled or late, each.
    pub hooks: f64,
    /// A wall clock steps.
    pub clocks: Option<Duration>,
    /// The share of messages that the queue in front loses, doubles or delays, each.
    pub queue: f64,
}

impl Plan {
    /// The world of `seed`, with `calls` attempts.
    #[must_use]
    pub fn new(seed: u64, calls: usize) -> Self {
        let chance = Chance::new(seed, "plan");
        let nodes = 1 + chance.index(3);
        let every = |share: f64, least: u64, most: u64| {
            let gap = chance.millis(least * 1_000, most * 1_000);
            chance.hits(share).then_some(gap)
        };
        let part = |share: f64, most: f64| {
            let steps = f64::from(u32::try_from(1 + chance.below(10)).unwrap_or(1));
            if chance.hits(share) {
                most * steps / 10.0
            } else {
                0.0
            }
        };
        let mut storm = Storm {
            crash: every(0.5, 20, 200),
            pause: every(0.4, 2, 100),
            drop: every(0.3, 10, 100),
            marked: None,
            panic: None,
            drain: None,
            store: part(0.4, 0.02),
            outage: every(0.2, 30, 200),
            wire: every(0.5, 1, 30),
            breaks: every(0.3, 30, 300),
            hooks: part(0.5, 0.3),
            clocks: every(0.2, 20, 200),
            queue: part(0.7, 0.2),
        };
        let each = chance.millis(300, 2_000);
        let count = u32::try_from(calls).unwrap_or(u32::MAX);
        let mut plan = Self {
            seed,
            calls,
            nodes,
            alone: nodes == 1 && chance.hits(0.5),
            span: each.saturating_mul(count).max(Duration::from_secs(20)),
            contacts: (calls / 2).max(1) + chance.index(calls.max(1)),
            webhooks: chance.hits(0.8),
            cancels: part(0.6, 0.3),
            reuses: 0.0,
            resolves: 0.0,
            bulk: 0,
            storm: storm.clone(),
        };
        // Drawn last, so that the worlds of old seeds stay what they were but for these.
        storm.marked = every(0.2, 5, 60);
        storm.panic = every(0.3, 5, 60);
        storm.drain = every(0.2, 20, 200);
        plan.reuses = part(0.3, 0.2);
        plan.resolves = part(0.5, 1.0);
        plan.bulk = if chance.hits(0.3) {
            1 + chance.below(3)
        } else {
            0
        };
        plan.storm = storm;
        plan
    }
}
