//! Stores that fail, duplicates at once, old events, and receipts that are forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use ringonce::inbox::{Counted, Taken};
use ringonce::lab::platform::Behaviour;
use ringonce::ledger::receipt::Reading;
use ringonce::ledger::store::memory::{Call, Fate, Scripted};
use ringonce::ledger::store::{Kind, Queue};
use ringonce::runtime::life::Life;
use serde_json::{Value, json};

use super::sign;
use crate::world::{Alive, Lab};

fn event(id: &str) -> Value {
    json!({
        "event": "room_started",
        "id": id,
        "createdAt": "1795967305",
        "room": {"sid": "RM_1", "name": "lobby"},
    })
}

async fn take(lab: &Lab, alive: &Alive, event: &Value) -> Taken {
    let body = event.to_string().into_bytes();
    let token = sign::over(&body, lab.now().as_secs());
    alive.node.inbox().take(Some(token.as_bytes()), &body).await
}

/// A node on a store whose calls have the fate that `script` says.
async fn scripted(lab: &Lab, script: impl Fn(Call<'_>) -> Fate + Send + Sync + 'static) -> Alive {
    let store = lab.store.reopen().scripted(Arc::new(Scripted(script)));
    lab.node_on(Arc::new(store), None, Life::new()).await
}

fn count(alive: &Alive, what: Counted) -> u64 {
    alive.node.inbox().counts().of(what)
}

#[tokio::test(start_paused = true)]
async fn r30_a_webhook_that_cannot_be_kept_is_sent_again_and_counts_once() {
    let lab = Lab::new(1);
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let alive = scripted(&lab, move |call: Call<'_>| {
        let commits = matches!(call, Call::Commit(..));
        if commits && is_down.load(Ordering::SeqCst) {
            Fate::not_applied()
        } else {
            Fate::default()
        }
    })
    .await;
    down.store(true, Ordering::SeqCst);
    let taken = take(&lab, &alive, &event("EV_1")).await;
    assert_eq!((taken, taken.status()), (Taken::NotKept, 503));
    down.store(false, Ordering::SeqCst);
    assert_eq!(take(&lab, &alive, &event("EV_2")).await, Taken::Kept);
    assert_eq!(take(&lab, &alive, &event("EV_1")).await, Taken::Kept);
    assert_eq!(take(&lab, &alive, &event("EV_1")).await, Taken::Known);
    assert_eq!(count(&alive, Counted::NotKept), 1);
    assert_eq!(count(&alive, Counted::Kept), 2);
}

/// The commit was applied and its answer lost: it is sent again until that is known, and is
/// still one receipt.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_store_is_asked_for_again() {
    let lab = Lab::new(1);
    let lost = AtomicBool::new(false);
    let alive = scripted(&lab, move |call: Call<'_>| {
        let receipt = matches!(call, Call::Commit(_, commit)
            if commit.put.iter().any(|put| put.key.kind() == Kind::Receipt));
        if receipt && !lost.swap(true, Ordering::SeqCst) {
            Fate::lost()
        } else {
            Fate::default()
        }
    })
    .await;
    // The drain may have read it before the commit is repeated: then it is known already.
    assert_eq!(take(&lab, &alive, &event("EV_1")).await.status(), 200);
    assert_eq!(take(&lab, &alive, &event("EV_1")).await, Taken::Known);
    sign::until_read(&alive).await;
    assert_eq!(count(&alive, Counted::Foreign), 1);
}

#[tokio::test(start_paused = true)]
async fn r30_duplicates_at_once_are_one_receipt() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let event = event("EV_1");
    let storm = join_all((0..500).map(|_| take(&lab, &alive, &event))).await;
    let kept = storm.iter().filter(|taken| **taken == Taken::Kept).count();
    assert_eq!(kept, 1);
    assert!(storm.iter().all(|taken| taken.status() == 200));
    assert_eq!(count(&alive, Counted::Known), 499);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&alive, Counted::Foreign), 1, "applied once");
}

