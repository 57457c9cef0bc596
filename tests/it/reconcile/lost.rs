//! A dial whose answer was lost: settled from looks, with the proof, by its time.

use std::time::Duration;

use ringonce::admission::cancel::{CancelCommand, CancelResult};
use ringonce::lab::platform::{Behaviour, Fault, Worker};
use ringonce::model::attempt::{Attempt, Cause, EndCause, Mode, ReviewCause, State};
use ringonce::model::disposition::{Disposition, Rang};
use tokio::time::sleep;

use crate::world::{Alive, Lab, workspace};

/// Answers, talks for twenty seconds, and the reply is lost.
const ANSWERED_UNHEARD: &str = "+12025550198";
/// Rings on, while the caller's connection breaks.
const CUT: &str = "+12025550199";
const ANSWERS: &str = "+12025550100";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How long after its horizon it left UNCERTAIN; the horizon is that of the marker.
fn after_horizon(attempt: &Attempt) -> Duration {
    let horizon = attempt.placed.as_ref().unwrap().horizon().unwrap();
    assert!(attempt.since >= horizon, "{attempt:?}");
    attempt.since.since(horizon)
}

fn disposition(attempt: &Attempt) -> Disposition {
    attempt.settled.as_ref().unwrap().disposition
}

async fn until_known(alive: &Alive) -> Attempt {
    alive.until("a", |a| a.state == State::Uncertain).await;
    alive.until("a", |a| a.state != State::Uncertain).await
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_by_looking_and_so_is_its_end() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERED_UNHEARD)).await;
    let attempt = until_known(&alive).await;
    assert_eq!(attempt.state, State::Answered);
    let answer = attempt.placed.clone().unwrap().answer.unwrap();
    assert!(answer.proof.contains("listed as answered"), "{answer:?}");
    assert!(!answer.leg.participant.is_empty());
    let horizon = attempt.placed.as_ref().unwrap().horizon().unwrap();
    assert!(attempt.since < horizon, "as soon as it is seen");
    let attempt = alive.until_state("a", State::Ended).await;
    assert_eq!(attempt.settled.unwrap().end_cause, Some(EndCause::LegLeft));
    lab.until_no_rooms(s(60)).await;
    sleep(s(200)).await;
    lab.assert_promises();
    lab.rooms.assert_paired();
    assert_eq!(lab.sip_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_to_ring_and_is_gone_waits_for_a_person_and_is_never_undialed() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    let attempt = until_known(&alive).await;
    assert_eq!(attempt.state, State::NeedsReview);
    assert_eq!(attempt.review, Some(ReviewCause::SeenThenGone));
    assert_eq!(attempt.rang(), Rang::Rang);
    assert!(after_horizon(&attempt) <= s(5), "{attempt:?}");
    let last = attempt.history.last().unwrap();
    assert_eq!(last.cause, Cause::Unsettled);
    assert!(last.evidence.contains("was seen ringing"), "{last:?}");
    // It holds its contact, and it is never dialed again.
    let mut other = lab.call("b", BUSY);
    other.spec.contact = "a".parse().unwrap();
    assert_eq!(alive.place(other).await.state, State::Queued);
    let again = alive.place(lab.call("a", CUT)).await;
    assert_eq!(again.state, State::NeedsReview);
    sleep(s(600)).await;
    assert_eq!(lab.sip_calls_of("a"), 1);
    lab.assert_promises();
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn what_was_looked_for_all_the_time_and_never_seen_left_no_trace() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    lab.fault(Fault::on("lose_request", "CreateSIPParticipant"));
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = until_known(&alive).await;
    assert_eq!(attempt.state, State::NotConnected);
    assert_eq!(disposition(&attempt), Disposition::NoTrace);
    assert!(after_horizon(&attempt) <= s(5), "{attempt:?}");
    let last = attempt.history.last().unwrap();
    assert!(last.evidence.contains("from the dial on"), "{last:?}");
    assert!(last.evidence.contains("trunk still listed"), "{last:?}");
    // The contact is free at once, and the id never dials again.
    let mut other = lab.call("b", BUSY);
    other.spec.contact = "a".parse().unwrap();
    alive.place(other).await;
    alive.until_state("b", State::NotConnected).await;
    assert_eq!(alive.place(lab.call("a", ANSWERS)).await.tries, 1);
    sleep(s(600)).await;
    assert_eq!((lab.sip_calls_of("a"), lab.sip_calls_of("b")), (0, 1));
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_is_silent_for_six_seconds_leaves_a_gap() {
    let lab = Lab::with(
        1,
        "[livekit]\nrequest_timeout = \"1s\"\nrequest_retries = 0\n",
        |_| {},
    );
    let alive = lab.node().await;
    lab.fault(Fault::on("lose_request", "CreateSIPParticipant"));
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Uncertain).await;
    sleep(s(20)).await;
    lab.fault(Fault {
        times: Some(4),
        ..Fault::on("lose_reply", "ListRooms")
    });
    let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(attempt.state, State::NeedsReview);
    assert_eq!(attempt.review, Some(ReviewCause::LookedWithGaps));
    assert!(after_horizon(&attempt) <= s(5), "{attempt:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_begins_to_look_anew_and_decides_one_horizon_later() {
    for (to, fault) in [(ANSWERS, true), (RINGS, false)] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        if fault {
            lab.fault(Fault::on("lose_request", "CreateSIPParticipant"));
        }
        alive.place(lab.call("a", to)).await;
        sleep(s(10)).await;
        alive.kill().await;
        let started = lab.now();
        let alive = lab.node().await;
        let attempt = alive.until_state("a", State::NeedsReview).await;
        let horizon = attempt.placed.as_ref().unwrap().marker.clone().unwrap();
        let span = horizon.horizon.since(horizon.at);
        let took = attempt.since.since(started);
        assert!(took >= span, "{took:?}");
        assert!(took <= span + s(5), "{took:?}");
        let cause = if fault {
            ReviewCause::LookedLate
        } else {
            ReviewCause::SeenThenGone
        };
        assert_eq!(attempt.review, Some(cause));
    }
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_lost_its_records_proves_no_absence() {
    // Answered, unheard, and before anybody looked the records are gone.
    let lab = Lab::with(1, "", |settings| settings.times.talk = s(400));
    let alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    alive.until_state("a", State::Uncertain).await;
    lab.fault(Fault::named("redis_flush"));
    sleep(s(30)).await;
    let ringing = lab.seen().sip_calls.iter().any(|c| c.status == "ringing");
    assert!(ringing, "{:?}", lab.seen());
    let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(attempt.state, State::NeedsReview);
    assert!(after_horizon(&attempt) <= s(10), "{attempt:?}");
    lab.assert_promises();
    lab.assert_true(&attempt);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_a_crash_left_is_no_leg() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    alive.until_state("a", State::Uncertain).await;
    sleep(s(3)).await;
    lab.fault(Fault::named("server_restart"));
    let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(attempt.state, State::NeedsReview, "{attempt:?}");
    assert_eq!(attempt.review, Some(ReviewCause::StaleRecord));
    lab.assert_true(&attempt);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_steps_proves_no_horizon() {
    // Within the leeway of the platform's tokens: beyond it nobody answers.
    for step in [-50_000_000, 50_000_000_i64] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", CUT)).await;
        alive.until_state("a", State::Uncertain).await;
        let begun = tokio::time::Instant::now();
        lab.clock.step(step);
        let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
        let took = begun.elapsed();
        assert!((s(130)..s(150)).contains(&took), "{took:?}");
        assert_eq!(attempt.state, State::NeedsReview);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_started_again_and_again_asks_a_person_all_the_same() {
    let lab = Lab::new(1);
    let mut alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    let lost = alive.until_state("a", State::Uncertain).await;
    let horizon = lost.placed.unwrap().horizon().unwrap();
    let begun = lab.now();
    // None of them lives for as long as it would have to look.
    while alive.attempt("a").await.state == State::Uncertain {
        assert!(lab.now().since(begun) < s(600), "nobody is ever told");
        alive.kill().await;
        alive = lab.node().await;
        sleep(s(10)).await;
    }
    assert_eq!(alive.attempt("a").await.state, State::NeedsReview);
    assert!(lab.now() > horizon, "not before its time");
    lab.assert_promises();
}

async fn cancel(alive: &Alive, mode: Mode) -> CancelResult {
    let command = CancelCommand {
        workspace: workspace(),
        attempt: "a".parse().unwrap(),
        mode,
        allow_missing: false,
        reason: "test".to_owned(),
        requested_by: "test".to_owned(),
    };
    alive
        .node
        .admission()
        .cancel(&command)
        .await
        .unwrap()
        .unwrap()
        .0
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_what_is_uncertain_cancels_the_ringing_phone() {
    for mode in [Mode::StopRinging, Mode::HangUp] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", CUT)).await;
        alive.until_state("a", State::Uncertain).await;
        sleep(s(3)).await;
        assert_eq!(cancel(&alive, mode).await, CancelResult::Pending);
        let begun = lab.now();
        let attempt = alive.until_state("a", State::Canceled).await;
        assert!(lab.now().since(begun) < s(5));
        assert!(attempt.settled.clone().unwrap().call_started);
        assert_eq!(CancelResult::of(&attempt), CancelResult::Stopped);
        lab.until_no_rooms(s(5)).await;
        sleep(s(300)).await;
        lab.assert_promises();
        lab.rooms.assert_paired();
        assert_eq!(lab.rooms.causes(), ["canceled"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_an_answered_call_ends_it_after_its_grace() {
    let leaves = Behaviour::Leaves {
        join: Duration::from_millis(400),
        after: s(40),
    };
    let lab = Lab::with(1, "", |settings| {
        settings.workers = vec![Worker::new("caller", leaves)];
        settings.times.talk = s(600);
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    let answered = alive.until_state("a", State::Answered).await;
    let attempt = alive.until_state("a", State::Ended).await;
    let settled = attempt.settled.clone().unwrap();
    assert_eq!(settled.end_cause, Some(EndCause::AgentLost));
    let took = attempt.since.since(answered.since);
    // A look every thirty seconds, then ten seconds of grace.
    assert!((s(48)..s(80)).contains(&took), "{took:?}");
    lab.until_no_rooms(s(5)).await;
    sleep(s(200)).await;
    assert_eq!(lab.rooms.causes(), ["agent_lost"]);
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn what_webhooks_should_have_told_is_counted() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    for n in 0..3 {
        alive.place(lab.call(&format!("a{n}"), ANSWERS)).await;
        alive.until_state(&format!("a{n}"), State::Ended).await;
    }
    let gaps = alive.node.reconciler().gaps();
    let counted = gaps.counted();
    let ended = counted["left"] + counted["room_finished"];
    assert_eq!(ended, 3, "{counted:?}");
    assert!(gaps.silent(), "no webhook ever came");
}
