//! What webhooks do to attempts, in a world whose platform sends them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringonce::admission::cancel::CancelCommand;
use ringonce::inbox::{Counted, Inbox};
use ringonce::lab::platform::{Behaviour, Fault, Settings};
use ringonce::lab::world::Hears;
use ringonce::model::attempt::{Attempt, EndCause, Mode, State};
use ringonce::model::disposition::Disposition;
use ringonce::model::id::{Nonce, Partition, SessionId};
use ringonce::provider::RoutingMetadata;
use serde_json::{Value, json};
use uuid::Uuid;

use super::sign;
use crate::world::{Alive, Lab, workspace};

const ANSWERS: &str = "+12025550100";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";

/// Looks so seldom that only a webhook can have told.
const BLIND: &str = "[deployment]\nname = \"d-1\"\n[reconcile]\nanswered_look = \"1h\"\n";

#[derive(Debug)]
struct Ear(Arc<Inbox>);

#[async_trait]
impl Hears for Ear {
    async fn hear(&self, authorization: &str, body: &[u8]) -> Option<u16> {
        let taken = self.0.take(Some(authorization.as_bytes()), body).await;
        Some(taken.status())
    }
}

/// A world whose platform tells its node everything.
async fn told(set: impl FnOnce(&mut Settings)) -> (Lab, Alive) {
    let lab = Lab::with(1, BLIND, |settings| {
        settings.webhooks = true;
        set(settings);
    });
    let alive = lab.node().await;
    lab.world
        .tell(Arc::new(Ear(Arc::clone(alive.node.inbox()))));
    (lab, alive)
}

fn count(alive: &Alive, what: Counted) -> u64 {
    alive.node.inbox().counts().of(what)
}

/// Posts an event of our own making.
async fn post(lab: &Lab, alive: &Alive, event: &Value) -> u16 {
    let body = event.to_string().into_bytes();
    let token = sign::over(&body, lab.now().as_secs());
    let became = alive.node.inbox().take(Some(token.as_bytes()), &body).await;
    sign::until_read(alive).await;
    became.status()
}

fn event(id: &str, room: &str, metadata: &str) -> Value {
    json!({
        "event": "room_started",
        "id": id,
        "createdAt": "1795967305",
        "room": {"sid": "RM_other", "name": room, "metadata": metadata},
    })
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_ends_by_a_webhook_and_its_room_goes() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", ANSWERS)).await;
    let answered = alive.until_state("a", State::Answered).await;
    let ended = alive.until_state("a", State::Ended).await;
    let talked = ended.since.since(answered.since);
    assert!(talked < Duration::from_mins(3), "by a look it took an hour");
    let settled = ended.settled.unwrap();
    assert_eq!(settled.end_cause, Some(EndCause::LegLeft));
    assert!(
        ended
            .history
            .last()
            .unwrap()
            .evidence
            .contains("CLIENT_INITIATED")
    );
    assert_eq!(count(&alive, Counted::Ended), 1);
    lab.until_no_rooms(Duration::from_mins(1)).await;
    // The room of the ended call is told as gone, once.
    tokio::time::sleep(Duration::from_mins(5)).await;
    lab.rooms.assert_paired();
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn the_rooms_end_tells_a_lost_leg() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", ANSWERS)).await;
    let answered = alive.until_state("a", State::Answered).await;
    let placed = answered.placed.unwrap();
    // As when the leg's own event was dropped: r27, only `room_finished`.
    let room = alive.node.ledger().room(&workspace(), placed.session).await;
    let mut finished = event("EV_end", placed.room.as_str(), "");
    finished["event"] = "room_finished".into();
    finished["room"]["sid"] = room.unwrap().unwrap().sid.unwrap().into();
    assert_eq!(post(&lab, &alive, &finished).await, 200);
    assert_eq!(alive.attempt("a").await.state, State::Ended);
}

