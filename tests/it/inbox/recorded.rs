//! Every scenario that was recorded on a real LiveKit, in order, in reverse, twice and
//! shuffled: the same observations each time.

use std::collections::BTreeMap;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use ringonce::inbox::Taken;
use ringonce::lab::platform::Behaviour;
use ringonce::model::attempt::State;
use ringonce::model::evidence::{self, Asked, Evidence};
use ringonce::model::observation::Call;
use ringonce::model::time::Time;
use serde_json::Value;

use super::sign;
use crate::world::{Alive, Lab, workspace};

const RECORDED: &str = include_str!("../../fixtures/livekit/webhooks.jsonl");

/// Each scenario and its events.
fn scenarios() -> BTreeMap<String, Vec<Value>> {
    let mut scenarios: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in RECORDED.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let name = line["scenario"].as_str().unwrap().to_owned();
        scenarios.entry(name).or_default().push(line["body"].take());
    }
    assert_eq!(scenarios.len(), 28);
    scenarios
}

/// A world in which an attempt for each scenario waits for its agent: its session is known,
/// and nothing of it happens by itself.
async fn waiting(count: usize) -> (Lab, Alive) {
    let lab = Lab::with(1, "[deployment]\nname = \"d-1\"\n", |settings| {
        for worker in &mut settings.workers {
            worker.behaviour = Behaviour::Absent;
        }
    });
    let alive = lab.node().await;
    for n in 0..count {
        let placed = alive
            .place(lab.call(&format!("a{n}"), &format!("+9991{n:07}00")))
            .await;
        assert_eq!(placed.state, State::Reserved, "{placed:?}");
    }
    (lab, alive)
}

/// The recorded event as one of ours: of the attempt's room and session.
async fn ours(alive: &Alive, attempt: &str, event: &Value, recorded: &str) -> Vec<u8> {
    let placed = alive.attempt(attempt).await.placed.unwrap();
    let mut event = event.clone();
    event["room"]["name"] = placed.room.as_str().into();
    if event["room"].get("metadata").is_some() {
        // What stood there is another program's: it says nothing, as after a late join.
        event["room"]["metadata"] = "".into();
    }
    let participant = event.get_mut("participant");
    if let Some(participant) = participant.filter(|p| p["identity"] == recorded) {
        participant["identity"] = placed.session.identity().into();
    }
    event.to_string().into_bytes()
}

/// The identity of the scenario's own SIP leg.
fn callee(events: &[Value]) -> String {
    let sip = events
        .iter()
        .find(|event| event["participant"]["kind"] == "SIP");
    sip.map_or_else(String::new, |event| {
        event["participant"]["identity"]
            .as_str()
            .unwrap()
            .to_owned()
    })
}

/// What a world has seen after all scenarios, each in the order that `order` makes of it.
async fn seen(order: impl Fn(Vec<Value>) -> Vec<Value>) -> BTreeMap<String, Call> {
    let scenarios = scenarios();
    let (lab, alive) = waiting(scenarios.len()).await;
    let now = lab.now().as_secs();
    let mut seen = BTreeMap::new();
    for (n, (name, events)) in scenarios.into_iter().enumerate() {
        let attempt = format!("a{n}");
        let callee = callee(&events);
        for event in order(events) {
            let body = ours(&alive, &attempt, &event, &callee).await;
            let token = sign::over(&body, now);
            let became = alive.node.inbox().take(Some(token.as_bytes()), &body).await;
            assert!(matches!(became, Taken::Kept | Taken::Known), "{became:?}");
        }
        sign::until_read(&alive).await;
        let session = alive.attempt(&attempt).await.placed.unwrap().session;
        let call = alive.node.ledger().call(&workspace(), session).await;
        let mut call = call.unwrap().unwrap_or_else(|| panic!("{name}")).seen;
        // What the gate saw meanwhile is not of this scenario.
        call.looked = None;
        seen.insert(name, call);
    }
    assert_eq!(alive.attempt("a0").await.state, State::Reserved);
    lab.assert_promises();
    seen
}

