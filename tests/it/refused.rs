//! A store that refuses for a while, as on a full disk: nobody hammers it, and the log says so
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ringonce::admission::place::PlaceError;
use ringonce::ledger::store::Kind;
use ringonce::ledger::store::memory::{Call, Fate, Scripted};
use ringonce::model::attempt::State;
use ringonce::runtime::life::Life;
use tokio::time::sleep;

use super::world::Lab;

/// Numbers that go on like this, and end with 86, are busy.
const BUSY: &str = "+9991234567";

const CALLS: usize = 5;

#[tokio::test(start_paused = true)]
async fn what_became_of_calls_is_written_down_once_the_store_takes_it() {
    let lab = Lab::new(1);
    lab.node().await.kill().await;
    let refuses = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicU32::new(0));
    let (is_refusing, count) = (Arc::clone(&refuses), Arc::clone(&asked));
    let script = Scripted(move |call: Call<'_>| {
        let of_an_attempt = matches!(call, Call::Commit(_, commit)
            if commit.put.iter().any(|put| put.key.kind() == Kind::Attempt));
        if of_an_attempt && is_refusing.load(Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
            return Fate::not_applied();
        }
        Fate::default()
    });
    let store = Arc::new(lab.store.reopen().scripted(Arc::new(script)));
    let alive = lab.node_on(store, None, Life::new()).await;
    let names: Vec<String> = (0..CALLS).map(|n| format!("a{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        alive.place(lab.call(name, &format!("{BUSY}{n}86"))).await;
    }
    for name in &names {
        alive.until_state(name, State::Dialing).await;
    }
    refuses.store(true, Ordering::SeqCst);
    sleep(Duration::from_mins(2)).await;
    let often = asked.load(Ordering::SeqCst);
    assert!((10..200).contains(&often), "asked {often} times");
    assert!(lab.rooms.said("settle.refused") <= 2);
    refuses.store(false, Ordering::SeqCst);
    for name in &names {
        alive.until_state(name, State::NotConnected).await;
    }
    assert_eq!(lab.rooms.said("settle.taken"), 1);
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn on_a_disk_that_is_nearly_full_nothing_begins_and_what_goes_on_ends() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", &format!("{BUSY}086"))).await;
    let behind = |id: &str| {
        let mut call = lab.call(id, &format!("{BUSY}186"));
        call.spec.contact = "a".parse().unwrap();
        call
    };
    assert_eq!(alive.place(behind("b")).await.state, State::Queued);
    lab.store.narrow(true);
    let turned = alive.node.admission().place(behind("c")).await;
    assert!(matches!(turned, Err(PlaceError::NoRoom)), "{turned:?}");
    // A known one is told as it is.
    let again = alive.place(lab.call("a", &format!("{BUSY}086"))).await;
    assert!(!again.state.settled());
    alive.until_state("a", State::NotConnected).await;
    lab.until_no_rooms(Duration::from_mins(1)).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(alive.attempt("b").await.state, State::Queued);
    assert_eq!(lab.sip_calls_of("b"), 0);
    lab.store.narrow(false);
    alive.until_state("b", State::NotConnected).await;
    alive.place(behind("c")).await;
    alive.until_state("c", State::NotConnected).await;
    lab.assert_promises();
}
