//! The simulation can fail: each deliberate fault of the product ([`mutant`]) is caught by it,
//! and the same worlds without one keep every promise.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fleet;
use super::plan::Plan;
use crate::runtime::mutant::{self, Mutant};

/// How many worlds a mutant may survive before it is said to be missed.
const WORLDS: u64 = 200;

/// The calls of each: small worlds come to their end soon.
const CALLS: usize = 40;

#[test]
fn every_mutant_is_caught() {
    let wanted = chosen();
    let mutants: Vec<Mutant> = Mutant::ALL
        .into_iter()
        .filter(|mutant| wanted.as_ref().is_none_or(|w| *w == format!("{mutant:?}")))
        .collect();
    let missed = Mutex::new(Vec::new());
    on_all_cores(mutants.len(), |at| {
        let mutant = mutants[at];
        if let Some(by) = caught(mutant) {
            println!("caught  {mutant:?}: {by}");
        } else {
            println!("MISSED  {mutant:?}: {WORLDS} worlds broke no promise");
            missed.lock().unwrap().push(mutant);
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn without_a_mutant_no_promise_breaks() {
    let kinds = [
        Mutant::NoFence,
        Mutant::NoHoldAfterEnd,
        Mutant::TokenAtSend,
        Mutant::UncertainFreesHold,
    ];
    on_all_cores(kinds.len() * 5, |at| {
        let played = fleet::alone(plan(kinds[at % kinds.len()], at as u64)).unwrap();
        assert!(played.violation.is_none(), "{}", played.violation.unwrap());
    });
}

/// The worlds in which the moment comes that a mutant needs.
fn plan(mutant: Mutant, seed: u64) -> Plan {
    let mut plan = Plan::new(seed, CALLS);
    let s = Duration::from_secs;
    match mutant {
        // Bridges die while phones ring, and the same people are wanted again soon.
        Mutant::NoHoldAfterEnd | Mutant::UncertainFreesHold => {
            plan.contacts = CALLS / 6;
            plan.storm.breaks = Some(s(10));
            plan.storm.wire = Some(s(5));
        }
        // Whoever dials stands still between the marker and the dial.
        Mutant::TokenAtSend => plan.storm.marked = Some(s(1)),
        Mutant::MarkerAfterDial
        | Mutant::NoFence
        | Mutant::HealAnyNotFound
        | Mutant::GuardAfterMarker
        | Mutant::LeaseHandsOverDialing
        | Mutant::SilenceIsProof
        | Mutant::DialAgain
        | Mutant::ExpectWithoutContact
        | Mutant::RoomUsedAgain
        | Mutant::ReceiptTwice
        | Mutant::WebhookWritesMarker
        | Mutant::CancelIgnoredAtMarker
        | Mutant::StopUnlooked
        | Mutant::RoomNotDeleted
        | Mutant::EventLeftOut => plan.storm.pause = Some(s(1)),
    }
    plan
}

/// By which promise, in which world. A mutant is of the thread, and so are the worlds.
fn caught(mutant: Mutant) -> Option<String> {
    mutant::choose(Some(mutant));
    let by = (0..WORLDS).find_map(|seed| {
        let violation = fleet::alone(plan(mutant, seed)).unwrap().violation?;
        Some(format!(
            "{} in the world of seed {seed} after {:.0} s",
            violation.invariant.name(),
            violation.at.as_secs_f64()
        ))
    });
    mutant::choose(None);
    by
}

fn on_all_cores(count: usize, one: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(count) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= count {
                        return;
                    }
                    one(at);
                }
            });
        }
    });
}

/// The one that is to be caught, where not all are.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever looks at one mutant names it in the environment"
)]
fn chosen() -> Option<String> {
    std::env::var("RINGONCE_MUTANT").ok()
}
