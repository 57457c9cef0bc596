//! Epochs, restarts and the end.

use uuid::Uuid;

use super::Harness;
use super::draft::{P, Words, applied, attempt, body, contact, draft, event, put, send, write};
use crate::ledger::store::{Epoch, Error, Failure, Kind, Position};
use crate::model::time::Time;

const OTHER: Epoch = Epoch {
    id: Uuid::from_u128(77),
    since: Time::from_secs(5),
};

/// The epoch is part of every expectation, of a repetition too.
pub async fn another_epoch_applies_nothing(h: &mut dyn Harness) {
    let key = attempt("1");
    let mut commit = draft(h, 1).await.writes(put(&key, "x"), None);
    commit.epoch = OTHER;
    let refused = Err(Error::NotApplied(Failure::Epoch));
    assert_eq!(send(h, &commit).await, refused);
    assert_eq!(body(h, &key).await, None);
}

/// Whoever had the store open must restart.
pub async fn a_new_epoch_is_found_by_the_next_opening(h: &mut dyn Harness) {
    let key = attempt("1");
    let old = draft(h, 1).await.writes(put(&key, "old"), None);
    let version = applied(h, &old).await;
    let store = h.store().await;
    let found = store.epoch();
    assert_eq!(store.begin_epoch(OTHER).await, Ok(()));
    assert_eq!(store.epoch(), found, "it tells what it has found");
    let refused = Err(Error::NotApplied(Failure::Epoch));
    assert_eq!(store.commit(P, &old).await, refused);
    let store = h.restart().await;
    assert_eq!(store.epoch(), OTHER);
    assert_eq!(body(h, &key).await.as_deref(), Some("old"));
    let new = draft(h, 2).await.writes(put(&key, "new"), Some(version));
    applied(h, &new).await;
}

/// Records, log, numbers and epoch are durable.
pub async fn what_was_written_is_there_after_a_restart(h: &mut dyn Harness) {
    let key = attempt("1");
    let epoch = h.store().await.epoch();
    let commit = draft(h, 1)
        .await
        .writes(put(&key, "kept"), None)
        .says(event(&key, "said"));
    let first = applied(h, &commit).await;
    let store = h.restart().await;
    assert_eq!(store.epoch(), epoch);
    assert_eq!(body(h, &key).await.as_deref(), Some("kept"));
    assert_eq!(
        applied(h, &commit).await,
        first,
        "a repetition after a crash"
    );
    let log = h.store().await.changes_since(P, Position::START, 9).await;
    assert_eq!(log.expect("the log").len(), 1);
    assert!(write(h, 2, put(&attempt("2"), "x")).await > first);
}

/// After its end every call says so, and a second end is harmless.
pub async fn a_closed_store_says_so(h: &mut dyn Harness) {
    let commit = draft(h, 1).await.writes(put(&attempt("1"), "x"), None);
    let store = h.store().await;
    store.close().await;
    store.close().await;
    let closed = Error::NotApplied(Failure::Closed);
    assert_eq!(store.commit(P, &commit).await, Err(closed.clone()));
    assert_eq!(store.load(P, &[]).await, Err(closed.clone()));
    assert_eq!(store.log_bounds(P).await, Err(closed.clone()));
    assert_eq!(store.info().await, Err(closed));
    h.restart().await;
    assert_eq!(body(h, &attempt("1")).await, None);
}

/// Counts by kind, the epoch, the partitions.
pub async fn a_store_describes_itself(h: &mut dyn Harness) {
    let commit = draft(h, 1)
        .await
        .writes(put(&attempt("1"), "x"), None)
        .writes(put(&attempt("2"), "x"), None)
        .writes(put(&contact("1"), "x"), None)
        .says(event(&attempt("1"), "a"))
        .says(event(&attempt("2"), "b"));
    applied(h, &commit).await;
    let store = h.store().await;
    let info = store.info().await.expect("its description");
    let counts: Vec<(Kind, u64)> = info.records.into_iter().collect();
    assert_eq!(counts, [(Kind::Attempt, 2), (Kind::Contact, 1)]);
    assert_eq!(info.events, 2);
    assert_eq!(info.epoch, store.epoch());
    assert_eq!(info.partitions, store.partitions());
    assert_eq!(info.exclusive, store.exclusive());
    assert!(info.partitions > 0 && !info.location.is_empty());
}
