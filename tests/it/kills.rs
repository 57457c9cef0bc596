//! `kill -9`, again and again, of a real `serve` on a real disk, while a queue delivers and a
//! platform tells what happens: afterwards the promises are read off the ledger, its file and
//! the platform's own counters.
//!
//! 50 kills, or `RINGONCE_KILLS=500` of them; the moments and the calls come from a seed that
//! is printed, and `RINGONCE_SEED` plays the same ones again, as far as real processes can.

mod campaign;
mod file;
mod judge;
mod moment;
mod stand;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ringonce::runtime::ids::{Ids, RandomIds};

use campaign::Campaign;
use moment::{Kills, Moment};
use stand::Stand;

/// Messages that the queue gets for each kill.
const MESSAGES: usize = 6;
/// The promises are looked at once in so many kills.
const LOOK: u64 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_rings_twice_leaves_a_room_or_loses_a_call() {
    let seed = chosen("RINGONCE_SEED").unwrap_or_else(fresh);
    let kills = chosen("RINGONCE_KILLS").unwrap_or(50);
    println!("RINGONCE_SEED={seed} RINGONCE_KILLS={kills}");
    let begun = tokio::time::Instant::now();
    let mut chance = StdRng::seed_from_u64(seed);
    let mut stand = Stand::start(seed).await;
    let mut campaign = Campaign::new(seed, stand.channel().await);
    let mut fell = Kills::default();
    for kill in 1..=kills {
        let moment = Moment::of(&mut chance);
        let early = chance.random_range(0..=MESSAGES);
        campaign.send(early);
        tokio::time::sleep(moment.after()).await;
        campaign.send(MESSAGES - early);
        if kill.is_multiple_of(LOOK) {
            judge::under_way(&stand).await;
        }
        fell.strike(moment, &mut stand, campaign.unanswered()).await;
        stand.serve_again().await;
    }
    let stormed = begun.elapsed();
    campaign.settles().await;
    let known = stand.until_final().await;
    stand.until_no_rooms().await;
    let platform = stand.sandbox.state().await.unwrap();
    judge::once_each(&platform);
    judge::nothing_lost(&campaign, &known);
    let ends = judge::true_ends(&known, &platform);
    let file = stand.end().await;
    file.is_whole();
    file.has_every_event();
    file.has_every_receipt(&platform);
    println!(
        "{kills} kills in {} s, settled {} s later: {}; {} calls, {} deliveries, {} SIP calls, \
         {} webhooks taken; {ends:?}",
        stormed.as_secs(),
        begun.elapsed().saturating_sub(stormed).as_secs(),
        fell.told(),
        known.len(),
        campaign.deliveries(),
        platform
            .sip_calls
            .iter()
            .map(|call| call.count)
            .sum::<u32>(),
        platform.webhooks.sent,
    );
}

fn fresh() -> u64 {
    let mut bytes = [0; 4];
    RandomIds::from_os().fill(&mut bytes);
    u32::from_le_bytes(bytes).into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever repeats a failed run, or wants a longer one, says so in the environment"
)]
fn chosen(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Milliseconds.
const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
