//! `ringonce call get|list|watch|cancel` against a server that really calls.

use super::calls::place;
use super::stack::{Stack, until};

#[tokio::test]
async fn what_was_placed_can_be_read_by_people_and_programs() {
    let stack = Stack::new().await;
    stack.call(&format!(
        "{} --campaign k1",
        place("a1", "c1", "+12025550186")
    ));
    stack.call(&format!(
        "{} --campaign k2",
        place("a2", "c2", "+12025550103")
    ));
    let text = stack.run(&["call", "get", "--attempt", "a1"]);
    assert_eq!(text.code, 0, "found, whatever it came to");
    assert!(
        text.stdout
            .starts_with("a1 NOT_CONNECTED BUSY +1********86: ")
    );
    assert!(text.stdout.contains(" DIALING "), "its history: {text:?}");
    let all = stack.call("list").lines();
    assert_eq!(all.len(), 2);
    let newest = stack.call("list --descending --limit 1").lines();
    assert_eq!(newest[0]["attemptId"], "a2");
    let of_campaign = stack
        .call("list --campaign k1 --state not-connected")
        .lines();
    assert_eq!(of_campaign.len(), 1);
    assert_eq!(of_campaign[0]["attemptId"], "a1");
    for ran in [text, stack.run(&["call", "list"]), stack.call("list")] {
        assert!(!ran.stdout.contains("2025550"), "masked: {ran:?}");
    }
    let missing = stack.call("get --attempt nobody");
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("error: "), "{missing:?}");
    assert_eq!(stack.run(&["call", "get"]).code, 2);
}

/// A listener of another kind decides nothing, and is neither a wrong usage nor an unknown
/// decision.
#[tokio::test]
async fn a_wrong_address_is_told_as_what_it_is() {
    let mut stack = Stack::new().await;
    let ready = stack.serve.said("event", "ready").await;
    let webhooks = format!("http://{}", ready["webhook"].as_str().unwrap());
    let wrong = |server: &str| {
        let words = ["call", "get", "--attempt", "a1", "--server", server];
        stack.run(&words)
    };
    let other = wrong(&webhooks);
    assert_eq!(other.code, 5, "{other:?}");
    assert!(other.stderr.contains("not the gRPC listener"), "{other:?}");
    let encrypted = wrong(&format!("https://{}", ready["grpc"].as_str().unwrap()));
    assert_eq!(encrypted.code, 2, "{encrypted:?}");
    assert!(encrypted.stderr.contains("without TLS"), "{encrypted:?}");
    for server in ["", "localhost", "grpc://localhost:7081"] {
        let none = wrong(server);
        assert_eq!(none.code, 2, "{server}: {none:?}");
        assert!(none.stderr.contains("http://127.0.0.1:7081"), "{none:?}");
    }
}

#[tokio::test]
async fn a_watch_is_resumed_where_it_ended() {
    let stack = Stack::new().await;
    let watch = stack.begin("watch --snapshot");
    stack.call(&place("a1", "c1", "+12025550186"));
    // The second watch begins behind what the first one saw of that call.
    stack.call("get --attempt a1 --wait dial-over");
    let seen = until("the watch's end of a1", async || {
        let once = stack.begin("watch --snapshot --deadline 1s").end().lines();
        once.into_iter()
            .find(|change| change["attempt"]["settled"] == true)
    })
    .await;
    let seen_live = watch.interrupt().lines();
    assert!(
        seen_live
            .iter()
            .any(|change| change["attempt"]["state"] == "STATE_DIALING"),
        "{seen_live:?}"
    );
    let cursor = seen_live
        .iter()
        .find(|change| change["attempt"]["state"] == "STATE_DIALING")
        .and_then(|change| change["cursor"].as_str())
        .unwrap();
    let resumed = stack
        .call(&format!("watch --after {cursor} --deadline 1s"))
        .lines();
    let states: Vec<_> = resumed
        .iter()
        .filter_map(|change| change["attempt"]["state"].as_str())
        .collect();
    assert_eq!(states, ["STATE_NOT_CONNECTED"], "{resumed:?}");
    assert_eq!(
        resumed[0]["attempt"]["disposition"],
        seen["attempt"]["disposition"]
    );
}

