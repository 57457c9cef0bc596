//! What goes on when the process, the platform or the agent does not.

use std::time::Duration;

use ringonce::lab::platform::{Behaviour, Fault, Worker};
use ringonce::model::attempt::{EndCause, Passage, State, Transition};
use ringonce::model::disposition::{Disposition, Rang};
use ringonce::model::verdict::TryFailure;
use tokio::time::sleep;

use super::world::Lab;

const ANSWERS: &str = "+12025550100";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";
/// Rings on, while the caller's connection breaks.
const CUT: &str = "+12025550199";

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_it_rings_leaves_the_call_alone_and_never_dials_again() {
    for alone in [false, true] {
        for to in [RINGS, "+12025550111"] {
            let mut lab = Lab::new(1);
            lab.alone = alone;
            let alive = lab.node().await;
            alive.place(lab.call("a", to)).await;
            sleep(s(5)).await;
            alive.kill().await;
            let killed = lab.now();
            let alive = lab.node().await;
            for _ in 0..3 {
                let placed = alive.place(lab.call("a", to)).await;
                assert_eq!(placed.passage(lab.now()), Passage::InFlight);
                sleep(s(1)).await;
                assert_eq!(lab.seen().rooms.len(), 1, "the room of a ringing phone");
            }
            let attempt = alive.until_settled("a").await;
            assert_eq!(attempt.state, State::Uncertain);
            let window = attempt.placed.as_ref().unwrap().marker.as_ref().unwrap();
            // Who may live is waited for until the window ends, and who is dead is not.
            let lost = if alone { killed } else { window.window_end };
            assert!(attempt.since >= lost);
            assert!(attempt.since < lost.plus(s(3)));
            // Contact and number stay held: what became of it is not known.
            let mut other = lab.call("b", BUSY);
            other.spec.contact = "a".parse().unwrap();
            assert_eq!(alive.place(other).await.state, State::Queued);
            // Looking began with the new process: what it saw decides, one horizon later.
            let after = alive.until("a", |a| a.state != State::Uncertain).await;
            if to == RINGS {
                assert_eq!(after.state, State::NeedsReview, "seen to ring, then gone");
            } else {
                let after = alive.until_state("a", State::Ended).await;
                assert!(after.settled.unwrap().rang == Rang::Rang);
            }
            lab.until_no_rooms(s(400)).await;
            sleep(s(200)).await;
            // Where it is settled, the other one takes its turn.
            let causes: &[&str] = match (to, alone) {
                (RINGS, _) => &["finished"],
                // It was known to be answered while it was, and its end was seen, too.
                (_, true) => &["ended", "not_connected"],
                (_, false) => &["finished", "not_connected"],
            };
            assert_eq!(lab.rooms.causes(), causes);
            lab.rooms.assert_paired();
            assert_eq!(lab.sip_calls_of("a"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_room_is_left_alive_and_its_end_is_told_once() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    // Answers, talks for twenty seconds, and the reply is lost.
    alive.place(lab.call("a", "+12025550198")).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::Uncertain);
    assert_eq!(lab.seen().rooms.len(), 1);
    sleep(s(10)).await;
    assert_eq!(lab.seen().rooms.len(), 1, "somebody talks in it");
    assert_eq!(alive.attempt("a").await.state, State::Answered);
    lab.until_no_rooms(s(120)).await;
    sleep(s(7_200)).await;
    assert_eq!(alive.attempt("a").await.state, State::Ended);
    assert_eq!(lab.rooms.causes(), ["ended"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_answered_call_is_seen_also_by_the_next_process() {
    for crash in [false, true] {
        let lab = Lab::new(1);
        let mut alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS)).await;
        alive.until_state("a", State::Answered).await;
        if crash {
            alive.kill().await;
            alive = lab.node().await;
            sleep(s(5)).await;
            assert_eq!(lab.seen().rooms.len(), 1, "somebody talks in it");
        }
        let attempt = alive.until_state("a", State::Ended).await;
        let settled = attempt.settled.unwrap();
        assert_eq!(settled.end_cause, Some(EndCause::LegLeft));
        // Twenty seconds of talk, and a look every thirty.
        let answered = attempt.placed.unwrap().answer.unwrap().at;
        assert!(lab.now().since(answered) < s(65));
        sleep(s(300)).await;
        assert_eq!(lab.rooms.causes(), ["ended"]);
        lab.rooms.assert_paired();
    }
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_listed_and_does_not_live_is_no_call() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Answered).await;
    lab.fault(Fault::named("server_restart"));
    // One look finds no node that answers for it, and that alone ends no call.
    sleep(s(50)).await;
    assert_eq!(alive.attempt("a").await.state, State::Answered);
    sleep(s(40)).await;
    let attempt = alive.attempt("a").await;
    assert_eq!(attempt.state, State::Ended);
    assert_eq!(attempt.settled.unwrap().end_cause, Some(EndCause::RoomGone));
    lab.until_no_rooms(s(60)).await;
    sleep(s(300)).await;
    assert!(lab.seen().rooms.is_empty());
    assert_eq!(lab.rooms.causes(), ["finished"]);
    lab.rooms.assert_paired();
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_room_that_lives_and_is_not_listed_is_no_end() {
    let lab = Lab::with(1, "", |settings| settings.times.talk = s(100));
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Answered).await;
    lab.fault(Fault::named("redis_flush"));
    sleep(s(70)).await;
    let talks = lab.seen().sip_calls.iter().any(|c| c.status == "active");
    assert!(talks, "{:?}", lab.seen());
    assert_eq!(alive.attempt("a").await.state, State::Answered);
    let attempt = alive.until_state("a", State::Ended).await;
    assert_eq!(attempt.settled.unwrap().end_cause, Some(EndCause::RoomGone));
    assert_eq!(lab.rooms.causes(), ["finished"]);
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_crashes_or_forgets_while_it_rings_is_dialed_once() {
    for fault in [
        "server_restart",
        "server_crash",
        "bridge_killed",
        "redis_flush",
        "trunk_flush",
    ] {
        for to in [RINGS, BUSY, ANSWERS, CUT] {
            for millis in [300, 630, 800, 3_000] {
                let lab = Lab::new(1);
                let alive = lab.node().await;
                let mut call = lab.call("a", to);
                call.spec.max_call_ms = 120_000;
                alive.place(call).await;
                sleep(Duration::from_millis(millis)).await;
                lab.fault(Fault::named(fault));
                sleep(s(300)).await;
                let what = format!("{fault} after {millis} ms of {to}");
                let attempt = alive.attempt("a").await;
                println!("{what}: {:?}", attempt.state);
                lab.assert_promises();
                lab.assert_true(&attempt);
                lab.assert_moves(&attempt);
                sleep(s(300)).await;
                let attempt = alive.attempt("a").await;
                lab.assert_true(&attempt);
                assert!(
                    attempt.state.settled() || attempt.state == State::NeedsReview,
                    "{what}: {attempt:?}"
                );
                if attempt.state == State::NeedsReview {
                    // A stale record is no room: it stays, and so does what is not known.
                    let lives = lab.seen().rooms.iter().any(|r| !r.participants.is_empty());
                    assert!(!lives, "{what}: {:?}", lab.seen().rooms);
                } else {
                    assert!(lab.seen().rooms.is_empty(), "{what}: a room is left");
                    lab.rooms.assert_paired();
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_our_agent_alone_in_the_room_no_phone_rings() {
    let ms = Duration::from_millis;
    let ours = Behaviour::Joins { after: ms(400) };
    let cases = [
        (
            vec![Worker::new("caller", Behaviour::Absent)],
            TryFailure::AgentUnavailable,
        ),
        (
            vec![Worker::new("caller", Behaviour::Late { after: s(60) })],
            TryFailure::AgentUnavailable,
        ),
        (
            vec![Worker::new(
                "caller",
                Behaviour::Leaves {
                    join: ms(50),
                    after: ms(200),
                },
            )],
            TryFailure::AgentUnavailable,
        ),
        (
            vec![Worker::new("caller", Behaviour::Doubled { after: ms(400) })],
            TryFailure::AgentConflict,
        ),
        (
            vec![
                Worker::new("caller", ours),
                Worker::new("", Behaviour::Joins { after: ms(100) }),
            ],
            TryFailure::AgentConflict,
        ),
    ];
    for (workers, failure) in cases {
        let lab = Lab::with(1, "", |settings| settings.workers = workers);
        let alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_settled("a").await;
        assert_eq!(attempt.state, State::NotDialed, "{attempt:?}");
        assert_eq!(attempt.last_failure, Some(failure));
        assert_eq!((attempt.tries, lab.dials()), (5, 0));
        lab.until_no_rooms(s(10)).await;
        sleep(s(300)).await;
        assert!(lab.seen().rooms.is_empty());
        assert_eq!(lab.rooms.causes(), ["try_failed"; 5]);
        lab.rooms.assert_paired();
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_while_it_rings_stops_the_call() {
    let leaves = Behaviour::Leaves {
        join: Duration::from_millis(400),
        after: s(5),
    };
    let lab = Lab::with(1, "", |settings| {
        settings.workers = vec![Worker::new("caller", leaves)];
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", RINGS)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::NotConnected);
    let settled = attempt.settled.unwrap();
    assert_eq!(settled.disposition, Disposition::AgentLost);
    assert!(attempt.placed.unwrap().ring_time.is_some());
    lab.until_no_rooms(s(10)).await;
    sleep(s(300)).await;
    assert_eq!(lab.rooms.causes(), ["agent_lost"]);
    assert_eq!(lab.sip_calls(), 1);
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_room_that_cannot_be_deleted_is_deleted_later() {
    for to in [BUSY, ANSWERS] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        lab.fault(Fault {
            times: Some(20),
            ..Fault::named("delete_500")
        });
        alive.place(lab.call("a", to)).await;
        alive.until_settled("a").await;
        lab.until_no_rooms(s(600)).await;
        sleep(s(300)).await;
        lab.rooms.assert_paired();
        lab.assert_promises();
    }
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_may_step_either_way() {
    for step in [-7_200_000_000, 7_200_000_000_i64] {
        for millis in [300, 630, 5_000] {
            let lab = Lab::new(1);
            let alive = lab.node().await;
            alive.place(lab.call("a", RINGS)).await;
            sleep(Duration::from_millis(millis)).await;
            lab.clock.step(step);
            sleep(s(300)).await;
            lab.clock.step(-step);
            sleep(s(300)).await;
            let attempt = alive.attempt("a").await;
            println!("{step} after {millis} ms: {:?}", attempt.state);
            lab.assert_promises();
            lab.assert_true(&attempt);
        }
    }
}

/// Many tries of a dead process, and a platform that answers no deletion: what is committed
/// does not wait for what is deleted.
#[tokio::test(start_paused = true)]
async fn a_platform_that_hangs_holds_up_no_dead_processes_attempts() {
    let mut lab = Lab::with(1, "", |settings| {
        settings.workers = vec![Worker::new("caller", Behaviour::Absent)];
    });
    lab.alone = true;
    let alive = lab.node().await;
    let names: Vec<String> = (0..60).map(|n| format!("a{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        alive.place(lab.call(name, &format!("+999{n:08}86"))).await;
    }
    sleep(s(1)).await;
    alive.kill().await;
    for method in ["DeleteRoom", "ListRooms"] {
        lab.fault(Fault {
            times: Some(u32::MAX),
            millis: Some(200_000),
            ..Fault::on("slow", method)
        });
    }
    let alive = lab.node().await;
    sleep(s(1)).await;
    for name in &names {
        let attempt = alive.attempt(name).await;
        let gone = |step: &Transition| step.evidence.contains("no marker was written");
        assert!(attempt.history.iter().any(gone), "{attempt:?}");
    }
    assert_eq!(lab.sip_calls(), 0);
}
