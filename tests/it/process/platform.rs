//! A LiveKit that forgets, lacks an agent, is away, or refuses our secret.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::place;
use super::stack::{Process, Stack};

/// Whether every room that was made was logged as gone, by room name.
fn paired(serve: &Process) -> bool {
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    for line in serve.events() {
        let room = || line["room"].as_str().unwrap().to_owned();
        if line["event"] == "room.created" {
            open.insert(room(), true);
        } else if line["event"] == "room.deleted" {
            open.insert(room(), false);
        }
    }
    !open.is_empty() && open.values().all(|open| !open)
}

fn waits_for(attempt: &Value, rule: &str) -> bool {
    attempt["state"] == "STATE_QUEUED" && attempt["reason"]["rule"] == rule
}

#[tokio::test]
async fn a_trunk_under_a_new_id_is_found_again() {
    let stack = Stack::new().await;
    let first = stack.call(&place("a1", "c1", "+12025550186"));
    assert_eq!(first.json()["disposition"], "DISPOSITION_BUSY");
    stack.throw(&json!({"name": "trunk_flush"})).await;
    let before = stack.state().await["requests"]["CreateSIPParticipant"].as_u64();
    let second = stack.call(&place("a2", "c2", "+12025550187")).json();
    assert_eq!(second["state"], "STATE_NOT_CONNECTED", "{second}");
    assert_eq!(second["try"], 1);
    let after = stack.state().await["requests"]["CreateSIPParticipant"].as_u64();
    assert_eq!(after.unwrap() - before.unwrap(), 2);
    stack.assert_sip_calls(2).await;
}

#[tokio::test]
async fn without_its_agent_nobody_is_rung_and_no_room_stays() {
    let stack = Stack::with(
        &["--agent", "absent"],
        &[
            "--set",
            "agent.join_timeout=500ms",
            "--set",
            "attempt.backoff_first=30s",
            "--set",
            "attempt.backoff_max=30s",
        ],
    )
    .await;
    let words = place("a1", "c1", "+12025550100").replace("--wait dial-over", "");
    assert_eq!(stack.call(&words).code, 0);
    let waiting = stack
        .attempt("a1", |attempt| waits_for(attempt, "NEXT_TRY"))
        .await;
    assert!(
        waiting["explanation"].as_str().unwrap().contains("agent"),
        "{waiting}"
    );
    stack.assert_sip_calls(0).await;
    stack
        .platform("no room", |state| state["rooms"] == json!([]))
        .await;
    super::stack::until("paired rooms in the log", async || {
        paired(&stack.serve).then_some(())
    })
    .await;
}

#[tokio::test]
async fn while_livekit_is_away_calls_wait_and_are_placed_once_it_is_back() {
    let mut stack = Stack::new().await;
    stack.serve.kill();
    stack.stop_sandbox();
    // Away at the start.
    stack.serve_again().await;
    let said = stack.serve.said("event", "livekit.unreachable").await;
    assert_eq!(said["failure"], "NO_CONNECTION", "{said}");
    let text = said["message"].as_str().unwrap();
    assert!(text.contains("check livekit.url"), "{said}");
    assert!(
        !text.contains("refused"),
        "nobody was there to refuse: {said}"
    );
    let words = place("a1", "c1", "+12025550186").replace("--wait dial-over", "");
    assert_eq!(stack.call(&words).code, 0);
    stack
        .attempt("a1", |attempt| waits_for(attempt, "NEXT_TRY"))
        .await;
    stack.new_sandbox().await;
    stack
        .attempt("a1", |attempt| attempt["disposition"] == "DISPOSITION_BUSY")
        .await;
    stack.assert_sip_calls(1).await;
    // Away again in the middle.
    stack.stop_sandbox();
    let words = place("a2", "c2", "+12025550103").replace("--wait dial-over", "");
    assert_eq!(stack.call(&words).code, 0);
    stack
        .attempt("a2", |attempt| waits_for(attempt, "NEXT_TRY"))
        .await;
    stack.new_sandbox().await;
    stack
        .attempt("a2", |attempt| {
            attempt["disposition"] == "DISPOSITION_DECLINED"
        })
        .await;
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn a_wrong_secret_is_said_and_not_hammered() {
    let secret = "livekit.api_secret=another_secret_that_is_32_chars_long_too";
    let mut stack = Stack::with(&[], &["--set", secret]).await;
    let said = stack.serve.said("event", "livekit.credentials").await;
    assert_eq!(said["level"], "ERROR");
    assert!(said["message"].as_str().unwrap().contains("api_secret"));
    let words = place("a1", "c1", "+12025550100").replace("--wait dial-over", "");
    assert_eq!(stack.call(&words).code, 0);
    // It waits for as long as it may, and each try asks seldom.
    let waiting = stack
        .attempt("a1", |attempt| {
            waits_for(attempt, "NEXT_TRY") && attempt["try"].as_u64() > Some(5)
        })
        .await;
    let explanation = waiting["explanation"].as_str().unwrap();
    assert!(explanation.contains("livekit.api_secret"), "{waiting}");
    let state = stack.state().await;
    assert_eq!(state["requests"], json!({}), "none of its requests got in");
    let leaks = stack.run(&["rooms", "leaks"]);
    assert_eq!(leaks.code, 5, "{leaks:?}");
    assert!(leaks.stderr.contains("livekit.api_secret"), "{leaks:?}");
    assert!(leaks.stderr.contains("401"), "{leaks:?}");
    assert!(
        leaks.stderr.contains(". Retry after 2 s. (PLATFORM"),
        "{leaks:?}"
    );
    assert!(!leaks.stderr.contains("network"), "{leaks:?}");
    let log = stack.serve.log();
    let refused = log.matches("livekit.token_refused").count();
    let tries = waiting["try"].as_u64().unwrap();
    assert!(
        (1..=2).contains(&refused),
        "{refused} lines in {tries} tries"
    );
    for secret in ["202555", "eyJ", "another_secret"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}
