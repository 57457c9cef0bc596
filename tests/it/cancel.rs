//! A cancel in every state and mode: from its commit on nothing of the attempt begins.

use std::time::Duration;

use ringonce::admission::cancel::{CancelCommand, CancelResult};
use ringonce::lab::platform::Fault;
use ringonce::model::attempt::{Attempt, Cause, EndCause, Keep, Mode, State};
use ringonce::model::disposition::Disposition;
use tokio::time::sleep;

use super::world::{Alive, Lab, workspace};

const ANSWERS: &str = "+12025550100";
const BUSY: &str = "+12025550186";
const RINGS: &str = "+12025550108";

const MODES: [Mode; 3] = [Mode::BeforeDial, Mode::StopRinging, Mode::HangUp];

async fn cancel(alive: &Alive, id: &str, mode: Mode) -> Option<(CancelResult, Attempt)> {
    let command = CancelCommand {
        workspace: workspace(),
        attempt: id.parse().unwrap(),
        mode,
        allow_missing: id == "unknown",
        reason: "test".to_owned(),
        requested_by: "test".to_owned(),
    };
    let done = alive.node.admission().cancel(&command).await.unwrap();
    done.map(|(result, attempt, _)| (result, attempt))
}

async fn now(alive: &Alive, id: &str, mode: Mode) -> CancelResult {
    cancel(alive, id, mode).await.unwrap().0
}

/// What of SIP became of the call of attempt `a`.
fn status(lab: &Lab) -> Option<String> {
    lab.seen().sip_calls.first().map(|call| call.status.clone())
}

