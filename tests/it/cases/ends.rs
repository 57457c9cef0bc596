//! Class j: what is dropped, and when. And of class i, owners that sleep and clocks that step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ringonce::lab::platform::Times;
use ringonce::model::attempt::{Keep, State};
use ringonce::model::disposition::Disposition;
use ringonce::provider::wire::{Answer, Method};
use ringonce::runtime::life::Life;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

use super::tap::{Made, Tap, ms, s};
use crate::world::{Act, Lab, Strike};

const ANSWERS: &str = "+12025550100";
const ANSWERS_LATE: &str = "+12025550111";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";

fn paused() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// The runtime goes, with a room's guard alive in it, on this thread or on one that knows no
/// runtime. Nothing panics, and what was written down before is enough for the next process.
#[test]
fn r55_a_runtime_that_is_dropped_takes_nothing_with_it() {
    for elsewhere in [false, true] {
        for millis in [1, 300, 605, 615, 5_000] {
            let runtime = paused();
            let (lab, alive) = runtime.block_on(async {
                let lab = Lab::new(1);
                let alive = lab.node().await;
                alive.place(lab.call("a", RINGS)).await;
                sleep(ms(millis)).await;
                (lab, alive)
            });
            let dialed = lab.dials();
            let dropped = catch_unwind(AssertUnwindSafe(|| {
                if elsewhere {
                    thread::scope(|scope| scope.spawn(|| drop(runtime)).join().unwrap());
                } else {
                    drop(runtime);
                }
            }));
            assert!(dropped.is_ok(), "{millis} ms");
            assert_eq!(alive.node.tasks().panics(), 0, "{millis} ms");
            let store = lab.store.reopen();
            drop((alive, lab));
            paused().block_on(async {
                // The room went with its world; the ledger is what the next process has.
                let next = Lab::new(2);
                let store = Arc::new(store);
                let alive = next.node_on(store, None, Life::new()).await;
                let over = alive
                    .until("a", |a| a.state.settled() || a.state == State::NeedsReview)
                    .await;
                if dialed == 0 {
                    assert_eq!(next.sip_calls(), 1, "{millis} ms: {over:?}");
                } else {
                    assert_eq!(next.dials(), 0, "{millis} ms: {over:?}");
                }
                next.until_no_rooms(s(300)).await;
            });
        }
    }
}

/// A deletion of three seconds while the process ends: it is waited for, up to the limit; what
/// does not fit is the next process's.
#[tokio::test(start_paused = true)]
async fn r55_an_end_waits_for_deletions_up_to_its_limit() {
    for (limit, waited) in [(s(10), true), (s(1), false)] {
        let lab = Lab::with(1, "[room]\ndeparture_timeout = \"1h\"", |_| {});
        let (alive, tap) = Tap::on(&lab, Method::DeleteRoom, |_| {
            Made::Answered(s(3), Answer::Done(Vec::new()))
        })
        .await;
        alive.place(lab.call("a", BUSY)).await;
        sleep(ms(300)).await;
        assert_eq!(lab.seen().rooms.len(), 1);
        let begun = Instant::now();
        alive.node.begin_drain();
        let settled = alive.node.settle(limit).await;
        assert_eq!(settled, waited, "{limit:?}");
        assert!(begun.elapsed() <= limit + ms(100), "{:?}", begun.elapsed());
        alive.node.shut_down(ms(100)).await;
        assert_eq!(alive.node.tasks().panics(), 0);
        alive.kill().await;
        assert!(tap.count(Method::DeleteRoom) >= 1);
        let alive = lab.node().await;
        let over = alive.until_state("a", State::NotConnected).await;
        assert_eq!((over.tries, lab.sip_calls()), (2, 1));
        lab.until_no_rooms(s(120)).await;
        sleep(s(600)).await;
        lab.rooms.assert_paired();
    }
}

/// Everything that ticks ticks as fast as it can while five hundred dials are awaited, and the
/// guards' way to the janitor holds one room.
#[tokio::test(start_paused = true)]
async fn r56_no_ticker_drops_what_is_awaited() {
    let fast = "
        [reconcile]
        interval = \"10ms\"
        look_interval = \"100ms\"
        [queue]
        poll_interval = \"10ms\"
        [webhooks]
        drain_interval = \"10ms\"
        [janitor]
        queue = 1
        [dial]
        in_flight = 500
    ";
    let lab = Lab::with(1, fast, |settings| {
        settings.times = Times {
            refuse_after: ms(100),
            ..Times::default()
        };
    });
    let alive = lab.node().await;
    let calls = (0..500).map(|n| lab.call(&format!("a{n}"), &format!("+999{n:08}86")));
    let placing = calls.map(|call| alive.place(call));
    futures_util::future::join_all(placing).await;
    for n in 0..500 {
        let attempt = alive.until_settled(&format!("a{n}")).await;
        assert_eq!(attempt.state, State::NotConnected, "{attempt:?}");
        assert_eq!(attempt.tries, 1);
    }
    assert_eq!((lab.dials(), lab.sip_calls()), (500, 500));
    lab.until_no_rooms(s(60)).await;
    lab.rooms.assert_paired();
    lab.assert_promises();
}

