//! `GetAttempt`, `ListAttempts`, health and reflection.

use std::collections::BTreeMap;
use std::time::Duration;

use ringonce::api::{Reason, proto};
use ringonce::model::attempt::{Reason as Why, Rule, State, Waiting};
use ringonce::runtime::clock::{Clock as _, SystemClock};
use tokio_stream::StreamExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::calls::reason;
use super::fake::{Client, Server, sound};

fn list(size: i32, token: &str) -> proto::ListAttemptsRequest {
    proto::ListAttemptsRequest {
        workspace: "w".into(),
        page_size: size,
        page_token: token.into(),
        ..proto::ListAttemptsRequest::default()
    }
}

async fn page(client: &mut Client, request: proto::ListAttemptsRequest) -> (Vec<String>, String) {
    let page = client.list_attempts(request).await.unwrap().into_inner();
    let ids = page.attempts.into_iter().map(|attempt| attempt.attempt_id);
    (ids.collect(), page.next_page_token)
}

#[tokio::test]
async fn what_was_never_accepted_is_not_found() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let get = |id: &str| proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: id.into(),
        ..proto::GetAttemptRequest::default()
    };
    let status = client.get_attempt(get("a1")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::AttemptNotFound);
    for words in ["workspace", "PlaceCall", "store.id_retention"] {
        assert!(status.message().contains(words), "{status:?}");
    }
    let status = client.get_attempt(get("")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidFields);
}

#[tokio::test]
async fn pages_follow_one_another_and_tokens_cannot_be_bent() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for n in 1..=5 {
        client.place_call(sound(&format!("a{n}"))).await.unwrap();
    }
    let (first, token) = page(&mut client, list(2, "")).await;
    assert_eq!(first, ["a1", "a2"]);
    let (second, last) = page(&mut client, list(2, &token)).await;
    assert_eq!(second, ["a3", "a4"]);
    let (third, end) = page(&mut client, list(2, &last)).await;
    assert_eq!((third, end), (vec!["a5".to_owned()], String::new()));

    let mut other = list(2, &token);
    other.contact_id = "c-a1".into();
    let mut bent = token.into_bytes();
    bent[5] ^= 1;
    let bent = String::from_utf8(bent).unwrap();
    for request in [other, list(2, &bent), list(2, "AAAA"), list(2, "!")] {
        let status = client.list_attempts(request).await.unwrap_err();
        assert_eq!(reason(&status), Reason::InvalidPageToken);
    }
    let status = client.list_attempts(list(-1, "")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidFields);
}

#[tokio::test]
async fn a_page_that_would_be_too_large_has_fewer_attempts() {
    let server = Server::start(|limits| limits.page_bytes = 4_000).await;
    let mut client = server.client().await;
    let labels: BTreeMap<_, _> = (0..8).map(|n| (format!("k{n}"), "v".repeat(100))).collect();
    for n in 1..=5 {
        let mut request = sound(&format!("a{n}"));
        request.labels.clone_from(&labels);
        client.place_call(request).await.unwrap();
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let (ids, next) = page(&mut client, list(0, &token)).await;
        assert!(ids.len() < 5);
        seen.extend(ids);
        if next.is_empty() {
            break;
        }
        token = next;
    }
    assert_eq!(seen, ["a1", "a2", "a3", "a4", "a5"]);
}

