//! Rooms that the platform does not list and of which it does not say whether a node runs them.

use std::time::Duration;

use ringonce::lab::platform::Fault;
use ringonce::ledger::record::{Room, RoomState};
use ringonce::model::attempt::State;
use tokio::time::{Instant, sleep};

use crate::world::{Alive, Lab, workspace};

const ANSWERS: &str = "+12025550100";

/// That no node runs a room is said after 3.4 s: nobody hears it who waits for less.
const IMPATIENT: &str = "[livekit]\nrequest_timeout = \"1s\"\n";

const LONGEST_CALL: Duration = Duration::from_mins(2);

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The longest horizon, the longest call of the attempt, and the grace.
fn longest_life(lab: &Lab) -> Duration {
    lab.config.longest_horizon() + LONGEST_CALL + lab.config.reconcile.overrun_grace
}

async fn room(alive: &Alive) -> Room {
    let session = alive.attempt("a").await.placed.unwrap().session;
    let found = alive.node.ledger().room(&workspace(), session).await;
    found.unwrap().expect("the room is in the ledger")
}

/// Answered, and then the platform loses its records; how the call ended is never told.
async fn forgotten(lab: &Lab) -> Alive {
    let alive = lab.node().await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.max_call_ms = u64::try_from(LONGEST_CALL.as_millis()).unwrap();
    alive.place(call).await;
    alive.until_state("a", State::Answered).await;
    lab.fault(Fault::named("redis_flush"));
    alive.until_state("a", State::Ended).await;
    alive
}

fn asked(lab: &Lab) -> (u64, u64) {
    (lab.requests("DeleteRoom"), lab.requests("ListDispatch"))
}

#[tokio::test(start_paused = true)]
async fn a_room_of_which_nobody_says_anything_is_given_up_when_no_call_can_be_in_it() {
    let lab = Lab::with(1, IMPATIENT, |_| {});
    let alive = forgotten(&lab).await;
    let (begun, before) = (Instant::now(), asked(&lab));
    sleep(longest_life(&lab).saturating_sub(s(10))).await;
    assert_eq!(room(&alive).await.state, RoomState::Closing);
    assert!(lab.rooms.causes().is_empty());
    let (deleted, lived) = asked(&lab);
    let (deleted, lived) = (deleted - before.0, lived - before.1);
    // Pauses of 2, 4, 8 … seconds, and three sends for each question that nobody answers.
    assert!((5..=9).contains(&deleted), "{deleted} deletions");
    assert!(lived <= 3 * deleted, "{lived} questions");
    // The last of them has its three sends.
    sleep(s(30)).await;
    assert_eq!(
        lab.rooms.causes(),
        ["outlived"],
        "after {:?}",
        begun.elapsed()
    );
    // Once more it is looked for among the listed rooms, and then nobody asks again.
    sleep(s(10)).await;
    assert_eq!(room(&alive).await.state, RoomState::Tombstone);
    let last = asked(&lab);
    sleep(Duration::from_hours(2)).await;
    assert_eq!(asked(&lab), last);
    assert_eq!(lab.rooms.causes(), ["outlived"]);
    lab.rooms.assert_paired();
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_step_of_the_wall_clock_gives_up_no_room() {
    let lab = Lab::with(1, IMPATIENT, |_| {});
    let alive = forgotten(&lab).await;
    sleep(s(20)).await;
    // Within the leeway of the platform's tokens: beyond it nobody answers.
    lab.clock.step(50_000_000);
    sleep(longest_life(&lab).saturating_sub(s(40))).await;
    assert_eq!(room(&alive).await.state, RoomState::Closing);
}

#[tokio::test(start_paused = true)]
async fn a_room_for_which_a_node_answers_is_given_up_never() {
    let stays = Duration::from_hours(1);
    let config = format!("{IMPATIENT}[room]\ndeparture_timeout = \"1h\"\n");
    let lab = Lab::with(1, &config, |settings| {
        // Not listed, so that nobody can delete it, and its agent stays in it.
        settings.times.nodes_back = Duration::from_hours(10);
    });
    let alive = forgotten(&lab).await;
    let begun = Instant::now();
    while begun.elapsed() < stays.saturating_sub(s(200)) {
        assert_eq!(room(&alive).await.state, RoomState::Closing);
        assert_eq!(lab.seen().rooms.len(), 1);
        sleep(s(10)).await;
    }
    assert!(begun.elapsed() > 3 * longest_life(&lab));
    assert!(lab.rooms.causes().is_empty());
    // From when it was last heard of, its time begins anew.
    lab.until_no_rooms(s(400)).await;
    sleep(longest_life(&lab).saturating_sub(s(10))).await;
    assert_eq!(room(&alive).await.state, RoomState::Closing);
    sleep(s(60)).await;
    assert_eq!(lab.rooms.causes(), ["outlived"]);
}

/// Each of them is waited for as long as its question takes, and sixteen at once, three times
/// fewer than there are: no other room has to.
#[tokio::test(start_paused = true)]
async fn rooms_of_which_nobody_says_anything_hold_up_no_other() {
    const SILENT: usize = 48;
    // The room is still there when it is to be deleted.
    let quick = "[reconcile]\nsilent_look = \"2s\"\n[agent]\nlinger = \"1s\"\n";
    let config = format!("{IMPATIENT}{quick}");
    let lab = Lab::with(1, &config, |_| {});
    let alive = lab.node().await;
    let names: Vec<String> = (0..SILENT).map(|n| format!("silent{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        alive
            .place(lab.call(name, &format!("+99912345{n:03}00")))
            .await;
        sleep(Duration::from_millis(200)).await;
    }
    for name in &names {
        alive.until(name, |a| a.placed.is_some()).await;
    }
    sleep(s(4)).await;
    lab.fault(Fault::named("redis_flush"));
    for name in &names {
        alive.until(name, |a| !a.state.holds()).await;
    }
    let before = asked(&lab).1;
    sleep(s(30)).await;
    let questions = asked(&lab).1 - before;
    assert!(questions > 100, "{questions} questions that nobody answers");
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Ended).await;
    let begun = Instant::now();
    while room(&alive).await.state == RoomState::Closing {
        sleep(Duration::from_millis(100)).await;
    }
    let late = begun.elapsed().saturating_sub(lab.config.agent.linger);
    assert!(late < s(2), "{late:?} after its time");
    lab.assert_promises();
}