#[tokio::test(start_paused = true)]
async fn r30_each_recorded_scenario_gives_the_same_in_any_order_and_twice() {
    let in_order = seen(|events| events).await;
    let reversed = seen(|mut events| {
        events.reverse();
        events
    })
    .await;
    let twice = seen(|events| [events.clone(), events].concat()).await;
    // A restarted platform tells the same under new ids.
    let renamed = seen(|events| {
        let mut again = events.clone();
        for event in &mut again {
            event["id"] = format!("{}-again", event["id"].as_str().unwrap()).into();
        }
        [again, events].concat()
    })
    .await;
    for (name, call) in &in_order {
        assert_eq!(&reversed[name], call, "{name}, reversed");
        assert_eq!(&twice[name], call, "{name}, twice");
        assert_eq!(&renamed[name], call, "{name}, under other ids");
    }
    for seed in 0..3 {
        let shuffled = seen(|mut events| {
            events.shuffle(&mut StdRng::seed_from_u64(seed));
            events
        })
        .await;
        assert_eq!(shuffled, in_order, "shuffled by {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_each_recorded_scenario_proves() {
    let seen = seen(|events| events).await;
    let asked = Asked {
        now: Time::from_secs(2),
        horizon: Some(Time::from_secs(1)),
        pending: false,
        deleted_by_us: false,
    };
    let proves = |name: &str| match evidence::read(&seen[name], &asked) {
        Evidence::Answered { .. } => "answered".to_owned(),
        Evidence::Ended { .. } => "ended".to_owned(),
        Evidence::NotConnected { how, rang, .. } => format!("{how:?} {rang}"),
        Evidence::Nothing => "nothing".to_owned(),
    };
    for (name, expected) in [
        ("answered, then DeleteRoom", "ended"),
        ("answered, callee hung up", "ended"),
        ("agent joined, answered, DeleteRoom", "ended"),
        ("hide_phone_number, max_call_duration 4 s", "ended"),
        ("dial into a room deleted just before", "ended"),
        (
            "HTTP client gone after 2 s, callee answered at 8 s, DeleteRoom later",
            "ended",
        ),
        ("rang, ringing_timeout 6 s", "Unreached true"),
        ("carrier silent, 32 s", "Unreached false"),
        ("100 Trying only, ringing_timeout 6 s", "Unreached false"),
        (
            "trunk host dead (UDP), ringing_timeout 10 s",
            "Unreached false",
        ),
        (
            "second dial with the same identity while the first rings",
            "Unreached true",
        ),
        ("carrier status 603", "Rejected true"),
        ("carrier status 401", "Rejected false"),
        ("carrier status 503", "nothing"),
        ("carrier status 302", "nothing"),
        ("DeleteRoom while ringing", "StoppedOnPlatform true"),
        ("RemoveParticipant while ringing", "StoppedOnPlatform true"),
        ("SIP bridge killed while ringing", "nothing"),
        ("no SIP bridge running", "nothing"),
        // It rang for 25 s; the last status said `dialing`, and so did all of them.
        (
            "livekit-server killed while ringing, restarted 7 s later",
            "Unreached false",
        ),
    ] {
        assert_eq!(proves(name), expected, "{name}");
    }
}

/// Nothing of the recorded numbers is in the store, in any form of a record.
#[tokio::test(start_paused = true)]
async fn no_recorded_number_is_kept() {
    let (lab, alive) = waiting(1).await;
    let now = lab.now().as_secs();
    let mut kept = 0;
    for events in scenarios().into_values() {
        for event in events {
            let body = event.to_string().into_bytes();
            let token = sign::over(&body, now);
            alive.node.inbox().take(Some(token.as_bytes()), &body).await;
            let id = event["id"].as_str().unwrap();
            let receipt = alive.node.ledger().receipt("devkey", id).await.unwrap();
            let receipt = receipt.unwrap().body.to_string();
            for secret in ["2025550", "+1202"] {
                assert!(!receipt.contains(secret), "{receipt}");
            }
            kept += usize::from(receipt.contains("number:"));
        }
    }
    assert!(kept > 40, "{kept} had numbers, and have their keys now");
    sign::until_read(&alive).await;
    let foreign = alive.node.inbox().counts();
    let of = |what| foreign.of(what);
    assert_eq!(of(ringonce::inbox::Counted::Applied), 0, "none is of ours");
}
