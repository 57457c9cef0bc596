//! Whole worlds under faults: a fresh seed each time, past failures for ever, and the same
//! seed twice.

use ringonce::sim::fleet::{self, Report};

/// Worlds that once broke a promise: seed and calls, as the violation named them.
const PAST: [(u64, usize); 0] = [];

/// Enough worlds that most kinds of fault are in one of them.
const CALLS: usize = 1_500;

#[test]
fn a_fresh_seed_breaks_no_promise() {
    let seed = chosen_seed().unwrap_or_else(fresh_seed);
    println!("repeat it with RINGONCE_SEED={seed}");
    let report = fleet::run(seed, CALLS, &|_| {}).unwrap();
    assert_kept(&report);
    assert!(report.started > 0, "nobody was called");
}

#[test]
fn what_once_broke_stays_whole() {
    for (seed, calls) in PAST {
        assert_kept(&fleet::one(seed, calls).unwrap());
    }
}

#[test]
fn the_same_seed_replays_exactly() {
    for seed in 1..4 {
        let [first, second] = [0, 1].map(|_| fleet::one(seed, 120).unwrap());
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.states, second.states, "seed {seed}");
    }
    let [one, other] = [1, 2].map(|seed| fleet::one(seed, 20).unwrap().digest);
    assert_ne!(one, other, "another seed is another world");
}

fn assert_kept(report: &Report) {
    for violation in &report.violations {
        println!("{violation}");
    }
    assert!(
        report.violations.is_empty(),
        "seed {}: {} broken promises",
        report.seed,
        report.violations.len()
    );
}

fn fresh_seed() -> u64 {
    u64::from(rand::random::<u32>())
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever repeats a failed run names its seed in the environment"
)]
fn chosen_seed() -> Option<u64> {
    std::env::var("RINGONCE_SEED").ok()?.parse().ok()
}
