//! Rooms that no live attempt owns.

use std::time::Duration;

use ringonce::lab::platform::{Behaviour, Worker};
use ringonce::ledger::store::Epoch;
use ringonce::ledger::store::memory::Memory;
use ringonce::model::attempt::State;
use tokio::time::sleep;
use uuid::Uuid;

use crate::world::{Lab, workspace};

const ANSWERS: &str = "+12025550100";

const NAMED: &str = "[deployment]\nname = \"d-here\"\n";

/// The store is lost; another one, of the same deployment, takes its place.
fn forget(lab: &mut Lab) {
    let since = lab.now();
    let id = Uuid::from_u128(8);
    lab.store = Memory::new(1, Epoch { id, since });
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_ledger_lost_is_left_until_it_ends() {
    let mut lab = Lab::with(1, NAMED, |settings| {
        settings.times.talk = Duration::from_mins(10);
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    let before = alive.until_state("a", State::Answered).await;
    alive.kill().await;
    forget(&mut lab);
    let alive = lab.node().await;
    sleep(Duration::from_mins(5)).await;
    let talks = lab.seen().sip_calls.iter().any(|c| c.status == "active");
    assert!(talks, "{:?}", lab.seen());
    let session = before.placed.unwrap().session;
    let seen = alive.node.ledger().call(&workspace(), session).await;
    let seen = seen.unwrap().expect("it is adopted as an observation");
    assert!(seen.seen.answered().is_some());
    assert_eq!(seen.attempt.as_str(), "a");
    lab.until_no_rooms(Duration::from_mins(10)).await;
    assert_eq!(lab.sip_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_room_without_a_leg_that_the_ledger_lost_goes() {
    let mut lab = Lab::with(1, NAMED, |settings| {
        let absent = Behaviour::Late {
            after: Duration::from_secs(9),
        };
        settings.workers = vec![Worker::new("caller", absent)];
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    sleep(Duration::from_secs(3)).await;
    alive.kill().await;
    assert_eq!(lab.seen().rooms.len(), 1);
    forget(&mut lab);
    let _alive = lab.node().await;
    sleep(Duration::from_secs(70)).await;
    assert_eq!(lab.seen().rooms.len(), 1, "it may only begin: once more");
    lab.until_no_rooms(Duration::from_secs(80)).await;
    assert_eq!(lab.dials(), 0);
}