/// Leases that are far shorter than a ring, and two processes that both want the work.
#[tokio::test(start_paused = true)]
async fn r52_a_lease_that_ends_hands_no_dialing_over() {
    let short = "[reconcile]\nlease = \"1s\"\n[queue]\nlease = \"1s\"\n";
    let lab = Lab::with(1, short, |settings| settings.times.slow_answer = s(20));
    let (a, b) = (lab.node().await, lab.node().await);
    a.place(lab.call("a", ANSWERS_LATE)).await;
    b.place(lab.call("a", ANSWERS_LATE)).await;
    let answered = a.until_state("a", State::Answered).await;
    assert_eq!(answered.tries, 1);
    sleep(s(120)).await;
    assert_eq!(b.attempt("a").await.state, State::Ended);
    assert_eq!((lab.dials(), lab.sip_calls()), (1, 1));
}

/// The owner is stopped before its marker for longer than anything lasts; another process takes
/// over and rings; then the first one wakes.
#[tokio::test(start_paused = true)]
async fn r52_an_owner_that_wakes_up_late_does_nothing_more() {
    let mut taken_over = 0;
    for poll in (1..40).step_by(2) {
        let lab = Lab::new(poll);
        let strike = Arc::new(Strike::new(0, poll, Act::Pause));
        let first = lab.node_with(Some(Arc::clone(&strike) as _)).await;
        first.place(lab.call("a", ANSWERS)).await;
        if timeout(s(60), strike.strikes()).await.is_err() {
            break;
        }
        let undialed = lab.dials() == 0;
        let second = lab.node().await;
        sleep(s(400)).await;
        let before = second.attempt("a").await;
        strike.release();
        first.node.tasks().wake_paused();
        sleep(s(60)).await;
        let after = second.attempt("a").await;
        lab.assert_promises();
        lab.assert_true(&after);
        if undialed && before.state == State::Ended {
            taken_over += 1;
            assert_eq!(after, before, "the late one changes nothing");
        }
        lab.until_no_rooms(s(600)).await;
        sleep(s(450)).await;
        lab.rooms.assert_closed();
    }
    assert!(taken_over >= 3, "{taken_over} were taken over");
}

/// The owner is stopped before its marker until its try is given back, and wakes while the
/// attempt waits for the next one: that try fails once, and the next one rings.
#[tokio::test(start_paused = true)]
async fn r52_an_owner_that_wakes_beside_its_next_try_fails_once() {
    let mut given_back = 0;
    for poll in (1..40).step_by(2) {
        for keep in [Keep::UntilExpiry, Keep::Return] {
            let lab = Lab::new(poll);
            let strike = Arc::new(Strike::new(0, poll, Act::Pause));
            let alive = lab.node_with(Some(Arc::clone(&strike) as _)).await;
            let mut call = lab.call("a", ANSWERS);
            call.spec.keep = keep;
            alive.place(call.clone()).await;
            let waits = match keep {
                Keep::UntilExpiry => State::Queued,
                Keep::Return => State::Deferred,
            };
            if timeout(s(120), alive.until_state("a", waits))
                .await
                .is_err()
            {
                continue;
            }
            given_back += 1;
            let before = alive.attempt("a").await;
            strike.release();
            alive.node.tasks().wake_paused();
            sleep(s(1)).await;
            let after = alive.attempt("a").await;
            assert_eq!(after, before, "the late one changes nothing");
            sleep(s(60)).await;
            alive.place(call).await;
            let over = alive.until_state("a", State::Ended).await;
            assert_eq!(over.tries, 2, "{over:?}");
            lab.assert_promises();
            lab.until_no_rooms(s(600)).await;
        }
    }
    assert!(given_back >= 6, "{given_back} were given back");
}

/// A message that is delivered again when its attempt is forgotten is refused.
#[tokio::test(start_paused = true)]
async fn r52_a_replay_after_the_retention_is_refused() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let mut call = lab.call("a", BUSY);
    call.spec.intend_time = lab.now().minus(lab.config.store.id_retention + s(1));
    let refused = alive.place(call).await;
    assert_eq!(refused.state, State::Refused, "{refused:?}");
    assert_eq!((lab.dials(), lab.requests("CreateRoom")), (0, 0));
}

/// The wall clock steps while it rings: it rings as long as it was meant to.
#[tokio::test(start_paused = true)]
async fn r52_a_clock_that_steps_changes_no_ring() {
    for step in [-10_i64, 3_600] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", RINGS)).await;
        sleep(s(10)).await;
        lab.clock.step(step * 1_000_000);
        let begun = Instant::now();
        // A step forwards makes it look overdue, and so unclear; the dial's own answer decides.
        let attempt = alive.until("a", |a| a.state.settled()).await;
        let rang = begun.elapsed();
        assert!((s(35)..s(37)).contains(&rang), "{step}: {rang:?}");
        let disposition = attempt.settled.as_ref().map(|settled| settled.disposition);
        assert_eq!(disposition, Some(Disposition::NoAnswer), "{attempt:?}");
        assert_eq!((lab.dials(), lab.sip_calls()), (1, 1));
        assert_eq!(alive.node.tasks().panics(), 0);
    }
}
