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
    assert_eq!(code(&ringonce("healthcheck", &url)), 0);
    assert_eq!(code(&ringonce("healthcheck --service other", &url)), 1);

    server.stop();
    assert!(server.ended_within(std::time::Duration::from_secs(3)).await);
    assert_eq!(code(&ringonce(PLACE, &url)), 5);
    assert_eq!(code(&ringonce("healthcheck", &url)), 5);
}