#[tokio::test]
async fn health_says_when_it_drains() {
    let mut server = Server::start(|_| {}).await;
    let mut client = HealthClient::new(server.channel().await);
    let ask = |service: &str| HealthCheckRequest {
        service: service.into(),
    };
    for service in [
        "",
        "ringonce.v1.PlacementService",
        "ringonce.v1.OperationsService",
    ] {
        let answer = client.check(ask(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let mut changes = client.watch(ask("")).await.unwrap().into_inner();
    assert_eq!(
        changes.next().await.unwrap().unwrap().status(),
        ServingStatus::Serving
    );
    server.core.drain();
    assert_eq!(
        changes.next().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );
    server.stop();
}

#[tokio::test]
async fn the_service_describes_itself_to_new_tools_and_to_old_ones() {
    let server = Server::start(|_| {}).await;
    let mut names = Vec::new();
    {
        use tonic_reflection::pb::v1::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let mut client = ServerReflectionClient::new(server.channel().await);
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut answers = client
            .server_reflection_info(tokio_stream::once(ask))
            .await
            .unwrap()
            .into_inner();
        let answer = answers.next().await.unwrap().unwrap();
        if let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response {
            names.push(list.service.into_iter().map(|s| s.name).collect::<Vec<_>>());
        }
    }
    {
        use tonic_reflection::pb::v1alpha::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let mut client = ServerReflectionClient::new(server.channel().await);
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut answers = client
            .server_reflection_info(tokio_stream::once(ask))
            .await
            .unwrap()
            .into_inner();
        let answer = answers.next().await.unwrap().unwrap();
        if let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response {
            names.push(list.service.into_iter().map(|s| s.name).collect());
        }
    }
    assert_eq!(names.len(), 2);
    for names in names {
        for expected in [
            "ringonce.v1.PlacementService",
            "ringonce.v1.OperationsService",
            "grpc.health.v1.Health",
        ] {
            assert!(names.iter().any(|name| name == expected), "{names:?}");
        }
    }
}

#[tokio::test]
async fn who_waits_is_told_where_the_holder_stands_and_what_frees_it() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for id in ["a1", "a2"] {
        client.place_call(sound(id)).await.unwrap();
    }
    let at = SystemClock.now();
    server.core.enter("a2", State::Queued, |attempt| {
        let reason = Why {
            holder: Some("a1".parse().unwrap()),
            ..Why::of(Rule::ContactReserved)
        };
        attempt.waiting = Some(Waiting::first(reason, at, None, at));
    });
    let ask = proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: "a2".into(),
        ..proto::GetAttemptRequest::default()
    };
    for (state, shown, words) in [
        (
            State::Dialing,
            proto::attempt::State::Dialing,
            "a1, which is DIALING",
        ),
        (
            State::Uncertain,
            proto::attempt::State::Uncertain,
            "a1, which is UNCERTAIN: whether its phone rings is not known",
        ),
        (
            State::NeedsReview,
            proto::attempt::State::NeedsReview,
            "ringonce review resolve a1",
        ),
    ] {
        server.core.enter("a1", state, |_| {});
        let waits = client.get_attempt(ask.clone()).await.unwrap().into_inner();
        assert_eq!(waits.reason.unwrap().holder_state(), shown);
        assert!(waits.explanation.contains(words), "{}", waits.explanation);
    }
}

/// Its holder could pass it on, and yet it is not dialed any more.
#[tokio::test]
async fn what_another_history_left_waiting_is_told_to_be_distrusted_and_until_when_it_waits() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for id in ["a1", "a2"] {
        client.place_call(sound(id)).await.unwrap();
    }
    let at = SystemClock.now();
    let again = at.plus(Duration::from_secs(28));
    server.core.enter("a2", State::Queued, |attempt| {
        let reason = Why {
            holder: Some("a1".parse().unwrap()),
            ..Why::of(Rule::ContactReserved)
        };
        attempt.waiting = Some(Waiting::first(reason, again, None, at));
        attempt.epoch = uuid::Uuid::max();
    });
    let ask = proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: "a2".into(),
        ..proto::GetAttemptRequest::default()
    };
    let waits = client.get_attempt(ask).await.unwrap().into_inner();
    let says = &waits.explanation;
    for words in ["HISTORY_LOST", "store restored", &again.to_string()] {
        assert!(says.contains(words), "{words}: {says}");
    }
    assert!(!says.contains("which is RESERVED"), "{says}");
}
