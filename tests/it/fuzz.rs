//! Inputs of any shape into everything that reads from outside: no panic, no 2xx for what was
//! not signed, and nothing of it is stored.
//!
//! Each input is made from one number, so that a failure names the number and is played again
//! from it. `RINGONCE_SEED=N` repeats a run, `RINGONCE_FUZZ=N` makes it as many inputs long.

mod corpus;
mod mutate;
mod pure;
mod served;

use std::collections::BTreeMap;

use ringonce::runtime::ids::{Ids as _, RandomIds};

use corpus::Corpus;
use mutate::Mutator;
use pure::TARGETS;
use served::Served;

/// Inputs of a run: a few seconds.
const INPUTS: u64 = 20_000;

/// One in so many goes to a node's inbox, and one to its socket.
const INBOX_SHARE: u64 = 40;
const SOCKET_SHARE: u64 = 400;

/// Inputs of one node: what it stores is in memory.
const NODE_INPUTS: u64 = 2_000;

/// Inputs that once failed: the target and the number.
const PAST: [(&str, u64); 3] = [
    // A plus among the digits, of which no seven stand together: the judge was wrong.
    ("event-bytes", 6_366_204_399_470_189_871),
    // A claim that nobody reads, and that no type of a number holds: the judge was wrong.
    ("claims", 8_735_682_243_731_555_560),
    // A number of seven digits, which stand in a time as well: the judge was wrong.
    ("request", 14_278_714_125_593_983_478),
];

#[test]
fn no_input_breaks_a_reader() {
    let corpus = Corpus::new();
    let seed = chosen("RINGONCE_SEED").unwrap_or_else(fresh);
    let inputs = chosen("RINGONCE_FUZZ").unwrap_or(INPUTS);
    println!("RINGONCE_SEED={seed} RINGONCE_FUZZ={inputs}");
    let mut deep: BTreeMap<&str, u64> = BTreeMap::new();
    for n in 0..inputs {
        let number = mixed(seed, n);
        let (name, target) = TARGETS[usize::try_from(n).unwrap() % TARGETS.len()];
        let _told = told(name, number);
        let got_in = target(&mut Mutator::new(number), &corpus);
        *deep.entry(name).or_default() += u64::from(got_in);
    }
    println!("past the first checks: {deep:?}");
    // What never gets in proves nothing of what is behind the door.
    let few = |count: &u64| *count < inputs / 1_000;
    assert!(inputs < INPUTS || !deep.values().any(few), "{deep:?}");
}

#[tokio::test]
async fn no_input_gets_past_a_listener_unsigned() {
    let corpus = Corpus::new();
    let seed = chosen("RINGONCE_SEED").unwrap_or_else(fresh);
    let inputs = chosen("RINGONCE_FUZZ").unwrap_or(INPUTS);
    println!("RINGONCE_SEED={seed} RINGONCE_FUZZ={inputs}");
    let (bodies, requests) = (inputs / INBOX_SHARE, inputs / SOCKET_SHARE);
    let mut served = Served::new().await;
    for n in 0..bodies + requests {
        let number = mixed(seed, n);
        let mut chance = Mutator::new(number);
        if n < bodies {
            let _told = told("inbox", number);
            served.body(&mut chance, &corpus).await;
        } else {
            let _told = told("socket", number);
            served.request(&mut chance, &corpus).await;
        }
        if (n + 1) % NODE_INPUTS == 0 {
            served.judge().await;
            served = Served::new().await;
        }
    }
    served.judge().await;
}

#[tokio::test]
async fn what_once_failed_is_read() {
    let corpus = Corpus::new();
    let mut served = Served::new().await;
    for (name, number) in PAST {
        let mut chance = Mutator::new(number);
        match name {
            "inbox" => served.body(&mut chance, &corpus).await,
            "socket" => served.request(&mut chance, &corpus).await,
            _ => {
                let known = TARGETS.iter().find(|(target, _)| *target == name);
                let _in = known.expect("a target's name").1(&mut chance, &corpus);
            }
        }
    }
    served.judge().await;
}

/// A bent input is another one, and the same number bends it the same way.
#[test]
fn a_number_makes_one_input() {
    let corpus = Corpus::new();
    let bend = |number| {
        let mut chance = Mutator::new(number);
        let event = chance.of(&corpus.events).clone();
        let bent = chance.json(&event, &event);
        (
            chance.bytes(event.to_string().as_bytes(), b"x"),
            bent.to_string(),
        )
    };
    assert_eq!(bend(1), bend(1));
    assert_ne!(bend(1), bend(2));
}

/// Names the input if it fails.
fn told(name: &'static str, number: u64) -> impl Drop {
    scopeguard::guard((), move |()| {
        if std::thread::panicking() {
            eprintln!("play it again as PAST: (\"{name}\", {number})");
        }
    })
}

/// The finalizer of splitmix64: neighbours come out far apart.
const fn mixed(seed: u64, n: u64) -> u64 {
    let a = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}

fn fresh() -> u64 {
    let (high, low) = RandomIds::from_os().uuid().as_u64_pair();
    high ^ low
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs it by hand names seed and length in the environment"
)]
fn chosen(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
