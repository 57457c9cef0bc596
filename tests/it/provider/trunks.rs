//! Trunks by name: one list for all, exact names, and errors that say what is wrong.

use std::time::Duration;

use futures_util::future::join_all;
use livekit_protocol as proto;
use prost::Message;
use ringonce::model::verdict::TryFailure;
use ringonce::provider::call::{Call, Doubt, Refused};
use ringonce::provider::trunks::{TrunkError, TrunkId};
use ringonce::provider::wire::Answer;

use super::script::{client, main_trunk, one, trunks, twirp};

/// R09: a thousand dials that find their trunk missing cause one list.
#[tokio::test(start_paused = true)]
async fn r09_a_thousand_at_once_list_once() {
    let (client, script) = client([one("ST_old"), one("ST_new")]);
    let name = main_trunk();
    let old = client.resolve_trunk(&name).await.unwrap();
    let healed = join_all((0..1000).map(|_| async {
        client.evict_trunk(&name, &old);
        client.resolve_trunk(&name).await.unwrap()
    }))
    .await;
    assert!(healed.iter().all(|id| id.as_str() == "ST_new"));
    assert_eq!(script.left(), 0);
    // One that comes late with the old id does not throw the new one away.
    client.evict_trunk(&name, &old);
    assert_eq!(
        client.resolve_trunk(&name).await.unwrap().as_str(),
        "ST_new"
    );
}

/// R09: what cannot heal is said, by one list for all, and nothing is kept of it.
#[tokio::test(start_paused = true)]
async fn r09_what_cannot_heal_is_said() {
    let number: &[&str] = &["+12025550100"];
    for (answer, wanted, failure) in [
        (trunks(&[]), TrunkError::NotFound, TryFailure::TrunkNotFound),
        (
            trunks(&[("ST_1", "Main", number), ("ST_2", "main ", number)]),
            TrunkError::NotFound,
            TryFailure::TrunkNotFound,
        ),
        (
            trunks(&[("ST_1", "main", number), ("ST_2", "main", number)]),
            TrunkError::Ambiguous(2),
            TryFailure::TrunkNotFound,
        ),
        (
            trunks(&[("ST_1", "main", &[])]),
            TrunkError::NoNumber,
            TryFailure::TrunkNoNumber,
        ),
        (
            Answer::Strange(401),
            TrunkError::Refused(Refused::Credentials),
            TryFailure::CredentialsRefused,
        ),
    ] {
        let (client, script) = client([answer, one("ST_9")]);
        let name = main_trunk();
        let all = join_all((0..100).map(|_| client.resolve_trunk(&name))).await;
        assert!(all.iter().all(|result| *result == Err(wanted)), "{all:?}");
        assert_eq!(wanted.failure(), failure);
        assert_eq!(script.left(), 1);
        assert_eq!(client.resolve_trunk(&name).await.unwrap().as_str(), "ST_9");
    }
    let (client, _) = client(vec![twirp(503, "unavailable", "x"); 3]);
    let error = client.resolve_trunk(&main_trunk()).await.unwrap_err();
    assert_eq!(error, TrunkError::Unclear(Doubt::Failed(503)));
    assert_eq!(error.failure(), TryFailure::PlatformUnreachable);
}

/// A trunk that was replaced is noticed in time, although nothing failed.
#[tokio::test(start_paused = true)]
async fn an_id_is_kept_for_its_time() {
    let (client, script) = client([one("ST_1"), one("ST_2")]);
    let name = main_trunk();
    for (after, wanted, left) in [(0, "ST_1", 1), (599, "ST_1", 1), (1, "ST_2", 0)] {
        tokio::time::advance(Duration::from_secs(after)).await;
        assert_eq!(client.resolve_trunk(&name).await.unwrap().as_str(), wanted);
        assert_eq!(script.left(), left);
    }
}

/// One that lists is dropped half-way; the next in line lists, and nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn a_dropped_list_wedges_nobody() {
    let (client, script) = client([one("ST_1")]);
    let name = main_trunk();
    let mut dropped = Box::pin(client.resolve_trunk(&name));
    let mut next = Box::pin(client.resolve_trunk(&name));
    assert!(futures_util::poll!(dropped.as_mut()).is_pending());
    assert!(futures_util::poll!(next.as_mut()).is_pending());
    drop(dropped);
    assert_eq!(next.await.unwrap().as_str(), "ST_1");
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_trunk_is_listed_by_its_id() {
    let (client, script) = client([one("ST_1"), trunks(&[])]);
    let id = TrunkId::from("ST_1".to_owned());
    assert_eq!(client.trunk_listed(&id).await, Call::Done(true));
    assert_eq!(client.trunk_listed(&id).await, Call::Done(false));
    let body = script.asked.lock().unwrap().pop().unwrap().body;
    let sent = proto::ListSipOutboundTrunkRequest::decode(body.as_slice()).unwrap();
    assert_eq!(sent.trunk_ids, ["ST_1"]);
}
