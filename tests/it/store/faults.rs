//! What the memory store can be told to do, and the end of a node's life.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringonce::ledger::store::memory::{Call, Fate, Memory, Outcome, Scripted};
use ringonce::ledger::store::mortal::Mortal;
use ringonce::ledger::store::{Committed, Error, Failure, Store, Version};
use ringonce::runtime::life::Life;
use tokio::time::{Instant, timeout};

use super::{InMemory, P, commit_of, key};

const SECOND: Duration = Duration::from_secs(1);

/// A store of whose commits the first has `fate`, and a faithful one beside it.
fn first_commit(fate: Fate) -> (Memory, Memory) {
    let faithful = InMemory::new().0;
    let seen = AtomicUsize::new(0);
    let script = Scripted(move |call: Call<'_>| {
        let first = matches!(call, Call::Commit(..)) && seen.fetch_add(1, Ordering::SeqCst) == 0;
        if first { fate.clone() } else { Fate::default() }
    });
    (faithful.reopen().scripted(Arc::new(script)), faithful)
}

async fn present(store: &dyn Store, name: &str) -> bool {
    let loaded = store.load(P, &[key(name)]).await;
    !loaded.expect("a load").is_empty()
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_not_applied_left_nothing() {
    let (store, beside) = first_commit(Fate::ends(Outcome::NotApplied(Failure::Busy)));
    let commit = commit_of(&store, 1, "1", 1);
    let answer = store.commit(P, &commit).await;
    assert_eq!(answer, Err(Error::NotApplied(Failure::Busy)));
    assert!(!present(&beside, "1").await);
    let again = store.commit(P, &commit).await;
    assert_eq!(again, Ok(Committed::Applied(Version(1))));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_by_the_repetition() {
    let (store, beside) = first_commit(Fate::lost());
    let commit = commit_of(&store, 1, "1", 1);
    assert!(matches!(
        store.commit(P, &commit).await,
        Err(Error::Unknown(_))
    ));
    assert!(present(&beside, "1").await);
    let again = store.commit(P, &commit).await;
    assert_eq!(again, Ok(Committed::Applied(Version(1))));
}

#[tokio::test(start_paused = true)]
async fn a_late_commit_lands_after_its_answer() {
    let (store, beside) = first_commit(Fate::late(SECOND));
    let commit = commit_of(&store, 1, "1", 1);
    assert!(matches!(
        store.commit(P, &commit).await,
        Err(Error::Unknown(_))
    ));
    assert!(!present(&beside, "1").await);
    tokio::time::advance(SECOND).await;
    assert!(present(&beside, "1").await, "seen by every handle");
    let again = store.commit(P, &commit).await;
    assert_eq!(again, Ok(Committed::Applied(Version(1))));
}

#[tokio::test(start_paused = true)]
async fn a_repetition_overtakes_a_late_commit() {
    let (store, _) = first_commit(Fate::late(SECOND));
    let commit = commit_of(&store, 1, "1", 1);
    assert!(store.commit(P, &commit).await.is_err());
    let again = store.commit(P, &commit).await;
    assert_eq!(again, Ok(Committed::Applied(Version(1))));
    assert_eq!(store.land(), 1);
    let events = store.info().await.unwrap().events;
    assert_eq!(events, 1, "the late one finds itself done");
}

#[tokio::test(start_paused = true)]
async fn an_injected_conflict_shows_the_truth() {
    let (store, beside) = first_commit(Fate::ends(Outcome::Conflict));
    let commit = commit_of(&store, 1, "1", 1);
    let answer = store.commit(P, &commit).await;
    assert_eq!(answer, Ok(Committed::Conflict([(key("1"), None)].into())));
    assert!(!present(&beside, "1").await);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_before_the_act_and_a_slow_reply_after_it() {
    let (store, beside) = first_commit(Fate {
        delay: SECOND,
        reply: SECOND,
        ..Fate::default()
    });
    let commit = commit_of(&store, 1, "1", 1);
    let began = Instant::now();
    let half = timeout(SECOND / 2, store.commit(P, &commit)).await;
    assert!(half.is_err());
    assert!(!present(&beside, "1").await, "dropped before it acted");

    let (store, beside) = first_commit(Fate {
        delay: SECOND,
        reply: SECOND,
        ..Fate::default()
    });
    assert_eq!(began.elapsed(), SECOND / 2);
    let dropped = timeout(SECOND * 3 / 2, store.commit(P, &commit)).await;
    assert!(dropped.is_err());
    assert!(present(&beside, "1").await, "dropped after it acted");
}

#[tokio::test(start_paused = true)]
async fn every_call_lets_others_run() {
    let store = InMemory::new().0;
    let ran = AtomicUsize::new(0);
    let other = async { ran.fetch_add(1, Ordering::SeqCst) };
    let call = async {
        let keys = [key("1")];
        store.load(P, &keys).await.unwrap();
        ran.load(Ordering::SeqCst)
    };
    let (seen, _) = tokio::join!(biased; call, other);
    assert_eq!(seen, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_a_dead_node() {
    let memory = InMemory::new().0;
    let life = Life::new();
    let node = Mortal::new(life.clone(), Arc::new(memory.clone()));
    let commit = commit_of(&node, 1, "1", 1);
    assert!(node.commit(P, &commit).await.is_ok());

    // It ends while a commit is on its way back: that one is done, and nobody learns of it.
    let slow = Scripted(|_: Call<'_>| Fate {
        reply: SECOND,
        ..Fate::default()
    });
    let node = Mortal::new(
        life.clone(),
        Arc::new(memory.reopen().scripted(Arc::new(slow))),
    );
    let commit = commit_of(&node, 2, "2", 1);
    let dying = async {
        tokio::time::sleep(SECOND / 2).await;
        life.end();
    };
    let call = timeout(SECOND * 60, node.commit(P, &commit));
    let (answer, ()) = tokio::join!(biased; call, dying);
    assert!(answer.is_err());
    assert!(present(&memory, "2").await);

    let commit = commit_of(&node, 3, "3", 1);
    assert!(timeout(SECOND, node.commit(P, &commit)).await.is_err());
    assert!(!present(&memory, "3").await);
}
