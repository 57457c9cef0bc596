//! Every stage of a placement under every fault, in one enumeration: the promises hold, the
//! state is true, the room goes, and a call that can still be placed is placed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ringonce::lab::platform::{Fault, Trunk};
use ringonce::ledger::store::memory::{Call, Fate, Scripted};
use ringonce::model::attempt::{Attempt, State};
use ringonce::model::verdict::TryFailure;
use ringonce::runtime::life::Life;
use tokio::time::{Instant, sleep, timeout};

use super::world::{Act, Alive, Lab, Strike};

/// Answers, and talks for twenty seconds.
const ANSWERS: &str = "+12025550100";

/// More than any poll of a placement that answers.
const POLLS_MAX: u64 = 200;

/// Longer than three horizons of a call that rings for 45 s (145 s each).
const THREE_HORIZONS: Duration = Duration::from_secs(450);

/// Long enough for five tries, a horizon and all that is reconciled after it.
const LONG: Duration = Duration::from_mins(15);

/// What must hold in every cell, whatever was done to it.
async fn judge(lab: &Lab, alive: &Alive, what: &str) -> Attempt {
    let attempt = alive.until_settled("a").await;
    println!("{what}: {:?}, {} calls", attempt.state, lab.sip_calls());
    lab.assert_promises();
    lab.assert_true(&attempt);
    lab.until_no_rooms(LONG).await;
    sleep(THREE_HORIZONS).await;
    let attempt = alive.attempt("a").await;
    lab.assert_promises();
    lab.assert_true(&attempt);
    lab.assert_moves(&attempt);
    assert!(lab.seen().rooms.is_empty(), "{what}: a room came back");
    attempt
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_each_poll_whatever_the_next_one_knows() {
    for alone in [false, true] {
        let mut ends = BTreeSet::new();
        for poll in 1..POLLS_MAX {
            let mut lab = Lab::new(poll);
            lab.alone = alone;
            let life = Life::new();
            let strike = Arc::new(Strike::new(0, poll, Act::Crash(life.clone())));
            let store = Arc::new(lab.store.reopen());
            let first = lab
                .node_on(store, Some(Arc::clone(&strike) as _), life)
                .await;
            first.place(lab.call("a", ANSWERS)).await;
            let over = timeout(Duration::from_mins(1), strike.strikes()).await;
            first.kill().await;
            let dialed = lab.dials();
            let alive = lab.node().await;
            alive.place(lab.call("a", ANSWERS)).await;
            let attempt = judge(&lab, &alive, &format!("crash at {poll}")).await;
            lab.rooms.assert_closed();
            if over.is_err() {
                assert_eq!(attempt.state, State::Ended);
                ends.insert((dialed, attempt.state, lab.sip_calls()));
                break;
            }
            let expected: &[State] = match dialed {
                // The marker may be written, or not: then another try places it.
                0 => &[State::Ended, State::NeedsReview],
                _ => &[State::NeedsReview, State::Ended],
            };
            assert!(expected.contains(&attempt.state), "{poll}: {attempt:?}");
            ends.insert((dialed, attempt.state, lab.sip_calls()));
        }
        // Before the marker; between marker and dial; while it rings; after its settling.
        let all = BTreeSet::from([
            (0, State::Ended, 1),
            (0, State::NeedsReview, 0),
            (1, State::Ended, 1),
        ]);
        assert_eq!(ends, all, "the enumeration meets every stage");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_drop_at_each_poll() {
    for act in [Act::Panic, Act::Drop] {
        for poll in 1..POLLS_MAX {
            let lab = Lab::new(poll);
            let strike = Arc::new(Strike::new(0, poll, act.clone()));
            let alive = lab.node_with(Some(Arc::clone(&strike) as _)).await;
            alive.place(lab.call("a", ANSWERS)).await;
            let attempt = judge(&lab, &alive, &format!("{act:?} at {poll}")).await;
            lab.rooms.assert_paired();
            assert!(
                matches!(attempt.state, State::Ended | State::NeedsReview),
                "{act:?} at {poll}: {attempt:?}"
            );
            if lab.dials() == 0 {
                assert_eq!(attempt.state, State::NeedsReview);
            }
            if !strike.struck() {
                assert_eq!(attempt.state, State::Ended);
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_three_horizons_at_each_poll() {
    for poll in 1..POLLS_MAX {
        let lab = Lab::new(poll);
        let strike = Arc::new(Strike::new(0, poll, Act::Pause));
        let alive = lab.node_with(Some(Arc::clone(&strike) as _)).await;
        alive.place(lab.call("a", ANSWERS)).await;
        let over = timeout(Duration::from_mins(1), strike.strikes()).await;
        if over.is_ok() {
            sleep(THREE_HORIZONS).await;
            lab.assert_true(&alive.attempt("a").await);
            strike.release();
            alive.node.tasks().wake_paused();
        }
        let attempt = judge(&lab, &alive, &format!("pause at {poll}")).await;
        lab.rooms.assert_closed();
        // Paused between marker and dial, it is woken too late and knows it.
        let expected: &[State] = match lab.sip_calls() {
            // Paused while the request was on its way, nobody heard its answer.
            0 => &[State::NotDialed, State::NeedsReview],
            _ => &[State::Ended, State::NeedsReview],
        };
        assert!(expected.contains(&attempt.state), "{poll}: {attempt:?}");
        if over.is_err() {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_at_each_poll() {
    for polls in 0..20 {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        let mut placing = Box::pin(alive.node.admission().place(lab.call("a", ANSWERS)));
        let mut placed = false;
        for _ in 0..polls {
            placed = futures_util::poll!(placing.as_mut()).is_ready();
            if placed {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(placing);
        // The queue delivers again, since nobody acknowledged.
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = judge(&lab, &alive, &format!("gone after {polls}")).await;
        assert_eq!(attempt.state, State::Ended);
        lab.rooms.assert_paired();
        if placed {
            return;
        }
    }
    panic!("placing needs fewer polls than that");
}

/// The requests of one placement, in their order.
const METHODS: [&str; 6] = [
    "ListSIPOutboundTrunk",
    "CreateRoom",
    "CreateDispatch",
    "ListParticipants",
    "CreateSIPParticipant",
    "DeleteRoom",
];

fn wire_faults() -> Vec<Fault> {
    let refuse = |status, code: &str, msg: &str| Fault {
        status: Some(status),
        code: Some(code.to_owned()),
        msg: Some(msg.to_owned()),
        ..Fault::named("refuse")
    };
    let held = |name, millis| Fault {
        millis: Some(millis),
        ..Fault::named(name)
    };
    vec![
        refuse(400, "invalid_argument", "no"),
        refuse(401, "unauthenticated", "no"),
        refuse(429, "resource_exhausted", "no"),
        refuse(500, "internal", "no"),
        refuse(503, "unavailable", "no"),
        Fault::named("lose_request"),
        Fault::named("lose_reply"),
        held("slow", 1_500),
        held("slow", 200_000),
        held("late", 1_500),
        held("late", 200_000),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_request_under_each_fault_of_the_wire() {
    // An answer, whose room is deleted by nobody, and a busy line, whose room is ours to delete.
    for to in [ANSWERS, "+12025550186"] {
        for method in METHODS {
            for times in [1, 3] {
                for fault in wire_faults() {
                    let what = format!("{to} {method} x{times} {fault:?}");
                    let lab = Lab::new(1);
                    let alive = lab.node().await;
                    lab.fault(Fault {
                        method: Some(method.to_owned()),
                        times: Some(times),
                        ..fault.clone()
                    });
                    alive.place(lab.call("a", to)).await;
                    let attempt = judge(&lab, &alive, &what).await;
                    lab.rooms.assert_paired();
                    let over = if to == ANSWERS {
                        State::Ended
                    } else {
                        State::NotConnected
                    };
                    // Only the dial is not repeated, where what became of it is not known.
                    let expected: &[State] = if method == "CreateSIPParticipant" {
                        &[over, State::NotConnected, State::NeedsReview]
                    } else {
                        &[over]
                    };
                    assert!(expected.contains(&attempt.state), "{what}: {attempt:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_commit_under_each_fault() {
    type Named = (&'static str, fn() -> Fate);
    let fates: [Named; 5] = [
        ("not applied", Fate::not_applied),
        ("lost", Fate::lost),
        ("late", || Fate::late(Duration::from_secs(2))),
        ("later than any patience", || {
            Fate::late(Duration::from_secs(20))
        }),
        ("slow", || Fate::after(Duration::from_secs(3))),
    ];
    for (name, fate) in fates {
        for repeated in [1, 3, 8] {
            for nth in 1..30 {
                let lab = Lab::new(1);
                let commits = Arc::new(AtomicU32::new(0));
                let count = Arc::clone(&commits);
                let script = Scripted(move |call: Call<'_>| match call {
                    Call::Commit(..) => {
                        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
                        if (nth..nth + repeated).contains(&n) {
                            fate()
                        } else {
                            Fate::default()
                        }
                    }
                    Call::Load(..)
                    | Call::Scan(..)
                    | Call::ClaimDue(..)
                    | Call::NextDue(..)
                    | Call::ChangesSince(..)
                    | Call::LogBounds(..)
                    | Call::Trim(..)
                    | Call::Info
                    | Call::BeginEpoch(_) => Fate::default(),
                });
                // The first commit is the identity of the store.
                lab.node().await.kill().await;
                let store = Arc::new(lab.store.reopen().scripted(Arc::new(script)));
                let alive = lab.node_on(store, None, Life::new()).await;
                let what = format!("commit {nth} x{repeated} {name}");
                while alive
                    .node
                    .admission()
                    .place(lab.call("a", ANSWERS))
                    .await
                    .is_err()
                {
                    sleep(Duration::from_secs(1)).await;
                }
                let attempt = judge(&lab, &alive, &what).await;
                lab.rooms.assert_closed();
                assert!(
                    matches!(attempt.state, State::Ended | State::NeedsReview),
                    "{what}: {attempt:?}"
                );
                if commits.load(Ordering::SeqCst) < nth {
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_the_platform_reads_after_the_horizon_starts_no_call() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    lab.fault(Fault {
        millis: Some(200_000),
        ..Fault::on("late", "CreateSIPParticipant")
    });
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = judge(&lab, &alive, "late dial").await;
    // Our own patience ends before its answer, so that what became of it stays unknown.
    assert_eq!(attempt.state, State::NeedsReview);
    assert_eq!(
        (lab.requests("CreateSIPParticipant"), lab.sip_calls()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_for_minutes_loses_no_finding() {
    for (to, state) in [
        (ANSWERS, State::Ended),
        ("+12025550186", State::NotConnected),
    ] {
        let lab = Lab::new(1);
        lab.node().await.kill().await;
        let (from, until) = (Duration::from_millis(700), Duration::from_mins(5));
        let begun = Instant::now();
        let script = Scripted(move |_: Call<'_>| {
            if (from..until).contains(&begun.elapsed()) {
                Fate::not_applied()
            } else {
                Fate::default()
            }
        });
        let store = Arc::new(lab.store.reopen().scripted(Arc::new(script)));
        let alive = lab.node_on(store, None, Life::new()).await;
        alive.place(lab.call("a", to)).await;
        sleep(until).await;
        let attempt = judge(&lab, &alive, "outage").await;
        assert_eq!(attempt.state, state);
        lab.rooms.assert_paired();
    }
}

#[tokio::test(start_paused = true)]
async fn flushed_trunks_are_healed_within_the_try() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Ended).await;
    lab.fault(Fault::named("trunk_flush"));
    alive.place(lab.call("b", "+12025550186")).await;
    let attempt = alive.until_settled("b").await;
    assert_eq!(attempt.state, State::NotConnected);
    assert_eq!(attempt.placed.unwrap().heals, 1);
    assert_eq!(attempt.tries, 1);
    assert_eq!((lab.dials(), lab.sip_calls_of("b")), (3, 1));
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn trunks_that_cannot_be_used_end_not_dialed() {
    let trunk = |numbers: &[&str]| Trunk {
        name: "main".to_owned(),
        address: "127.0.0.1:5080".to_owned(),
        numbers: numbers.iter().map(|n| (*n).to_owned()).collect(),
    };
    let numbered = trunk(&["+12025550000"]);
    for (trunks, failure) in [
        (vec![], TryFailure::TrunkNotFound),
        (
            vec![numbered.clone(), numbered.clone()],
            TryFailure::TrunkNotFound,
        ),
        (vec![trunk(&[])], TryFailure::TrunkNoNumber),
    ] {
        let lab = Lab::with(1, "", |settings| settings.trunks = trunks);
        let alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = judge(&lab, &alive, "trunk").await;
        assert_eq!(attempt.state, State::NotDialed);
        assert_eq!(attempt.last_failure, Some(failure));
        assert_eq!((lab.dials(), lab.requests("CreateRoom")), (0, 0));
        lab.rooms.assert_paired();
        assert!(lab.rooms.causes().iter().all(|c| c == "never_created"));
    }
}

#[tokio::test(start_paused = true)]
async fn r09_a_hundred_calls_with_a_missing_trunk_list_few_times() {
    let lab = Lab::with(1, "", |settings| settings.trunks.clear());
    let alive = lab.node().await;
    for n in 0..100 {
        let call = lab.call(&format!("a{n}"), &format!("+999{n:08}00"));
        alive.place(call).await;
    }
    sleep(Duration::from_secs(1)).await;
    let lists = lab.requests("ListSIPOutboundTrunk");
    assert!(lists < 10, "{lists} lists for 100 calls");
    for n in 0..100 {
        let attempt = alive.until_settled(&format!("a{n}")).await;
        assert_eq!(attempt.state, State::NotDialed);
    }
    assert_eq!((lab.dials(), lab.requests("CreateRoom")), (0, 0));
    lab.rooms.assert_paired();
}