#[tokio::test]
async fn a_watch_that_ends_at_its_deadline_says_what_stands_and_how_it_goes_on() {
    let stack = Stack::new().await;
    let caller = stack.begin(&place("a1", "c1", "+12025550108"));
    stack.ringing().await;
    let watch = |more: &[&str]| {
        let words = ["call", "watch", "--attempt", "a1", "--deadline", "300ms"];
        let ended = stack.run(&[&words[..], more].concat());
        assert_eq!(ended.code, 4, "{ended:?}");
        assert!(!ended.stderr.contains("error"), "{ended:?}");
        ended.stderr
    };
    let said = watch(&["--snapshot"]);
    assert!(said.contains("a1 goes on, and was DIALING"), "{said}");
    let cursor = said.split("--after ").nth(1).unwrap();
    let cursor = cursor.split(' ').next().unwrap();
    let said = watch(&["--after", cursor]);
    assert!(said.contains("nothing of a1 was shown"), "{said}");
    stack.call("cancel --attempt a1");
    caller.end();
    let said = watch(&["--after", cursor]);
    assert!(said.contains("a1 is over: CANCELED"), "{said}");
}

#[tokio::test]
async fn a_cancel_stops_the_ringing() {
    let stack = Stack::new().await;
    let caller = stack.begin(&place("a1", "c1", "+12025550108"));
    stack.ringing().await;
    let early = stack.call("cancel --attempt a1 --mode before-dial");
    assert_eq!(early.json()["result"], "RESULT_TOO_LATE", "{early:?}");
    assert_eq!(early.code, 1);
    let stopped = stack.call("cancel --attempt a1 --reason wrong --requested-by me");
    assert_eq!(stopped.json()["result"], "RESULT_STOPPED", "{stopped:?}");
    assert_eq!(stopped.code, 0);
    let again = stack.call("cancel --attempt a1");
    assert_eq!(again.json()["result"], "RESULT_STOPPED", "{again:?}");
    assert_eq!((again.code, &again.json()["already"]), (0, &true.into()));
    let again = stack.run(&["call", "cancel", "--attempt", "a1"]);
    assert!(
        again.stdout.ends_with("(it had been canceled before)\n"),
        "{again:?}"
    );
    let canceled = caller.end();
    assert_eq!(canceled.code, 1, "{canceled:?}");
    assert_eq!(canceled.json()["state"], "STATE_CANCELED");
    stack
        .platform("no room", |state| state["rooms"] == serde_json::json!([]))
        .await;
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn a_cancel_hangs_up_and_forestalls() {
    let stack = Stack::new().await;
    let answered = stack.call(&place("a1", "c1", "+12025550100"));
    assert_eq!(answered.code, 0, "{answered:?}");
    let hung_up = stack.call("cancel --attempt a1 --mode hang-up");
    assert_eq!(hung_up.json()["result"], "RESULT_HUNG_UP", "{hung_up:?}");
    let ended = stack
        .attempt("a1", |attempt| attempt["state"] == "STATE_ENDED")
        .await;
    assert_eq!(ended["disposition"], "DISPOSITION_ANSWERED");
    let unknown = stack.call("cancel --attempt a2");
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let forestalled = stack.call("cancel --attempt a2 --allow-missing");
    assert_eq!(forestalled.json()["result"], "RESULT_PREVENTED");
    let late = stack.call(&place("a2", "c2", "+12025550186"));
    assert_eq!(late.code, 1, "{late:?}");
    assert_eq!(late.json()["state"], "STATE_CANCELED");
    stack.assert_sip_calls(1).await;
}
