//! Reviews and cancels in bulk, over the API and the command line.

use std::process::{Command, Output};
use std::time::Duration;

use ringonce::api::proto::operations_service_client::OperationsServiceClient;
use ringonce::api::{Reason, proto};
use ringonce::model::attempt::{ReviewCause, State};
use tonic::Code;

use super::calls::reason;
use super::fake::{Answer, Server, sound};

async fn in_review(server: &Server, ids: &[&str]) {
    let mut client = server.client().await;
    for id in ids {
        client.place_call(sound(id)).await.unwrap();
        server.core.enter(id, State::NeedsReview, |attempt| {
            attempt.review = Some(ReviewCause::SeenThenGone);
        });
    }
}

fn resolve(id: &str) -> proto::ResolveAttemptRequest {
    proto::ResolveAttemptRequest {
        workspace: "w".to_owned(),
        attempt_id: id.to_owned(),
        resolution: proto::Resolution::Answered.into(),
        reason: "the carrier's call record".to_owned(),
        resolved_by: "kim".to_owned(),
    }
}

#[tokio::test]
async fn a_review_is_resolved_once_with_a_reason_and_a_name() {
    let server = Server::start(|_| {}).await;
    in_review(&server, &["a1", "a2"]).await;
    let mut client = OperationsServiceClient::connect(server.url())
        .await
        .unwrap();
    let mut bare = resolve("a1");
    (bare.resolution, bare.reason, bare.resolved_by) = (0, String::new(), String::new());
    let status = client.resolve_attempt(bare).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    for field in ["resolution", "reason", "resolved_by"] {
        assert!(format!("{status:?}").contains(field), "{status:?}");
    }
    let done = client.resolve_attempt(resolve("a1")).await.unwrap();
    assert_eq!(done.into_inner().state(), proto::attempt::State::Ended);
    let late = client.resolve_attempt(resolve("a1")).await.unwrap_err();
    assert_eq!(reason(&late), Reason::AttemptNotInReview);
    let unknown = client.resolve_attempt(resolve("a9")).await.unwrap_err();
    assert_eq!(reason(&unknown), Reason::AttemptNotFound);
}

