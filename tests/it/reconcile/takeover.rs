//! What a process that is surely dead has dialed: taken over at once, and never dialed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ringonce::ledger::store::memory::{Call, Fate, Scripted};
use ringonce::ledger::store::{Kind, Store};
use ringonce::model::attempt::{Attempt, Cause, Passage, State};
use ringonce::runtime::life::Life;
use tokio::time::sleep;

use crate::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";
/// Is answered after eight seconds.
const SLOWLY: &str = "+12025550111";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lab() -> Lab {
    let mut lab = Lab::new(1);
    lab.alone = true;
    lab
}

/// Killed five seconds after the dial; the next process starts `later`.
async fn killed_while_it_rings(lab: &Lab, to: &str, later: Duration) -> Alive {
    let alive = lab.node().await;
    alive.place(lab.call("a", to)).await;
    sleep(s(5)).await;
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
    alive.kill().await;
    sleep(later).await;
    lab.node().await
}

/// A store that refuses the first writes of an attempt, as on a disk that is full for a moment.
fn refuses_twice(lab: &Lab) -> Arc<dyn Store> {
    let refusals = AtomicU32::new(2);
    let script = Scripted(move |call: Call<'_>| {
        let of_an_attempt = matches!(call, Call::Commit(_, commit)
            if commit.put.iter().any(|put| put.key.kind() == Kind::Attempt));
        let fewer = |left: u32| left.checked_sub(1);
        if of_an_attempt
            && (refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)).is_ok()
        {
            return Fate::not_applied();
        }
        Fate::default()
    });
    Arc::new(lab.store.reopen().scripted(Arc::new(script)))
}

fn window_end(attempt: &Attempt) -> ringonce::model::time::Time {
    let marker = attempt.placed.as_ref().and_then(|p| p.marker.as_ref());
    marker.unwrap().window_end
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_answered_since_is_known_at_once() {
    let lab = lab();
    let alive = killed_while_it_rings(&lab, SLOWLY, s(8)).await;
    let begun = lab.now();
    let attempt = alive.until_state("a", State::Answered).await;
    assert!(attempt.since.since(begun) < s(2), "{attempt:?}");
    assert!(attempt.since < window_end(&attempt));
    let causes: Vec<_> = attempt.history.iter().map(|t| t.cause).collect();
    assert!(
        causes.ends_with(&[Cause::OwnerGone, Cause::Looked]),
        "{causes:?}"
    );
    alive.until_state("a", State::Ended).await;
    lab.until_no_rooms(s(60)).await;
    sleep(s(200)).await;
    assert_eq!(lab.sip_calls_of("a"), 1);
    lab.rooms.assert_paired();
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_rings_is_in_flight_as_before_and_its_contact_is_held() {
    let lab = lab();
    let alive = killed_while_it_rings(&lab, RINGS, s(1)).await;
    let attempt = alive.until_state("a", State::Uncertain).await;
    let (end, horizon) = (window_end(&attempt), attempt.placed.unwrap().horizon());
    let mut other = lab.call("b", BUSY);
    other.spec.contact = "a".parse().unwrap();
    assert_eq!(alive.place(other).await.state, State::Queued);
    while lab.now() < end {
        let known = alive.place(lab.call("a", RINGS)).await;
        assert_eq!(known.passage(lab.now()), Passage::InFlight, "{known:?}");
        assert_eq!(known.state, State::Uncertain);
        assert_eq!(alive.attempt("b").await.state, State::Queued);
        sleep(s(1)).await;
    }
    let known = alive.place(lab.call("a", RINGS)).await;
    assert_eq!(known.passage(lab.now()), Passage::Unclear);
    let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(attempt.state, State::NeedsReview);
    assert!(
        attempt.since >= horizon.unwrap(),
        "no absence counts before"
    );
    assert_eq!((lab.sip_calls_of("a"), lab.sip_calls_of("b")), (1, 0));
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn what_the_new_process_begins_is_not_taken_for_the_old_ones() {
    let lab = lab();
    lab.node().await.kill().await;
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = alive.until_state("a", State::Ended).await;
    let taken = |step: &_| matches!(step, Cause::OwnerGone);
    assert!(
        !attempt.history.iter().any(|t| taken(&t.cause)),
        "{attempt:?}"
    );
    assert_eq!(attempt.tries, 1);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_the_store_refuses_is_tried_again_and_not_left_to_the_window() {
    let lab = lab();
    let alive = lab.node().await;
    alive.place(lab.call("a", SLOWLY)).await;
    sleep(s(5)).await;
    alive.kill().await;
    sleep(s(8)).await;
    let begun = lab.now();
    let alive = lab.node_on(refuses_twice(&lab), None, Life::new()).await;
    let attempt = alive.until_state("a", State::Answered).await;
    assert!(attempt.since.since(begun) < s(5), "{attempt:?}");
    assert!(attempt.since < window_end(&attempt));
    alive.until_state("a", State::Ended).await;
    lab.until_no_rooms(s(60)).await;
    assert_eq!(lab.sip_calls_of("a"), 1);
    lab.rooms.assert_paired();
    lab.assert_promises();
}