#[tokio::test(start_paused = true)]
async fn r20_a_join_is_no_answer_and_the_call_id_is_taken_from_it() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", RINGS)).await;
    let ringing = alive
        .until("a", |attempt| {
            attempt
                .placed
                .as_ref()
                .is_some_and(|placed| placed.marker.is_some())
        })
        .await;
    assert_eq!(ringing.state, State::Dialing);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let ringing = alive.attempt("a").await;
    assert_eq!(ringing.state, State::Dialing, "{ringing:?}");
    let placed = ringing.placed.unwrap();
    let call = placed.call.expect("the join told it");
    assert!(call.starts_with("SCL_"), "{call}");
    let seen = alive.node.ledger().call(&workspace(), placed.session).await;
    assert!(!seen.unwrap().unwrap().seen.leg().unwrap().1.was_answered());
    let over = alive.until_settled("a").await;
    assert_eq!(over.state, State::NotConnected);
    assert_eq!(count(&alive, Counted::Ended), 0);
}

#[tokio::test(start_paused = true)]
async fn r28_the_end_of_an_earlier_join_ends_nothing() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", ANSWERS)).await;
    let placed = alive
        .until_state("a", State::Answered)
        .await
        .placed
        .unwrap();
    let mut left = event("EV_old", placed.room.as_str(), "");
    left["event"] = "participant_left".into();
    left["participant"] = json!({
        "sid": "PA_earlier",
        "identity": placed.session.identity(),
        "kind": "SIP",
        "joinedAt": "1",
        "disconnectReason": "CLIENT_INITIATED",
    });
    assert_eq!(post(&lab, &alive, &left).await, 200);
    assert_eq!(alive.attempt("a").await.state, State::Answered);
}

#[tokio::test(start_paused = true)]
async fn a_room_of_our_name_with_foreign_metadata_changes_nothing() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", ANSWERS)).await;
    let before = alive.until_state("a", State::Answered).await;
    let placed = before.placed.clone().unwrap();
    let foreign = count(&alive, Counted::Foreign);
    let leaves = |id: &str, metadata: &str| {
        let mut left = event(id, placed.room.as_str(), metadata);
        left["event"] = "participant_left".into();
        left["participant"] = json!({
            "sid": "PA_other",
            "identity": placed.session.identity(),
            "kind": "SIP",
            "joinedAt": "2000000000",
            "disconnectReason": "CLIENT_INITIATED",
        });
        left
    };
    for (n, metadata) in [
        r#"{"v":1,"deployment":"d-2"}"#,
        r#"{"deployment":"d-2","attempt":"a"}"#,
        // Ours by its session, and of another history: alarmed too.
        &routing(&placed.session, "a", 99),
    ]
    .iter()
    .enumerate()
    {
        let left = leaves(&format!("EV_{n}"), metadata);
        assert_eq!(post(&lab, &alive, &left).await, 200);
        assert_eq!(alive.attempt("a").await, before, "{metadata}");
    }
    assert_eq!(count(&alive, Counted::Foreign), foreign + 3);
    // The same without a word about whose it is ends the call: the name is ours.
    assert_eq!(post(&lab, &alive, &leaves("EV_ours", "")).await, 200);
    assert_eq!(alive.attempt("a").await.state, State::Ended);
}

