//! Webhooks between real processes: the end of a call, and what a kill leaves.

use std::net::{SocketAddr, TcpListener};

use serde_json::json;

use super::calls::place;
use super::stack::{Stack, until};

/// A port that was free a moment ago.
fn port() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

/// A stack whose sandbox sends its webhooks to `serve`, which looks so seldom that only they
/// can have told.
async fn told() -> (Stack, String) {
    let address = port().to_string();
    let url = format!("http://{address}/webhooks/livekit");
    let stack = Stack::with(
        &["--webhook", &url],
        &[
            "--webhook-listen",
            &address,
            "--set",
            "reconcile.answered_look=1h",
        ],
    )
    .await;
    (stack, address)
}

#[tokio::test]
async fn an_answered_call_ends_by_a_webhook() {
    let (mut stack, address) = told().await;
    let ready = stack.serve.said("event", "ready").await;
    assert_eq!(ready["webhook"], address);
    let placed = stack.call(&place("a1", "c1", "+12025550100")).json();
    assert_eq!(placed["state"], "STATE_ANSWERED", "{placed}");
    let over = stack
        .attempt("a1", |attempt| attempt["state"] == "STATE_ENDED")
        .await;
    assert_eq!(over["endCause"], "END_CAUSE_FINISHED", "{over}");
    assert!(over["providerCallId"].as_str().unwrap().starts_with("SCL_"));
    stack
        .platform("no room", |state| state["rooms"] == json!([]))
        .await;
    let store = stack.store();
    let listed = stack.run(&["inbox", "list", "--store", &store, "--output", "json"]);
    let left = listed
        .lines()
        .into_iter()
        .find(|line| line["event"] == "participant_left" && line["reading"] == "applied");
    let left = left.expect("the leg's end, applied");
    assert_eq!(
        (&left["workspace"], &left["attempt"]),
        (&json!("w"), &json!("a1"))
    );
    let id = left["id"].clone();
    let shown = stack.run(&["inbox", "show", "--store", &store, id.as_str().unwrap()]);
    assert!(!shown.stdout.contains("2025550100"), "{shown:?}");
    assert_eq!(shown.json()["body"]["event"], "participant_left");
    let held = stack.run(&["inbox", "replay", "--store", &store, id.as_str().unwrap()]);
    assert_eq!(held.code, 5, "a server runs on it: {held:?}");
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    let again = stack.run(&["inbox", "replay", "--store", &store, id.as_str().unwrap()]);
    assert_eq!(again.code, 0, "{again:?}");
    let waits = ["inbox", "list", "--store", &store, "--reading", "new"];
    assert!(stack.run(&waits).stdout.contains(id.as_str().unwrap()));
    stack.serve_again().await;
    until("it to be read again", async || {
        let left = stack.run(&waits).stdout;
        left.is_empty().then_some(())
    })
    .await;
    assert_eq!(
        stack.get("a1")["version"],
        over["version"],
        "it says nothing new"
    );
}

/// What was answered 200 is in the store, whenever the process dies.
#[tokio::test]
async fn r53_what_was_acknowledged_outlives_a_kill() {
    let (mut stack, _) = told().await;
    for n in 0..5 {
        let words = place(
            &format!("a{n}"),
            &format!("c{n}"),
            &format!("+99912345{n:02}00"),
        );
        let caller = stack.begin(&words);
        let want = u64::try_from(n + 1).unwrap() * 2;
        let state = stack
            .platform("webhooks that were taken", |state| {
                state["webhooks"]["sent"].as_u64() >= Some(want)
            })
            .await;
        stack.serve.kill();
        drop(caller);
        let sent = state["webhooks"]["sent"].as_u64().unwrap();
        let store = stack.store();
        let words = ["inbox", "list", "--store", &store, "--limit", "100000"];
        let kept = stack.run(&words).stdout.lines().count();
        assert!(
            u64::try_from(kept).unwrap() >= sent,
            "{sent} were answered, {kept} are kept"
        );
        stack.serve_again().await;
    }
}
