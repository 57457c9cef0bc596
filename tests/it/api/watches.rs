//! `WatchAttempts`.

use std::time::Duration;

use ringonce::api::proto::attempt::State as Shown;
use ringonce::api::proto::attempt_change::Kind;
use ringonce::api::{Reason, proto};
use ringonce::model::attempt::State;
use tonic::{Code, Streaming};
use tonic_types::StatusExt;

use super::calls::reason;
use super::fake::{Client, Server, sound};

fn all() -> proto::WatchAttemptsRequest {
    proto::WatchAttemptsRequest {
        workspace: "w".into(),
        ..proto::WatchAttemptsRequest::default()
    }
}

type Changes = Streaming<proto::AttemptChange>;

async fn watch(client: &mut Client, request: proto::WatchAttemptsRequest) -> Changes {
    client.watch_attempts(request).await.unwrap().into_inner()
}

async fn next(changes: &mut Changes) -> proto::AttemptChange {
    changes.message().await.unwrap().unwrap()
}

/// The next one that is no bookmark.
async fn news(changes: &mut Changes) -> (String, Shown, String) {
    loop {
        let change = next(changes).await;
        if let Some(attempt) = change.attempt {
            return (attempt.attempt_id.clone(), attempt.state(), change.cursor);
        }
    }
}

#[tokio::test]
async fn changes_come_in_order_and_a_cursor_resumes_without_a_gap() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    client.place_call(sound("a0")).await.unwrap();
    let mut changes = watch(&mut client, all()).await;
    let first = next(&mut changes).await;
    assert_eq!(first.kind(), Kind::Bookmark, "the watch stands");
    client.place_call(sound("a1")).await.unwrap();
    let (id, state, cursor) = news(&mut changes).await;
    assert_eq!((id.as_str(), state), ("a1", Shown::Reserved));
    drop(changes);

    server.core.enter("a1", State::Dialing, |_| {});
    server.core.enter("a1", State::Answered, |_| {});
    for (after, expected) in [
        (cursor, vec![Shown::Dialing, Shown::Answered]),
        (
            first.cursor,
            vec![Shown::Reserved, Shown::Dialing, Shown::Answered],
        ),
    ] {
        let mut resumed = watch(&mut client, proto::WatchAttemptsRequest { after, ..all() }).await;
        for state in expected {
            assert_eq!(news(&mut resumed).await.1, state);
        }
    }
}

#[tokio::test]
async fn a_snapshot_comes_first_and_a_bookmark_ends_it() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for id in ["a1", "a2", "a3"] {
        client.place_call(sound(id)).await.unwrap();
    }
    server.core.enter("a2", State::Dialing, |_| {});
    let request = proto::WatchAttemptsRequest {
        snapshot: true,
        states: vec![Shown::Reserved.into()],
        ..all()
    };
    let mut changes = watch(&mut client, request).await;
    let mut seen = Vec::new();
    loop {
        let change = next(&mut changes).await;
        if change.kind() == Kind::Bookmark {
            break;
        }
        assert_eq!(
            (change.kind(), change.cursor.as_str()),
            (Kind::Snapshot, "")
        );
        seen.push(change.attempt.unwrap().attempt_id);
    }
    assert_eq!(seen, ["a1", "a3"]);
    server.core.enter("a3", State::Dialing, |_| {});
    server.core.enter("a2", State::Reserved, |_| {});
    assert_eq!(
        news(&mut changes).await.0,
        "a2",
        "what the filter shows alone"
    );
}

#[tokio::test]
async fn a_quiet_watch_gets_bookmarks_that_move_on() {
    let server = Server::start(|limits| limits.bookmark_every = Duration::from_millis(20)).await;
    let mut client = server.client().await;
    let request = proto::WatchAttemptsRequest {
        contact_id: "nobody".into(),
        ..all()
    };
    let mut changes = watch(&mut client, request).await;
    let first = next(&mut changes).await;
    client.place_call(sound("a1")).await.unwrap();
    loop {
        let bookmark = next(&mut changes).await;
        assert_eq!(bookmark.kind(), Kind::Bookmark);
        if bookmark.cursor != first.cursor {
            break;
        }
    }
}

#[tokio::test]
async fn a_cursor_that_is_too_old_a_strange_one_and_a_reader_that_lags() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut changes = watch(&mut client, all()).await;
    let old = next(&mut changes).await.cursor;
    server.core.trim();
    let lagged = changes.message().await.unwrap_err();
    assert_eq!(reason(&lagged), Reason::WatchLagged);
    assert_eq!(
        lagged.get_details_error_info().unwrap().metadata["cursor"],
        old
    );

    let request = |after: &str| proto::WatchAttemptsRequest {
        after: after.into(),
        ..all()
    };
    let status = client.watch_attempts(request(&old)).await.unwrap_err();
    assert_eq!(reason(&status), Reason::CursorTooOld);
    assert_eq!(status.code(), Code::OutOfRange);
    let oldest = status.get_details_error_info().unwrap().metadata["oldest_cursor"].clone();
    let mut changes = watch(&mut client, request(&oldest)).await;
    assert_eq!(next(&mut changes).await.kind(), Kind::Bookmark);
    let status = client.watch_attempts(request("x")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidCursor);
}

#[tokio::test]
async fn watches_are_counted_and_given_back() {
    let server = Server::start(|limits| limits.watches_max = 1).await;
    let mut client = server.client().await;
    let mut one = watch(&mut client, all()).await;
    next(&mut one).await;
    let status = client.watch_attempts(all()).await.unwrap_err();
    assert_eq!(reason(&status), Reason::WatchesFull);
    drop(one);
    while client.watch_attempts(all()).await.is_err() {}
}

#[tokio::test]
async fn a_watch_ends_at_its_callers_deadline() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut request = tonic::Request::new(all());
    request.set_timeout(Duration::from_millis(200));
    let mut changes = client.watch_attempts(request).await.unwrap().into_inner();
    assert_eq!(next(&mut changes).await.kind(), Kind::Bookmark);
    let ended = changes.message().await.unwrap_err();
    assert_eq!(reason(&ended), Reason::DeadlineExceeded);
}

#[tokio::test]
async fn a_drain_ends_watches_with_their_last_cursor_and_answers_who_waits() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut changes = watch(&mut client, all()).await;
    let last = next(&mut changes).await.cursor;
    let mut waits = sound("a1");
    waits.set_wait(proto::Wait::DialOver);
    let drain = async {
        server.core.committed(1).await;
        server.core.drain();
    };
    let mut other = server.client().await;
    let (answer, ()) = tokio::join!(other.place_call(waits), drain);
    assert_eq!(answer.unwrap().into_inner().state(), Shown::Reserved);
    let ended = loop {
        match changes.message().await {
            Ok(change) => assert!(change.is_some()),
            Err(status) => break status,
        }
    };
    assert_eq!(reason(&ended), Reason::Draining);
    assert_eq!(ended.code(), Code::Unavailable);
    let info = ended.get_details_error_info().unwrap();
    assert!(info.metadata.contains_key("cursor") && !last.is_empty());
}
