//! `ringonce call` and `ringonce healthcheck` as processes.

use std::process::{Command, Output};

use ringonce::model::attempt::State;
use ringonce::model::disposition::Disposition;

use super::fake::{Answer, Server};

fn ringonce(arguments: &str, server: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringonce"));
    command
        .args(arguments.split(' '))
        .env("RINGONCE_SERVER", server);
    // The server of the test runs on another thread.
    tokio::task::block_in_place(|| command.output().unwrap())
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const PLACE: &str = "call place --workspace w --attempt a1 --contact c1 --outreach o1 --to +12025550100 --output json";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_placed_read_listed_and_canceled() {
    let server = Server::start(|limits| {
        limits.cancel_wait = std::time::Duration::from_millis(50);
    })
    .await;
    let url = server.url();
    let placed = ringonce(PLACE, &url);
    assert_eq!(code(&placed), 0, "{}", text(&placed.stderr));
    let json: serde_json::Value = serde_json::from_slice(&placed.stdout).unwrap();
    assert_eq!(json["attemptId"], "a1");
    assert_eq!(json["state"], "STATE_RESERVED");
    assert_eq!(json["to"], "+1********00");
    assert_eq!(text(&placed.stdout).lines().count(), 1);

    let waited = format!("{PLACE} --wait dial-over --deadline 300ms");
    assert_eq!(code(&ringonce(&waited, &url)), 6, "still reserved");
    let get = "call get --workspace w --attempt a1";
    assert_eq!(code(&ringonce(get, &url)), 0);
    let cancel = "call cancel --workspace w --attempt a1";
    server.core.enter("a1", State::Dialing, |_| {});
    assert_eq!(code(&ringonce(cancel, &url)), 6, "pending");
    server
        .core
        .settle("a1", State::NotConnected, Disposition::Busy);
    assert_eq!(code(&ringonce(PLACE, &url)), 1);
    server.core.enter("a1", State::Uncertain, |_| {});
    assert_eq!(code(&ringonce(PLACE, &url)), 4);
    server
        .core
        .settle("a1", State::Ended, Disposition::Answered);
    assert_eq!(code(&ringonce(PLACE, &url)), 0);
    let read = ringonce(get, &url);
    assert!(text(&read.stdout).starts_with("a1 ENDED ANSWERED +1********00: "));
    let listed = ringonce("call list --workspace w --state ended --output json", &url);
    assert_eq!(text(&listed.stdout).lines().count(), 1);
    let none = ringonce("call list --workspace w --state queued", &url);
    assert_eq!((code(&none), none.stdout.len()), (0, 0));
    assert_eq!(text(&none.stderr), "no attempt of workspace w matches\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_has_an_exit_code_and_a_hint_on_stderr() {
    let mut server = Server::start(|_| {}).await;
    let url = server.url();
    let usage = ringonce("call place --workspace w", &url);
    assert_eq!(code(&usage), 2);
    let invalid = ringonce(&PLACE.replace("+12025550100", "2025550100"), &url);
    assert_eq!(code(&invalid), 2);
    assert!(invalid.stdout.is_empty());
    assert!(text(&invalid.stderr).contains("to has no leading +"));
    assert!(!text(&invalid.stderr).contains("2025550100"));
    server.core.answer(Answer::Full);
    let full = ringonce(PLACE, &url);
    assert_eq!(code(&full), 5);
    assert!(text(&full.stderr).contains("QUEUE_FULL"));
    assert_eq!(
        code(&ringonce("call get --workspace w --attempt x", &url)),
        1
    );
    let well = ringonce("healthcheck", &url);
    assert_eq!((code(&well), text(&well.stdout).as_str()), (0, "SERVING\n"));
    assert_eq!(code(&ringonce("healthcheck --service other", &url)), 1);

    server.stop();
    assert!(server.ended_within(std::time::Duration::from_secs(3)).await);
    assert_eq!(code(&ringonce(PLACE, &url)), 5);
    assert_eq!(code(&ringonce("healthcheck", &url)), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_says_who_asked_and_why_for_as_long_as_the_attempt_is_kept() {
    let server = Server::start(|limits| {
        limits.cancel_wait = std::time::Duration::from_millis(50);
    })
    .await;
    let url = server.url();
    ringonce(PLACE, &url);
    server.core.enter("a1", State::NeedsReview, |_| {});
    let asked = "call cancel --workspace w --attempt a1 --requested-by kim --reason wrong-list";
    let pending = ringonce(asked, &url);
    assert_eq!(code(&pending), 6);
    let hint = text(&pending.stderr);
    assert!(hint.contains("ringonce review resolve a1"), "{hint}");
    // Recorded, and still open: seen in both views, by people and programs.
    for view in [
        "call get --workspace w --attempt a1",
        "review show --workspace w a1",
        "review show --workspace w --attempt a1",
    ] {
        let shown = text(&ringonce(view, &url).stdout);
        for part in [
            "STOP_RECORDED (stop-ringing) by kim: wrong-list [whether it reached the call is not known yet]",
            "Meanwhile a stop (stop-ringing) is recorded since 2",
            "asked for by kim: wrong-list, and whether it has reached the call is not known",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
    let get = "call get --workspace w --attempt a1 --output json";
    let json: serde_json::Value = serde_json::from_slice(&ringonce(get, &url).stdout).unwrap();
    let stop = &json["stop"];
    assert_eq!(stop["pending"], true);
    assert_eq!(stop["cause"], "CAUSE_REQUEST");
    assert_eq!(stop["mode"], "MODE_STOP_RINGING");
    assert_eq!(
        (&stop["requestedBy"], &stop["reason"]),
        (&"kim".into(), &"wrong-list".into())
    );
    assert!(stop["time"].is_string());

    server
        .core
        .settle("a1", State::Canceled, Disposition::Canceled);
    let json: serde_json::Value = serde_json::from_slice(&ringonce(get, &url).stdout).unwrap();
    assert!(json["stop"]["pending"].is_null(), "{json}");
    let last = json["history"].as_array().unwrap().last().unwrap();
    assert_eq!(last["evidence"], "by kim: wrong-list");
    let explanation = json["explanation"].as_str().unwrap();
    assert!(
        explanation.ends_with("may have rung: by kim: wrong-list"),
        "{json}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_does_not_end_it_says_what_would() {
    let server = Server::start(|limits| {
        limits.cancel_wait = std::time::Duration::from_millis(50);
    })
    .await;
    let url = server.url();
    let cancel = "call cancel --workspace w --attempt a1";
    let unknown = ringonce(cancel, &url);
    assert_eq!(code(&unknown), 1);
    for part in ["--allow-missing", "typo", "ATTEMPT_NOT_FOUND"] {
        assert!(text(&unknown.stderr).contains(part), "{unknown:?}");
    }
    assert!(!text(&unknown.stderr).contains("PlaceCall"), "{unknown:?}");
    let usage = ringonce("call cancel --help", &url);
    assert!(
        text(&usage.stdout).contains("[--contact <ID>]"),
        "{usage:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_was_used_for_another_call_is_no_call_that_failed() {
    let server = Server::start(|_| {}).await;
    server.core.answer(Answer::Reused);
    let reused = ringonce(PLACE, &server.url());
    assert_eq!(code(&reused), 5, "nothing was decided: {reused:?}");
    assert!(text(&reused.stderr).contains("ATTEMPT_ID_REUSED"));
}
