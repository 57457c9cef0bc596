//! Class e: events that come late, twice, out of order, or not at all. What is about the
//! signature and the bytes is with the listener's own tests.

use std::sync::Arc;

use async_trait::async_trait;
use ringonce::inbox::Inbox;
use ringonce::lab::world::Hears;
use ringonce::model::attempt::{Placed, State};
use ringonce::provider::wire::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tap::{Made, Tap, s};
use crate::inbox::sign;
use crate::world::{Alive, Lab, workspace};

const ANSWERS: &str = "+12025550100";
const BUSY: &str = "+12025550186";

/// Takes the platform's webhooks to a node, and posts ours.
#[derive(Debug)]
pub(super) struct Ear(Arc<Inbox>);

#[async_trait]
impl Hears for Ear {
    async fn hear(&self, authorization: &str, body: &[u8]) -> Option<u16> {
        let taken = self.0.take(Some(authorization.as_bytes()), body).await;
        Some(taken.status())
    }
}

impl Ear {
    /// Posts it, and waits until it is read.
    pub(super) async fn post(&self, lab: &Lab, alive: &Alive, event: &Value) -> u16 {
        let body = event.to_string().into_bytes();
        let token = sign::over(&body, lab.now().as_secs());
        let became = self.0.take(Some(token.as_bytes()), &body).await;
        sign::until_read(alive).await;
        became.status()
    }
}

/// An event about the callee's leg.
pub(super) fn of_leg(placed: &Placed, name: &str, id: &str) -> Value {
    let mut event = of_room(placed, name, id);
    event["participant"] = json!({
        "sid": "PA_1",
        "identity": placed.session.identity(),
        "kind": "SIP",
        "joinedAt": "1800000100",
    });
    event
}

/// An event about the room.
pub(super) fn of_room(placed: &Placed, name: &str, id: &str) -> Value {
    json!({
        "event": name,
        "id": id,
        "createdAt": "1800000100",
        "room": {"sid": "RM_1", "name": placed.room.as_str()},
    })
}

/// A world whose platform tells its node everything, over a tapped wire.
pub(super) async fn told_by(
    method: Method,
    make: impl Fn(usize) -> Made + Send + Sync + 'static,
) -> (Lab, Alive, Arc<Ear>) {
    let lab = Lab::new(1);
    let (alive, _tap) = Tap::on(&lab, method, make).await;
    let ear = Arc::new(Ear(Arc::clone(alive.node.inbox())));
    lab.world.tell(Arc::clone(&ear) as _);
    (lab, alive, ear)
}

/// A world whose platform tells nothing: what is told is ours.
async fn untold() -> (Lab, Alive, Ear) {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let ear = Ear(Arc::clone(alive.node.inbox()));
    (lab, alive, ear)
}

/// Half of the events are missing, in each way; the call ends as it did.
#[tokio::test(start_paused = true)]
async fn r27_whatever_is_not_told_the_call_ends() {
    let streams: [&[&str]; 4] = [
        &["participant_left"],
        &[
            "room_started",
            "participant_connection_aborted",
            "room_finished",
        ],
        &[],
        &["room_finished"],
    ];
    for stream in streams {
        let (lab, alive, ear) = untold().await;
        alive.place(lab.call("a", ANSWERS)).await;
        let answered = alive.until_state("a", State::Answered).await;
        let placed = answered.placed.unwrap();
        // The platform's own end of it: 20 s of talk.
        sleep(s(21)).await;
        for (n, name) in stream.iter().enumerate() {
            let event = if name.starts_with("participant") {
                of_leg(&placed, name, &format!("EV_{n}"))
            } else {
                of_room(&placed, name, &format!("EV_{n}"))
            };
            assert_eq!(ear.post(&lab, &alive, &event).await, 200, "{stream:?}");
        }
        alive.until_state("a", State::Ended).await;
        lab.until_no_rooms(s(120)).await;
        sleep(s(600)).await;
        lab.rooms.assert_paired();
        lab.assert_promises();
    }
}

/// A closed room of the same name seems to start again: the attempt stays closed, and what is
/// there is deleted.
#[tokio::test(start_paused = true)]
async fn r28_a_room_that_starts_again_opens_nothing() {
    let (lab, alive, ear) = untold().await;
    alive.place(lab.call("a", BUSY)).await;
    let over = alive.until_settled("a").await;
    lab.until_no_rooms(s(60)).await;
    let placed = over.placed.clone().unwrap();
    for (name, id, sid) in [
        ("room_finished", "EV_1", "RM_1"),
        ("room_started", "EV_2", "RM_2"),
    ] {
        let mut event = of_room(&placed, name, id);
        event["room"]["sid"] = sid.into();
        assert_eq!(ear.post(&lab, &alive, &event).await, 200);
    }
    let line = lab.world.line(ringonce::runtime::life::Life::new());
    let client = ringonce::provider::Client::new(
        line,
        crate::world::credentials(),
        Arc::clone(&lab.clock) as _,
        ringonce::provider::Limits::default(),
    );
    let again = ringonce::provider::NewRoom {
        name: placed.room.clone(),
        metadata: String::new(),
        empty_timeout: s(3_600),
        departure_timeout: s(20),
    };
    assert!(client.create_room(&again).await.done().is_some());
    assert_eq!(lab.seen().rooms.len(), 1);
    // At the latest when the platform can no longer start the call.
    lab.until_no_rooms(s(300)).await;
    let after = alive.attempt("a").await;
    assert_eq!((after.state, &after.settled), (over.state, &over.settled));
    let room = alive.node.ledger().room(&workspace(), placed.session).await;
    assert!(room.unwrap().is_some());
}
