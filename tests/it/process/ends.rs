//! How a server ends: killed, asked, asked twice; and what the next one makes of it.

use std::net::TcpStream;

use super::calls::place;
use super::stack::Stack;

#[tokio::test]
async fn a_server_killed_while_a_phone_rings_does_not_ring_it_again() {
    let mut stack = Stack::new().await;
    let words = place("a1", "c1", "+12025550108");
    let caller = stack.begin(&words);
    stack.ringing().await;
    stack.serve.kill();
    assert_ne!(caller.end().code, 0, "its caller learns nothing");
    stack.serve_again().await;
    let state = stack.state().await;
    let deleted = state["requests"]["DeleteRoom"].as_u64().unwrap_or(0);
    assert_eq!(deleted, 0, "the room of a ringing phone is left alone");
    let found = stack.call(&words.replace("--wait dial-over", "")).json();
    assert!(
        ["STATE_DIALING", "STATE_UNCERTAIN"].contains(&found["state"].as_str().unwrap()),
        "{found}"
    );
    let over = stack.call(&words).json();
    assert_eq!(over["try"], 1, "{over}");
    stack.assert_sip_calls(1).await;
    // Whatever it comes to, the room goes and nothing is dialed.
    stack
        .platform("no room", |state| state["rooms"] == serde_json::json!([]))
        .await;
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn a_server_that_is_asked_to_end_lets_a_dial_settle() {
    let mut stack = Stack::new().await;
    let caller = stack.begin(&place("a1", "c1", "+12025550108"));
    // Neither a silent peer nor an open watch holds the end up.
    let silent = TcpStream::connect(stack.server().trim_start_matches("http://")).unwrap();
    let watch = stack.begin("watch");
    stack.ringing().await;
    stack.serve.signal("TERM");
    stack.serve.said("event", "drain.begun").await;
    let refused = stack.call(&place("a2", "c2", "+12025550186"));
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("DRAINING"), "{refused:?}");
    assert_eq!(stack.serve.ended().await, 0);
    drop(silent);
    assert_eq!(watch.end().code, 5, "it can be resumed elsewhere");
    drop(caller);
    stack.assert_sip_calls(1).await;
    stack.serve_again().await;
    let settled = stack.get("a1");
    assert_eq!(settled["disposition"], "DISPOSITION_NO_ANSWER", "{settled}");
    let missing = stack.call("get --attempt a2");
    assert_eq!(missing.code, 1, "nothing was decided: {missing:?}");
}

#[tokio::test]
async fn a_try_that_has_not_dialed_is_given_back_at_the_end() {
    let mut stack = Stack::with(&["--agent", "absent"], &[]).await;
    let words = place("a1", "c1", "+12025550100").replace("--wait dial-over", "");
    assert_eq!(stack.call(&words).code, 0);
    stack
        .platform("a room", |state| state["rooms"] != serde_json::json!([]))
        .await;
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    let state = stack.state().await;
    assert_eq!(state["rooms"], serde_json::json!([]), "its room is deleted");
    stack.assert_sip_calls(0).await;
    stack.serve_again().await;
    let attempt = stack.get("a1");
    assert_ne!(attempt["settled"], true, "{attempt}");
}

#[tokio::test]
async fn a_second_signal_ends_a_server_at_once() {
    let mut stack = Stack::with(
        &[],
        &[
            "--set",
            "lifecycle.drain_delay=60s",
            "--set",
            "lifecycle.drain=90s",
        ],
    )
    .await;
    let caller = stack.begin(&place("a1", "c1", "+12025550108"));
    stack.ringing().await;
    stack.serve.signal("TERM");
    stack.serve.said("event", "drain.begun").await;
    let health = stack.run(&["healthcheck"]);
    assert_eq!(health.code, 1, "balancers see it: {health:?}");
    stack.serve.signal("INT");
    // The harness waits for less than the drain's delay.
    assert_eq!(stack.serve.ended().await, 0);
    drop(caller);
    stack.serve_again().await;
    let over = stack.call("get --attempt a1 --wait dial-over").json();
    assert_eq!(over["try"], 1, "{over}");
    stack.assert_sip_calls(1).await;
}
