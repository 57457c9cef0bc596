//! `ringonce store`: what a store holds, and what a person says of its history.

use super::calls::{in_seconds, place};
use super::stack::{Stack, until};

#[tokio::test]
async fn an_intent_from_before_the_store_is_accepted_once_its_past_is_adopted() {
    let mut stack = Stack::new().await;
    let long_ago = in_seconds(-600);
    let words = place("a1", "c1", "+12025550186");
    let (before, after) = words.split_once("--intend-time ").unwrap();
    let old = format!(
        "{before}--intend-time {long_ago}{}",
        &after[after.find(' ').unwrap()..]
    );
    let refused = stack.call(&old);
    assert_eq!(refused.code, 3, "{refused:?}");
    let attempt = refused.json();
    assert_eq!(attempt["reason"]["rule"], "HISTORY_LOST", "{attempt}");
    stack.assert_sip_calls(0).await;
    let store = stack.store();
    let adopt = ["store", "adopt", "--store", &store, "--since", &long_ago];
    let held = stack.run(&adopt);
    assert_eq!(held.code, 5, "not under a server's hands: {held:?}");
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    let adopted = stack.run(&adopt);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert!(adopted.stderr.contains("intents from"), "{adopted:?}");
    stack.serve_again().await;
    let placed = stack.call(&old);
    assert_eq!(
        placed.json()["disposition"],
        "DISPOSITION_BUSY",
        "{placed:?}"
    );
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn a_store_from_a_backup_distrusts_what_it_knew() {
    let mut stack = Stack::new().await;
    let holder = place("a1", "c1", "+12025550108").replace("--wait dial-over", "");
    assert_eq!(stack.call(&holder).code, 0);
    stack.ringing().await;
    let waiting = place("a2", "c1", "+12025550186").replace("--wait dial-over", "");
    assert_eq!(stack.call(&waiting).json()["state"], "STATE_QUEUED");
    stack.serve.kill();
    let store = stack.store();
    let restored = stack.run(&["store", "restored", "--store", &store]);
    assert_eq!(restored.code, 0, "{restored:?}");
    for part in [
        "HISTORY_LOST",
        "looked for at LiveKit",
        "store adopt --since",
    ] {
        assert!(restored.stderr.contains(part), "{part}: {restored:?}");
    }
    stack.serve_again().await;
    let distrusted = stack
        .attempt("a2", |attempt| attempt["state"] == "STATE_REFUSED")
        .await;
    assert_eq!(distrusted["reason"]["rule"], "HISTORY_LOST", "{distrusted}");
    // Whether it rang is asked of LiveKit; it is never dialed again.
    let over = stack.call("get --attempt a1 --wait dial-over").json();
    assert_eq!(over["try"], 1, "{over}");
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn a_store_shows_what_it_holds_while_it_is_served() {
    let stack = Stack::new().await;
    stack.call(&place("a1", "c1", "+12025550186"));
    let store = stack.store();
    let text = stack.run(&["store", "info", "--store", &store]);
    assert_eq!(text.code, 0, "{text:?}");
    assert!(text.stdout.contains("remembers   from "), "{text:?}");
    assert!(!text.stdout.contains("2025550186"));
    let json = stack.run(&["store", "info", "--store", &store, "--output", "json"]);
    let info = json.json();
    assert_eq!(info["records"]["attempt"], 1, "{info}");
    assert!(info["events"].as_u64().unwrap() > 2, "{info}");
    let memory = stack.run(&["store", "info", "--store", "memory"]);
    assert_eq!(memory.code, 1);
    assert!(memory.stderr.contains("--store"), "{memory:?}");
    let missing = stack.run(&["store", "info", "--store", "sqlite:nowhere.db"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("there is no store at"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_service_whose_store_was_taken_away_is_not_serving_until_it_is_back() {
    let mut stack = Stack::new().await;
    let health = |stack: &Stack, service: &str| {
        let server = stack.server().to_owned();
        let ran = stack.run(&["healthcheck", "--server", &server, "--service", service]);
        (ran.code, ran.stdout.trim().to_owned())
    };
    let serving = (0, "SERVING".to_owned());
    let not_serving = (1, "NOT_SERVING".to_owned());
    assert_eq!(health(&stack, ""), serving);
    let store = stack.store();
    let file = std::path::Path::new(store.strip_prefix("sqlite:").unwrap());
    let away = file.with_extension("away");
    std::fs::rename(file, &away).unwrap();
    until("that it is said", async || {
        (health(&stack, "") == not_serving).then_some(())
    })
    .await;
    let placement = "ringonce.v1.PlacementService";
    assert_eq!(health(&stack, placement), not_serving);
    let operations = "ringonce.v1.OperationsService";
    assert_eq!(
        health(&stack, operations),
        serving,
        "it tells what is wrong"
    );
    let server = stack.server().to_owned();
    let status = stack.run(&["status", "--server", &server]);
    let said = "THE STORE TAKES NOTHING, AND NOTHING IS PLACED: its file is gone";
    assert!(status.stdout.contains(said), "{status:?}");
    let said = stack.serve.said("event", "health.not_serving").await;
    assert_eq!(said["level"], "ERROR");
    assert!(said["message"].as_str().unwrap().contains("restart"));
    std::fs::rename(&away, file).unwrap();
    until("that it is over", async || {
        (health(&stack, placement) == serving).then_some(())
    })
    .await;
    assert_eq!(health(&stack, ""), serving);
}
