//! The simulation can fail: each deliberate fault of the product ([`mutant`]) is caught by it,
//! and without one no promise breaks. `tests/mutants` runs this.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringonce::runtime::mutant::{self, Mutant};
use ringonce::sim::Plan;
use ringonce::sim::fleet;

/// How many worlds a mutant may survive before it is said to be missed.
const WORLDS: u64 = 400;

/// The calls of each: small worlds come to their end soon.
const CALLS: usize = 60;

#[test]
fn every_mutant_is_caught() {
    let wanted = chosen();
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let name = format!("{mutant:?}");
                    if wanted.as_ref().is_some_and(|wanted| *wanted != name) {
                        continue;
                    }
                    match caught(*mutant) {
                        Some(by) => println!("caught  {mutant:?}: {by}"),
                        None => {
                            println!("MISSED  {mutant:?}: {WORLDS} worlds broke no promise");
                            missed.lock().unwrap().push(*mutant);
                        }
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn without_a_mutant_no_promise_breaks() {
    mutant::choose(None);
    for seed in 0..20 {
        let played = fleet::alone(plan(seed)).unwrap();
        assert!(played.violation.is_none(), "{}", played.violation.unwrap());
    }
}

/// The one that is to be caught, where not all are.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever looks at one mutant names it in the environment"
)]
fn chosen() -> Option<String> {
    std::env::var("RINGONCE_MUTANT").ok()
}

/// The worlds: what stands still at the wrong moment is what most mutants need.
fn plan(seed: u64) -> Plan {
    let mut plan = Plan::new(seed, CALLS);
    plan.storm.pause = Some(Duration::from_secs(1));
    plan
}

/// By which promise, in which world. A mutant is of the thread, and so are the worlds.
fn caught(mutant: Mutant) -> Option<String> {
    mutant::choose(Some(mutant));
    (0..WORLDS).find_map(|seed| {
        let played = fleet::alone(plan(seed)).unwrap();
        let violation = played.violation?;
        Some(format!(
            "{} in the world of seed {seed} after {:.0} s",
            violation.invariant.name(),
            violation.at.as_secs_f64()
        ))
    })
}
