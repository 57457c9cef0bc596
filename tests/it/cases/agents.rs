//! Class f: dispatches that are repeated, agents that do not come, texts that are too long.

use ringonce::lab::platform::{Behaviour, Fault, Worker};
use ringonce::model::attempt::{Attempt, State};
use ringonce::model::verdict::TryFailure;
use ringonce::provider::wire::Method;
use tokio::time::sleep;

use super::tap::{Made, Tap, ms, refused, s};
use crate::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";

/// Asserts that nobody was rung and no room stays, in whatever way the attempt waits or ended.
async fn nobody_rung(lab: &Lab, alive: &Alive) -> Attempt {
    let attempt = alive.attempt("a").await;
    assert_eq!((lab.dials(), lab.sip_calls()), (0, 0), "{attempt:?}");
    assert!(
        matches!(attempt.state, State::Queued | State::NotDialed),
        "{attempt:?}"
    );
    lab.until_no_rooms(s(60)).await;
    lab.rooms.assert_paired();
    attempt
}

/// The dispatch is made and its answer is lost: who asks finds it, and makes no second one.
#[tokio::test(start_paused = true)]
async fn r33_a_dispatch_whose_answer_is_lost_is_looked_up() {
    let lab = Lab::new(1);
    lab.fault(Fault::on("lose_reply", "CreateDispatch"));
    let (alive, tap) = Tap::node(&lab, |_, _| Made::Through).await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Answered).await;
    let agents: Vec<_> = lab
        .seen()
        .rooms
        .iter()
        .flat_map(|room| room.participants.clone())
        .filter(|identity| identity.starts_with("agent"))
        .collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert!(tap.count(Method::ListDispatch) > 0);
    assert_eq!(tap.count(Method::CreateDispatch), 1);
    lab.assert_promises();
}

/// Whether it was made cannot be found out either: the try ends, and with it its room.
#[tokio::test(start_paused = true)]
async fn r33_a_dispatch_that_nobody_can_look_up_is_no_reason_to_dial() {
    let lab = Lab::new(1);
    lab.fault(Fault {
        times: Some(u32::MAX),
        ..Fault::on("lose_reply", "CreateDispatch")
    });
    let (alive, tap) = Tap::on(&lab, Method::ListDispatch, |_| {
        Made::Instead(ms(10), refused(500, "internal", "no"))
    })
    .await;
    alive.place(lab.call("a", ANSWERS)).await;
    sleep(s(50)).await;
    assert_eq!((lab.dials(), lab.sip_calls()), (0, 0));
    let rooms = tap.count(Method::CreateRoom);
    assert!(tap.count(Method::CreateDispatch) <= rooms, "one a room");
    assert!(rooms > 1, "it is tried again, in a room of its own");
}

/// Nobody comes, somebody comes too late, or somebody with nearly the same name.
#[tokio::test(start_paused = true)]
async fn r35_without_our_agent_in_time_nobody_is_rung() {
    let joins = Behaviour::Joins { after: ms(400) };
    for worker in [
        Worker::new("caller", Behaviour::Absent),
        Worker::new("caller", Behaviour::Late { after: s(25) }),
        Worker::new("Caller", joins),
        Worker::new("caller ", joins),
    ] {
        let what = format!("{worker:?}");
        let lab = Lab::with(1, "", |settings| settings.workers = vec![worker]);
        let alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_state("a", State::NotDialed).await;
        assert_eq!(
            attempt.last_failure,
            Some(TryFailure::AgentUnavailable),
            "{what}"
        );
        assert_eq!(attempt.tries, lab.config.attempt.tries, "{what}");
        nobody_rung(&lab, &alive).await;
    }
}

/// Who gives the agent more time is dialed once it is there: nobody answers into silence.
#[tokio::test(start_paused = true)]
async fn r35_a_late_agent_is_waited_for_and_then_the_phone_rings() {
    let lab = Lab::with(1, "", |settings| {
        let after = s(25);
        settings.workers = vec![Worker::new("caller", Behaviour::Late { after })];
    });
    let alive = lab.node().await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.agent.join_ms = 30_000;
    alive.place(call).await;
    let attempt = alive.until_state("a", State::Answered).await;
    let placed = attempt.placed.unwrap();
    let waited = placed.marker.unwrap().at.since(placed.reserved_at);
    assert!((s(25)..s(31)).contains(&waited), "{waited:?}");
    assert_eq!((attempt.tries, lab.sip_calls()), (1, 1));
}

/// The platform takes less than we do: it says so before anything rings.
#[tokio::test(start_paused = true)]
async fn r36_a_text_that_the_platform_refuses_rings_nobody() {
    for method in [Method::CreateRoom, Method::CreateDispatch] {
        let lab = Lab::new(1);
        let (alive, _tap) = Tap::node(&lab, move |request, _| {
            if request.method == method {
                let text = "metadata size exceeds limits";
                return Made::Instead(ms(10), refused(400, "invalid_argument", text));
            }
            Made::Through
        })
        .await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_state("a", State::NotDialed).await;
        println!("{method:?}: {:?}", attempt.last_failure);
        nobody_rung(&lab, &alive).await;
    }
}
