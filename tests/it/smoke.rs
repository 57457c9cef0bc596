//! Smoke: a hundred calls in one seeded world, whose process crashes at each poll of a
//! placement in turn, while the queue before it delivers at least once.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ringonce::model::attempt::{Attempt, State};
use ringonce::model::request::Request;
use ringonce::runtime::life::Life;
use tokio::time::{sleep, timeout};

use super::world::{Act, Alive, Lab, Strike};

/// Answers, busy, declines, never answers, does not exist, carrier out of service,
/// connection cut while it rings, answers with a lost reply, unavailable.
const CALLEES: [u8; 9] = [0, 86, 3, 8, 4, 53, 99, 98, 80];

const CALLS: usize = 100;

/// New calls a crash: fifty crashes, and a placement has fewer polls.
const EACH: usize = 2;

#[tokio::test(start_paused = true)]
async fn a_hundred_calls_with_a_crash_at_each_poll_ring_once_each() {
    let seeds = match chosen_seed() {
        Some(seed) => seed..seed + 1,
        None => 1..3,
    };
    for seed in seeds {
        let told = scopeguard::guard(seed, |seed| {
            if std::thread::panicking() {
                eprintln!("repeat it with RINGONCE_SEED={seed}");
            }
        });
        smoke(*told).await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever repeats a failed run names its seed in the environment"
)]
fn chosen_seed() -> Option<u64> {
    std::env::var("RINGONCE_SEED").ok()?.parse().ok()
}

async fn smoke(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut lab = Lab::new(seed);
    // Both kinds of store: one that proves its last user dead, and one that does not.
    lab.alone = seed.is_multiple_of(2);
    let mut calls: Vec<Request> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut poll = 0;
    while calls.len() < CALLS {
        for _ in 0..EACH {
            let n = calls.len();
            let script = CALLEES[chance.random_range(0..CALLEES.len())];
            open.push(n);
            calls.push(lab.call(&format!("a{n}"), &format!("+999{n:08}{script:02}")));
        }
        poll += 1;
        let life = Life::new();
        let strike = Arc::new(Strike::new(0, poll, Act::Crash(life.clone())));
        let store = Arc::new(lab.store.reopen());
        let alive = lab
            .node_on(store, Some(Arc::clone(&strike) as _), life)
            .await;
        // The newest first, so that the crash meets a try and not only its leftovers.
        for n in open.iter().rev() {
            // A process that dies answers nobody.
            let place = alive.node.admission().place(calls[*n].clone());
            tokio::select! {
                biased;
                placed = place => drop(placed.unwrap()),
                () = strike.strikes() => break,
            }
        }
        // A try that needs fewer polls than this ends, and then the process dies idle.
        let _ended = timeout(Duration::from_secs(5), strike.strikes()).await;
        alive.kill().await;
        lab.assert_promises();
    }
    let alive = lab.node().await;
    for call in &calls {
        alive.place(call.clone()).await;
    }
    settle(&lab, &alive, &calls).await;
    lab.until_no_rooms(Duration::from_mins(10)).await;
    sleep(Duration::from_mins(5)).await;
    lab.assert_promises();
    lab.rooms.assert_closed();
    assert!(lab.seen().rooms.is_empty(), "P3: a room came back");
}

async fn settle(lab: &Lab, alive: &Alive, calls: &[Request]) {
    for _ in 0..120 {
        sleep(Duration::from_secs(10)).await;
        let mut open = 0;
        for call in calls {
            let attempt = alive.attempt(call.attempt.as_str()).await;
            lab.assert_moves(&attempt);
            open += usize::from(!is_known(&attempt));
            lab.assert_promises();
        }
        if open == 0 {
            for call in calls {
                let attempt = alive.attempt(call.attempt.as_str()).await;
                lab.assert_true(&attempt);
                let placed = !matches!(attempt.state, State::NotDialed | State::Refused);
                assert!(placed, "{attempt:?}");
            }
            return;
        }
    }
    panic!("some are never settled");
}

fn is_known(attempt: &Attempt) -> bool {
    attempt.state.settled() || attempt.state == State::Uncertain
}