fn routing(session: &SessionId, attempt: &str, nonce: u128) -> String {
    RoutingMetadata {
        v: 1,
        deployment: "d-1".parse().unwrap(),
        workspace: workspace(),
        attempt: attempt.parse().unwrap(),
        session: *session,
        contact: "c".parse().unwrap(),
        outreach: "o".parse().unwrap(),
        campaign: None,
        callee_identity: session.identity(),
        nonce: Nonce(Uuid::from_u128(nonce)),
    }
    .to_text()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_store_does_not_know_is_not_dialed_again() {
    for number in [1, 3] {
        let (lab, alive) = told(|_| {}).await;
        let attempt = "a".parse().unwrap();
        let deployment = "d-1".parse().unwrap();
        let session = SessionId::of(&deployment, &workspace(), &attempt, number);
        let room = session.room(Partition(0));
        let metadata = routing(&session, "a", 5);
        let started = event("EV_1", room.as_str(), &metadata);
        assert_eq!(post(&lab, &alive, &started).await, 200);
        let placed = alive.place(lab.call("a", ANSWERS)).await;
        assert_eq!(placed.state, State::Uncertain, "{placed:?}");
        assert_eq!(placed.placed.as_ref().unwrap().session, session);
        let again = alive.place(lab.call("a", ANSWERS)).await;
        assert_eq!(again.state, State::Uncertain);
        // Nobody else calls that person meanwhile.
        let mut other = lab.call("b", ANSWERS);
        other.spec.contact = "a".parse().unwrap();
        assert_eq!(alive.place(other).await.state, State::Queued);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(lab.sip_calls_of("a"), 0);
        assert_eq!(lab.dials(), 0);
        // What is told of it afterwards is merged as of any other.
        let mut left = event("EV_2", room.as_str(), "");
        left["event"] = "participant_left".into();
        left["participant"] = json!({
            "sid": "PA_1",
            "identity": session.identity(),
            "kind": "SIP",
            "disconnectReason": "USER_REJECTED",
            "attributes": {"sip.callID": "SCL_9", "sip.callStatus": "ringing"},
        });
        assert_eq!(post(&lab, &alive, &left).await, 200);
        let seen = alive.node.ledger().call(&workspace(), session).await;
        assert!(seen.unwrap().unwrap().seen.rang());
    }
}

/// Ends without an answer: by the carrier, or by a cancel while it rings.
async fn ends_unanswered(alive: &Alive, lab: &Lab, canceled: bool) -> Attempt {
    if !canceled {
        alive.place(lab.call("a", BUSY)).await;
        return alive.until_settled("a").await;
    }
    alive.place(lab.call("a", RINGS)).await;
    alive.until_state("a", State::Dialing).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let command = CancelCommand {
        workspace: workspace(),
        attempt: "a".parse().unwrap(),
        mode: Mode::HangUp,
        allow_missing: false,
        reason: String::new(),
        requested_by: String::new(),
    };
    alive.node.admission().cancel(&command).await.unwrap();
    alive.until_state("a", State::Canceled).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_told_after_an_end_without_one_is_kept_beside_it_once() {
    for canceled in [false, true] {
        let (lab, alive) = told(|_| {}).await;
        let over = ends_unanswered(&alive, &lab, canceled).await;
        let placed = over.placed.as_ref().unwrap();
        let mut left = event("EV_1", placed.room.as_str(), "");
        left["event"] = "participant_left".into();
        left["participant"] = json!({
            "sid": "PA_late",
            "identity": placed.session.identity(),
            "kind": "SIP",
            "disconnectReason": "CLIENT_INITIATED",
            "attributes": {"sip.callID": "SCL_9", "sip.callStatus": "hangup"},
        });
        for id in ["EV_1", "EV_2"] {
            left["id"] = id.into();
            assert_eq!(post(&lab, &alive, &left).await, 200);
            let after = alive.attempt("a").await;
            assert_eq!((after.state, &after.settled), (over.state, &over.settled));
            let contradicting = after
                .history
                .iter()
                .filter(|entry| entry.evidence.starts_with("contradicting"));
            assert_eq!(contradicting.count(), 1, "{id}, canceled: {canceled}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_rooms_and_other_events_are_counted_and_left_alone() {
    let (lab, alive) = told(|_| {}).await;
    for (n, name) in ["lobby", "", "ringonce-0-x", "ringonce-7-"]
        .iter()
        .enumerate()
    {
        assert_eq!(
            post(&lab, &alive, &event(&format!("EV_{n}"), name, "")).await,
            200
        );
    }
    let session = SessionId::of(
        &"d-2".parse().unwrap(),
        &workspace(),
        &"a".parse().unwrap(),
        1,
    );
    // Of the form of ours, and nobody knows it; also in a partition that there is not.
    for partition in [0, 9] {
        let name = session.room(Partition(partition));
        let strange = event(&format!("EV_p{partition}"), name.as_str(), "");
        assert_eq!(post(&lab, &alive, &strange).await, 200);
    }
    assert_eq!(count(&alive, Counted::Foreign), 6);
    let egress = json!({"event": "egress_ended", "id": "EV_e", "egressInfo": {}});
    assert_eq!(post(&lab, &alive, &egress).await, 200);
    assert_eq!(count(&alive, Counted::Ignored), 1);
    let later = json!({"event": "room_levitated", "id": "EV_l"});
    assert_eq!(post(&lab, &alive, &later).await, 200);
    assert_eq!(count(&alive, Counted::Unread), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leg_that_we_did_not_dial_and_a_second_agent_are_seen() {
    let (lab, alive) = told(|_| {}).await;
    alive.place(lab.call("a", ANSWERS)).await;
    let placed = alive
        .until_state("a", State::Answered)
        .await
        .placed
        .unwrap();
    let mut joined = event("EV_f", placed.room.as_str(), "");
    joined["event"] = "participant_joined".into();
    joined["participant"] = json!({"sid": "PA_f", "identity": "sip_+12025550199", "kind": "SIP"});
    assert_eq!(post(&lab, &alive, &joined).await, 200);
    joined["id"] = "EV_f2".into();
    assert_eq!(post(&lab, &alive, &joined).await, 200);
    assert_eq!(count(&alive, Counted::ForeignLegs), 1, "said once");
    joined["id"] = "EV_g".into();
    joined["participant"] = json!({"sid": "PA_g", "identity": "agent-2", "kind": "AGENT"});
    assert_eq!(post(&lab, &alive, &joined).await, 200);
    assert_eq!(count(&alive, Counted::SecondAgents), 1);
    assert_eq!(
        count(&alive, Counted::LateAgents),
        0,
        "the first was in time"
    );
    assert_eq!(alive.attempt("a").await.state, State::Answered);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_after_the_answer_is_counted() {
    let (lab, alive) = told(|settings| {
        for worker in &mut settings.workers {
            let after = Duration::from_secs(9);
            worker.behaviour = Behaviour::Late { after };
        }
    })
    .await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.agent.gate = ringonce::model::attempt::Gate::Dispatched;
    alive.place(call).await;
    alive.until_state("a", State::Answered).await;
    let over = alive.until_state("a", State::Ended).await;
    assert!(over.settled.is_some());
    assert_eq!(count(&alive, Counted::LateAgents), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_while_somebody_talks_is_counted() {
    let (lab, alive) = told(|settings| {
        for worker in &mut settings.workers {
            worker.behaviour = Behaviour::Leaves {
                join: Duration::from_millis(400),
                after: Duration::from_secs(6),
            };
        }
    })
    .await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Ended).await;
    assert_eq!(count(&alive, Counted::LostAgents), 1);
    assert_eq!(count(&alive, Counted::LateAgents), 0);
}

/// The leg's end is told while the dial's own answer is still on its way: counted, and the
/// answer alone says how the dial went.
#[tokio::test(start_paused = true)]
async fn a_webhook_before_the_reply_is_counted_and_decides_nothing() {
    let (lab, alive) = told(|_| {}).await;
    lab.fault(Fault {
        millis: Some(4_000),
        ..Fault::on("slow", "CreateSIPParticipant")
    });
    alive.place(lab.call("a", BUSY)).await;
    let told = async {
        while count(&alive, Counted::BeforeReply) == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), told)
        .await
        .unwrap();
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
    let over = alive.until_settled("a").await;
    assert_eq!(over.state, State::NotConnected);
    assert_eq!(over.settled.unwrap().disposition, Disposition::Busy);
}

#[tokio::test(start_paused = true)]
async fn r27_without_any_webhook_a_call_settles_as_well() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Ended).await;
    assert_eq!(count(&alive, Counted::Kept), 0);
    assert_eq!(alive.node.inbox().counts().last(), None);
}