/// What happens in a room is told in bursts: such a burst is one commit of the call's record.
#[tokio::test(start_paused = true)]
async fn what_is_told_in_a_burst_is_applied_together() {
    const BURST: u64 = 6;
    let config = "[agent]\njoin_timeout = \"100s\"\n[webhooks]\ndrain_gather = \"100ms\"\n";
    let lab = Lab::with(1, config, |settings| {
        for worker in &mut settings.workers {
            worker.behaviour = Behaviour::Absent;
        }
    });
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    let alive = scripted(&lab, move |call: Call<'_>| {
        let of_a_call = matches!(call, Call::Commit(_, commit)
            if commit.put.iter().any(|put| put.key.kind() == Kind::Call));
        counted.fetch_add(usize::from(of_a_call), Ordering::SeqCst);
        Fate::default()
    })
    .await;
    let placed = alive.place(lab.call("a1", "+12025550100")).await.placed;
    let room = placed.unwrap().room;
    let before = commits.load(Ordering::SeqCst);
    for n in 0..BURST {
        let mut told = event(&format!("EV_{n}"));
        told["event"] = "participant_joined".into();
        told["room"]["name"] = room.as_str().into();
        told["participant"] = json!({"sid": format!("PA_{n}"), "identity": "guest"});
        assert_eq!(take(&lab, &alive, &told).await, Taken::Kept);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    while count(&alive, Counted::Applied) < BURST {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(commits.load(Ordering::SeqCst) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_an_id_is_known_by_its_bytes() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    for id in [
        Value::Null,
        json!(""),
        json!("EV/1"),
        json!("x".repeat(500)),
        json!(7),
    ] {
        let mut event = event("");
        event["id"] = id;
        assert_eq!(take(&lab, &alive, &event).await, Taken::Kept, "{event}");
        assert_eq!(take(&lab, &alive, &event).await, Taken::Known, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn receipts_wait_for_a_later_start_and_are_forgotten_in_time() {
    let lab = Lab::with(1, "[webhooks]\nretention = \"2h\"\n", |_| {});
    let alive = scripted(&lab, |call: Call<'_>| {
        if matches!(call, Call::ClaimDue(_, Queue::Receipts)) {
            Fate::not_applied()
        } else {
            Fate::default()
        }
    })
    .await;
    assert_eq!(take(&lab, &alive, &event("EV_1")).await, Taken::Kept);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let reading = async |alive: &Alive| {
        let found = alive.node.ledger().receipt("devkey", "EV_1").await;
        found.unwrap().map(|receipt| receipt.reading)
    };
    assert_eq!(reading(&alive).await, Some(Reading::New));
    alive.kill().await;
    let alive = lab.node().await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(reading(&alive).await, Some(Reading::Foreign));
    tokio::time::sleep(Duration::from_hours(3)).await;
    assert_eq!(reading(&alive).await, None);
}

/// An event of ten years ago with a fresh token, and one from the far future: kept, applied
/// to nothing, and no time of theirs is believed.
#[tokio::test(start_paused = true)]
async fn events_of_other_times_do_no_harm() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    for (n, at) in ["1", "1480000000", "9223372036854775807", "-5", "soon"]
        .iter()
        .enumerate()
    {
        let mut event = event(&format!("EV_{n}"));
        event["createdAt"] = (*at).into();
        assert_eq!(take(&lab, &alive, &event).await, Taken::Kept);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&alive, Counted::Foreign), 5);
    assert_eq!(alive.node.tasks().panics(), 0);
}

/// r30: retried seven minutes later with its first token, it is refused, and the state
/// converges by looking.
#[tokio::test(start_paused = true)]
async fn r30_a_token_is_not_taken_for_ever() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let body = event("EV_1").to_string().into_bytes();
    let token = sign::over(&body, lab.now().as_secs());
    let other = event("EV_2").to_string().into_bytes();
    let inbox = alive.node.inbox();
    assert_eq!(
        inbox.take(Some(token.as_bytes()), &other).await.status(),
        401
    );
    assert_eq!(inbox.take(Some(token.as_bytes()), &body).await, Taken::Kept);
    // A replay says nothing that is not known.
    assert_eq!(
        inbox.take(Some(token.as_bytes()), &body).await,
        Taken::Known
    );
    tokio::time::sleep(Duration::from_mins(7)).await;
    let late = inbox.take(Some(token.as_bytes()), &body).await;
    assert_eq!(late.status(), 401);
    assert_eq!(count(&alive, Counted::Late), 1);
    assert_eq!(count(&alive, Counted::Body), 1);
}