async fn is_clean(lab: &Lab, alive: &Alive) {
    lab.until_no_rooms(Duration::from_secs(400)).await;
    // Beyond the horizon, after which nothing of it can come back.
    sleep(Duration::from_secs(160)).await;
    lab.assert_promises();
    lab.assert_true(&alive.attempt("a").await);
    assert!(lab.seen().rooms.is_empty());
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_the_request_stops_it() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    assert!(cancel(&alive, "a", Mode::BeforeDial).await.is_none());
    let first = now(&alive, "unknown", Mode::BeforeDial).await;
    assert_eq!(first, CancelResult::Prevented);
    let placed = alive.place(lab.call("unknown", BUSY)).await;
    assert_eq!((placed.state, placed.tombstone), (State::Canceled, true));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(lab.dials(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_prevented() {
    for mode in MODES {
        for keep in [Keep::UntilExpiry, Keep::Return] {
            let lab = Lab::new(1);
            let alive = lab.node().await;
            alive.place(lab.call("a", BUSY)).await;
            let mut waits = lab.call("b", "+12025550189");
            waits.spec.contact = "a".parse().unwrap();
            waits.spec.keep = keep;
            alive.place(waits.clone()).await;
            assert_eq!(now(&alive, "b", mode).await, CancelResult::Prevented);
            let again = alive.place(waits).await;
            assert_eq!(again.state, State::Canceled);
            alive.until_settled("a").await;
            sleep(Duration::from_mins(1)).await;
            assert_eq!(alive.attempt("b").await.state, State::Canceled);
            assert_eq!(lab.sip_calls_of("b"), 0);
            // The hold is a's alone: nothing was freed or taken by the canceled one.
            is_clean(&lab, &alive).await;
        }
    }
}

/// The agent joins after 400 ms and is seen at 600 ms; the marker follows, then the dial,
/// and the bridge is in the room 30 ms later.
#[tokio::test(start_paused = true)]
async fn a_cancel_at_each_moment_of_a_placement_races_the_marker() {
    let mut prevented = 0;
    let mut stopped = 0;
    for mode in MODES {
        for millis in (0..4).chain(604..624).chain((630..660).step_by(10)) {
            let lab = Lab::new(1);
            let alive = lab.node().await;
            alive.place(lab.call("a", RINGS)).await;
            sleep(Duration::from_millis(millis)).await;
            let result = now(&alive, "a", mode).await;
            let attempt = alive.until_settled("a").await;
            match (result, mode) {
                (CancelResult::Prevented, _) => {
                    prevented += 1;
                    assert_eq!(attempt.state, State::Canceled);
                    assert_eq!(lab.sip_calls(), 0);
                    sleep(Duration::from_secs(200)).await;
                    assert_eq!((lab.dials(), lab.sip_calls()), (0, 0));
                }
                (CancelResult::TooLate, Mode::BeforeDial) => {
                    assert_eq!(attempt.state, State::NotConnected);
                }
                (CancelResult::Pending, Mode::StopRinging | Mode::HangUp) => {
                    stopped += 1;
                    let rang = attempt.settled.as_ref().is_some_and(|s| s.call_started);
                    let told = CancelResult::of(&attempt);
                    assert!(
                        told == CancelResult::Stopped || told == CancelResult::Pending,
                        "{millis} ms: {attempt:?}"
                    );
                    assert!(rang || attempt.state == State::Uncertain, "{attempt:?}");
                    assert_ne!(status(&lab).as_deref(), Some("ringing"), "{millis} ms");
                }
                (
                    CancelResult::TooLate
                    | CancelResult::Stopped
                    | CancelResult::HungUp
                    | CancelResult::Already,
                    _,
                )
                | (CancelResult::Pending, Mode::BeforeDial) => {
                    panic!("{mode:?} after {millis} ms is {result:?}")
                }
            }
            is_clean(&lab, &alive).await;
        }
    }
    assert!(prevented > 0 && stopped > 0);
}

#[tokio::test(start_paused = true)]
async fn a_ringing_phone_is_stopped_and_held_ten_seconds() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", RINGS)).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(status(&lab).as_deref(), Some("ringing"));
    let too_late = now(&alive, "a", Mode::BeforeDial).await;
    assert_eq!(too_late, CancelResult::TooLate);
    let mut next = lab.call("b", BUSY);
    next.spec.contact = "a".parse().unwrap();
    alive.place(next).await;
    let begun = lab.now();
    assert_eq!(
        now(&alive, "a", Mode::StopRinging).await,
        CancelResult::Pending
    );
    let attempt = alive.until_settled("a").await;
    assert!(lab.now().since(begun) < Duration::from_secs(2));
    assert_eq!(attempt.state, State::Canceled);
    let settled = attempt.settled.clone().unwrap();
    assert_eq!(settled.disposition, Disposition::Canceled);
    assert!(settled.call_started);
    assert_eq!(CancelResult::of(&attempt), CancelResult::Stopped);
    assert_eq!(status(&lab).as_deref(), Some("not_connected"));
    let next = alive.until("b", |b| b.placed.is_some()).await;
    let held = next.placed.unwrap().reserved_at.since(settled.at);
    let bounds = Duration::from_secs(10)..Duration::from_secs(13);
    assert!(bounds.contains(&held), "{held:?}");
    alive.until_settled("b").await;
    is_clean(&lab, &alive).await;
    for mode in MODES {
        let (again, after) = cancel(&alive, "a", mode).await.unwrap();
        assert_eq!((again, &after), (CancelResult::Already, &attempt));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_is_hung_up_only_by_the_mode_that_says_so() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Answered).await;
    sleep(Duration::from_secs(2)).await;
    for mode in [Mode::BeforeDial, Mode::StopRinging] {
        assert_eq!(now(&alive, "a", mode).await, CancelResult::TooLate);
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!(status(&lab).as_deref(), Some("active"));
    assert_eq!(now(&alive, "a", Mode::HangUp).await, CancelResult::Pending);
    let begun = lab.now();
    let attempt = alive.until_state("a", State::Ended).await;
    assert!(lab.now().since(begun) < Duration::from_secs(3));
    let settled = attempt.settled.clone().unwrap();
    assert_eq!(settled.end_cause, Some(EndCause::Canceled));
    assert_eq!(CancelResult::of(&attempt), CancelResult::HungUp);
    assert_eq!(status(&lab).as_deref(), Some("ended"));
    is_clean(&lab, &alive).await;
    assert_eq!(lab.rooms.causes(), ["canceled"]);
    assert_eq!(now(&alive, "a", Mode::HangUp).await, CancelResult::Already);
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_too_late() {
    for mode in MODES {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", BUSY)).await;
        let before = alive.until_settled("a").await;
        let (result, after) = cancel(&alive, "a", mode).await.unwrap();
        assert_eq!(result, CancelResult::TooLate);
        assert_eq!(before, after);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_carried_out_by_the_next_process() {
    // With a platform that answers, and with one that loses what asks who is there, or the
    // deletion.
    let lost = [None, Some("ListParticipants"), Some("DeleteRoom")];
    for (alone, lost) in [false, true]
        .map(|alone| lost.map(|lost| (alone, lost)))
        .concat()
    {
        let mut lab = Lab::new(1);
        lab.alone = alone;
        let alive = lab.node().await;
        alive.place(lab.call("a", RINGS)).await;
        sleep(Duration::from_secs(5)).await;
        let result = now(&alive, "a", Mode::StopRinging).await;
        assert_eq!(result, CancelResult::Pending);
        alive.kill().await;
        assert_eq!(status(&lab).as_deref(), Some("ringing"));
        if let Some(method) = lost {
            lab.fault(Fault::on("lose_request", method));
        }
        let alive = lab.node().await;
        let again = Duration::from_secs(if lost.is_some() { 8 } else { 0 });
        sleep(Duration::from_secs(2) + again).await;
        assert_eq!(status(&lab).as_deref(), Some("not_connected"));
        let attempt = alive.until_settled("a").await;
        // Whoever is surely dead waits for no answer: what the deletion met settles it.
        let result = if alone {
            CancelResult::Stopped
        } else {
            CancelResult::Pending
        };
        assert_eq!(CancelResult::of(&attempt), result);
        is_clean(&lab, &alive).await;
    }
}

/// Talks for twenty seconds after six of ringing, and the server's deadline is told instead.
const TOLD_TOO_LATE: &str = "+12025550197";

/// Somebody answers and talks, and the answer to the dial is late.
async fn talking_unknown(lab: &Lab, alive: &Alive) {
    lab.fault(Fault {
        millis: Some(12_000),
        ..Fault::on("slow", "CreateSIPParticipant")
    });
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Dialing).await;
    until_status(lab, "active").await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
}

async fn until_status(lab: &Lab, wanted: &str) {
    for _ in 0..6_000 {
        if status(lab).as_deref() == Some(wanted) {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("it stays {:?}", status(lab));
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_ringing_spares_who_talks_before_the_dial_is_answered() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    talking_unknown(&lab, &alive).await;
    let asked = now(&alive, "a", Mode::StopRinging).await;
    assert_eq!(asked, CancelResult::Pending);
    let attempt = alive.until("a", |a| a.state != State::Dialing).await;
    assert_eq!(attempt.state, State::Answered);
    assert_eq!(attempt.stop, None);
    assert_eq!(CancelResult::of(&attempt), CancelResult::TooLate);
    assert_eq!(status(&lab).as_deref(), Some("active"));
    let ended = alive.until_state("a", State::Ended).await;
    let cause = ended.settled.clone().unwrap().end_cause;
    assert_ne!(cause, Some(EndCause::Canceled));
    is_clean(&lab, &alive).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_hangs_up_reaches_who_talks_before_the_dial_is_answered() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    talking_unknown(&lab, &alive).await;
    // Told to stop the ringing only, and then to hang up.
    for mode in [Mode::StopRinging, Mode::HangUp] {
        let asked = now(&alive, "a", mode).await;
        assert_eq!(asked, CancelResult::Pending);
        sleep(Duration::from_secs(2)).await;
        let talks = mode == Mode::StopRinging;
        assert_eq!(status(&lab).as_deref() == Some("active"), talks, "{mode:?}");
    }
    let attempt = alive.until_state("a", State::Ended).await;
    assert_eq!(CancelResult::of(&attempt), CancelResult::HungUp);
    let history = attempt.history.iter();
    let stops = history.filter(|step| step.cause == Cause::StopRecorded);
    let stops: Vec<_> = stops.map(|step| step.evidence.as_str()).collect();
    let both = ["(stop-ringing) by test: test", "(hang-up) by test: test"];
    assert_eq!(stops, both, "{attempt:?}");
    is_clean(&lab, &alive).await;
}

/// The look that settles it reads the attempt first and the room after that, and the person
/// cancels in between or about then.
#[tokio::test(start_paused = true)]
async fn nobody_is_called_hung_up_before_a_deletion_has_met_them() {
    for moment in 0..12 {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        lab.fault(Fault::on("lose_reply", "CreateSIPParticipant"));
        lab.fault(Fault {
            millis: Some(400),
            times: Some(10_000),
            ..Fault::on("slow", "ListParticipants")
        });
        alive.place(lab.call("a", ANSWERS)).await;
        until_status(&lab, "active").await;
        let settles = alive.until_state("a", State::Answered);
        let known = tokio::time::timeout(Duration::from_millis(100 * moment), settles).await;
        let asked = now(&alive, "a", Mode::HangUp).await;
        assert_eq!(asked, CancelResult::Pending, "{known:?}");
        let attempt = alive.until_state("a", State::Ended).await;
        assert_eq!(CancelResult::of(&attempt), CancelResult::HungUp);
        assert_ne!(
            status(&lab).as_deref(),
            Some("active"),
            "at moment {moment}"
        );
        let asked = attempt.stop.clone().unwrap().at;
        let took = attempt.settled.clone().unwrap().at.since(asked);
        assert!(took < Duration::from_secs(5), "{took:?} at moment {moment}");
        is_clean(&lab, &alive).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_not_called_canceled_by_the_answer_of_a_dial_that_was_put_out() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", TOLD_TOO_LATE)).await;
    until_status(&lab, "active").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
    let asked = now(&alive, "a", Mode::HangUp).await;
    assert_eq!(asked, CancelResult::Pending);
    let attempt = alive.until("a", |a| a.state != State::Dialing).await;
    assert_eq!(attempt.state, State::Ended);
    assert_eq!(CancelResult::of(&attempt), CancelResult::HungUp);
    assert_eq!(
        attempt.settled.clone().unwrap().disposition,
        Disposition::Answered
    );
    is_clean(&lab, &alive).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_came_before_the_leg_spares_who_answers_and_ends_a_call_without_its_agent() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    // The leg joins after the room was deleted, and the deletion's answer is awaited for so
    // long that nobody looks while it rings.
    lab.fault(Fault {
        millis: Some(1_200),
        ..Fault::on("late", "CreateSIPParticipant")
    });
    lab.fault(Fault {
        millis: Some(6_000),
        ..Fault::on("slow", "DeleteRoom")
    });
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Dialing).await;
    let asked = now(&alive, "a", Mode::StopRinging).await;
    assert_eq!(asked, CancelResult::Pending);
    let attempt = alive.until_state("a", State::Ended).await;
    let settled = attempt.settled.clone().unwrap();
    // Its room was deleted with the agent in it: nobody would ever speak to them.
    assert_eq!(settled.end_cause, Some(EndCause::AgentLost));
    assert_eq!(CancelResult::of(&attempt), CancelResult::TooLate);
    let answer = attempt.placed.clone().unwrap().answer.unwrap();
    assert!(settled.at.since(answer.at) < Duration::from_secs(10));
    lab.until_no_rooms(Duration::from_secs(400)).await;
    // The room that the late join made has no metadata, by which the sandbox knows whose it is.
    let calls: u32 = lab.seen().sip_calls.iter().map(|call| call.count).sum();
    assert_eq!(calls, 1);
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn what_a_stop_met_outlives_the_lost_answer_of_its_dial() {
    for mode in [Mode::StopRinging, Mode::HangUp] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        lab.fault(Fault::on("lose_reply", "CreateSIPParticipant"));
        alive.place(lab.call("a", RINGS)).await;
        until_status(&lab, "ringing").await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(now(&alive, "a", mode).await, CancelResult::Pending);
        let attempt = alive.until("a", |a| a.state.settled()).await;
        assert_eq!(attempt.state, State::Canceled, "{attempt:?}");
        assert_eq!(CancelResult::of(&attempt), CancelResult::Stopped);
        is_clean(&lab, &alive).await;
    }
}