fn ringonce(arguments: &str, server: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringonce"));
    command
        .args(arguments.split(' '))
        .env("RINGONCE_SERVER", server)
        .env("RINGONCE_WORKSPACE", "w")
        .env("USER", "kim");
    // The server of the test runs on another thread.
    tokio::task::block_in_place(|| command.output().unwrap())
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_are_listed_shown_and_resolved_by_cause() {
    let server = Server::start(|_| {}).await;
    in_review(&server, &["a1", "a2", "a3"]).await;
    let url = server.url();
    let listed = ringonce("review list", &url);
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!(lines(&listed).len(), 3);
    assert!(lines(&listed)[0].starts_with("a1 SEEN_THEN_GONE +1********00"));
    let shown = lines(&ringonce("review show a2", &url)).join("\n");
    assert!(shown.contains("X-Ringonce-Session") || shown.contains("cause: SEEN_THEN_GONE"));
    let how = "--as rang-unanswered --reason checked";
    let dry = ringonce(
        &format!("review resolve --cause SEEN_THEN_GONE {how} --dry-run"),
        &url,
    );
    assert_eq!(lines(&dry), ["a1", "a2", "a3"]);
    assert_eq!(lines(&ringonce("review list", &url)).len(), 3);
    let one = ringonce(&format!("review resolve a2 {how}"), &url);
    assert!(one.status.success(), "{one:?}");
    let all = ringonce(
        &format!("review resolve --cause SEEN_THEN_GONE {how}"),
        &url,
    );
    assert_eq!(lines(&all), ["a1", "a3"]);
    let none = ringonce("review list", &url);
    assert!(lines(&none).is_empty());
    assert_eq!(none.stderr, b"nothing waits for review in workspace w\n");
    let wrong = ringonce(&format!("review resolve --cause WEATHER {how}"), &url);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_is_canceled_a_page_at_a_time() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for n in 0..5 {
        let mut call = sound(&format!("a{n}"));
        call.campaign_id = if n < 4 { "k" } else { "other" }.to_owned();
        client.place_call(call).await.unwrap();
        server.core.enter(&format!("a{n}"), State::Dialing, |_| {});
    }
    let mut message = proto::CancelAttemptsRequest {
        workspace: "w".to_owned(),
        ..proto::CancelAttemptsRequest::default()
    };
    let nobody = client.cancel_attempts(message.clone()).await.unwrap_err();
    assert_eq!(nobody.code(), Code::InvalidArgument);
    message.campaign_id = "k".to_owned();
    message.page_size = 3;
    message.validate_only = true;
    let dry = client
        .cancel_attempts(message.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(dry.attempt_ids, ["a0", "a1", "a2"]);
    assert_eq!(dry.pending_count, 0);
    assert_eq!(dry.attempts.len(), 3);
    assert_eq!(dry.attempts[0].state(), proto::attempt::State::Dialing);
    message.validate_only = false;
    let mut pending = 0;
    loop {
        let page = client
            .cancel_attempts(message.clone())
            .await
            .unwrap()
            .into_inner();
        pending += page.pending_count;
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    assert_eq!(pending, 4);
    let url = server.url();
    let done = ringonce("call cancel --campaign k", &url);
    assert_eq!(done.status.code(), Some(6), "being stopped: {done:?}");
    assert_eq!(lines(&done)[0], "PENDING a0 DIALING");
    assert_eq!(lines(&done).len(), 4, "each is named");
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let sum = "4 attempts: 0 prevented, 4 being stopped, 0 too late; now 4 DIALING";
    assert!(said(&done).contains(sum), "{done:?}");
    let dry = ringonce("call cancel --campaign k --dry-run", &url);
    assert_eq!(lines(&dry)[3], "a3 DIALING");
    let would = "4 attempts would be asked to stop: 4 DIALING";
    assert!(said(&dry).contains(would), "{dry:?}");
    let none = ringonce("call cancel --contact nobody", &url);
    assert_eq!(none.status.code(), Some(0), "{none:?}");
    assert!(said(&none).contains("0 attempts"), "{none:?}");
    let both = ringonce("call cancel --campaign k --attempt a1", &url);
    assert_eq!(both.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_told_over_the_api_and_the_command_line() {
    let server = Server::start(|_| {}).await;
    let mut client = OperationsServiceClient::connect(server.url())
        .await
        .unwrap();
    let status = client.get_status(proto::GetStatusRequest {}).await.unwrap();
    let status = status.into_inner();
    assert!(status.start_time.is_some() && status.status_time.is_some());
    let spans = status.time_to_placement.unwrap();
    assert_eq!(spans.count, 0);
    let platform = status.platform.unwrap();
    assert_eq!(platform.reach(), proto::platform_status::Reach::Unspecified);
    assert!(status.open_attempts.is_some());
    let said = lines(&ringonce("status", &server.url())).join("\n");
    assert!(said.contains("LiveKit: nothing was asked yet"), "{said}");
    assert!(
        said.contains("redelivered: 0 in flight, 0 already placed"),
        "{said}"
    );
    assert!(said.contains("webhooks: last never"), "{said}");
    // A store that does not answer hides nothing else.
    server.core.answer(Answer::Away);
    let said = lines(&ringonce("status", &server.url())).join("\n");
    assert!(said.contains("THE STORE DOES NOT ANSWER"), "{said}");
    assert!(said.contains("webhooks: last never"), "{said}");
}

/// What became of it is known when a person says so, and nobody waits for that.
#[tokio::test]
async fn a_cancel_of_what_is_in_review_is_answered_at_once() {
    let server = Server::start(|limits| limits.cancel_wait = Duration::from_hours(1)).await;
    in_review(&server, &["a1"]).await;
    let cancel = proto::CancelAttemptRequest {
        workspace: "w".to_owned(),
        attempt_id: "a1".to_owned(),
        ..proto::CancelAttemptRequest::default()
    };
    let mut client = server.client().await;
    let answer = tokio::time::timeout(Duration::from_secs(30), client.cancel_attempt(cancel));
    let answer = answer.await.unwrap().unwrap().into_inner();
    let result = proto::cancel_attempt_response::Result::Pending;
    assert_eq!(answer.result(), result);
    let attempt = answer.attempt.unwrap();
    assert_eq!(attempt.state(), proto::attempt::State::NeedsReview);
}
