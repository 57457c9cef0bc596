//! Each line of what a look means, one after the other.

use std::time::Duration;

use super::super::sample::{NOW, attempt, leg, present, seen, stopped, watched};
use super::*;
use crate::model::attempt::Mode;
use crate::model::observation::LeftReason;

const HOLD: Duration = Duration::from_hours(24);

/// What is planned of an uncertain attempt, with answers to what is asked.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a look is made for one question, and reads best in place"
)]
fn of(attempt: &Attempt, call: &Call, sight: Sight, watched: &Watched) -> Step {
    at(attempt, call, &sight, watched, NOW)
}

fn at(attempt: &Attempt, call: &Call, sight: &Sight, watched: &Watched, now: Time) -> Step {
    let view = View {
        attempt,
        call,
        sight,
        watched,
        agent_grace: Duration::from_secs(1),
        review_hold: HOLD,
    };
    plan(&view, now).step
}

fn uncertain() -> Attempt {
    attempt(State::Uncertain)
}

fn nothing() -> Call {
    Call::default()
}

/// Not listed, and the dial's trunk still is.
fn absent() -> Sight {
    Sight {
        trunk: Some(true),
        ..Sight::of_no_room()
    }
}

#[test]
fn what_is_listed_as_answered_is_adopted_and_what_rings_is_waited_for() {
    use CallStatus::{Active, Automation, Dialing, Hangup, Ringing};
    for status in [Active, Automation, Hangup] {
        let step = of(&uncertain(), &nothing(), present(status), &watched(false));
        assert_eq!(step, Step::Adopt(leg()));
    }
    for status in [Dialing, Ringing] {
        let step = of(&uncertain(), &nothing(), present(status), &watched(false));
        assert_eq!(step, Step::Keep);
    }
}

#[test]
fn presence_after_the_horizon_counts_only_where_a_node_answers() {
    for status in [CallStatus::Dialing, CallStatus::Ringing, CallStatus::Active] {
        let mut sight = present(status);
        let ask = of(&uncertain(), &nothing(), sight.clone(), &watched(true));
        assert_eq!(ask, Step::Ask(Question::Lives));
        sight.lives = Some(true);
        let lives = of(&uncertain(), &nothing(), sight.clone(), &watched(true));
        assert_eq!(lives, Step::Adopt(leg()));
        // A record that a crash left proves nothing by itself.
        sight.lives = Some(false);
        let stale = of(&uncertain(), &nothing(), sight, &watched(true));
        assert_eq!(stale, Step::Review(ReviewCause::StaleRecord));
    }
}

#[test]
fn absence_before_the_horizon_decides_nothing() {
    for call in [
        nothing(),
        seen(CallStatus::Ringing, Some(LeftReason::UserUnavailable)),
        seen(CallStatus::Active, Some(LeftReason::ClientInitiated)),
    ] {
        let step = of(&uncertain(), &call, absent(), &watched(false));
        assert_eq!(step, Step::Keep);
    }
}

#[test]
fn an_absence_counts_by_the_trunk_or_by_the_node() {
    let mut sight = Sight::of_no_room();
    let mut step = |trunk, lives| {
        (sight.trunk, sight.lives) = (trunk, lives);
        of(&uncertain(), &nothing(), sight.clone(), &watched(true))
    };
    let no_trace = Step::NotConnected(Disposition::NoTrace, After::Over);
    assert_eq!(step(None, None), Step::Ask(Question::Trunk));
    assert_eq!(step(Some(true), None), no_trace);
    assert_eq!(step(Some(false), None), Step::Ask(Question::Lives));
    // Nothing lives; but what was there before the records were lost, no look could see.
    let silent = Step::Review(ReviewCause::PlatformSilent);
    assert_eq!(step(Some(false), Some(false)), silent);
    // The platform lost its records while the phone may ring.
    assert_eq!(step(Some(false), Some(true)), Step::Keep);
}

#[test]
fn events_say_how_it_ended_once_nothing_of_it_is_left() {
    use CallStatus::{Active, Dialing, Hangup, Ringing};
    use LeftReason::{
        ClientInitiated, ConnectionTimeout, ParticipantRemoved, RoomDeleted, UserRejected,
        UserUnavailable,
    };
    let after = |status, left| {
        of(
            &uncertain(),
            &seen(status, Some(left)),
            absent(),
            &watched(true),
        )
    };
    assert_eq!(after(Hangup, ClientInitiated), Step::WasAnswered(leg()));
    assert_eq!(after(Active, RoomDeleted), Step::WasAnswered(leg()));
    let ended = |disposition, after| Step::NotConnected(disposition, after);
    let unreached = ended(Disposition::Unreached, After::Silent);
    assert_eq!(after(Ringing, UserUnavailable), unreached);
    let rejected = ended(Disposition::Rejected, After::Over);
    assert_eq!(after(Ringing, UserRejected), rejected);
    let stopped = ended(Disposition::StoppedOnPlatform, After::Silent);
    assert_eq!(after(Ringing, RoomDeleted), stopped);
    assert_eq!(after(Ringing, ParticipantRemoved), stopped);
    // A carrier's failure or a killed bridge: nobody knows.
    let unknown = Step::Review(ReviewCause::SeenThenGone);
    assert_eq!(after(Dialing, ClientInitiated), unknown);
    assert_eq!(after(Ringing, ConnectionTimeout), unknown);
}

#[test]
fn no_trace_needs_looks_from_the_dial_to_the_horizon_without_a_gap() {
    let of = |watched: &Watched| of(&uncertain(), &nothing(), absent(), watched);
    let whole = watched(true);
    let no_trace = Step::NotConnected(Disposition::NoTrace, After::Over);
    assert_eq!(of(&whole), no_trace);
    let with = |change: fn(&mut Watched)| {
        let mut watched = whole.clone();
        change(&mut watched);
        of(&watched)
    };
    let late = with(|w| w.early = false);
    assert_eq!(late, Step::Review(ReviewCause::LookedLate));
    let gaps = with(|w| w.gapless = false);
    assert_eq!(gaps, Step::Review(ReviewCause::LookedWithGaps));
    let seen = with(|w| w.seen = true);
    assert_eq!(seen, Step::Review(ReviewCause::SeenThenGone));
}

#[test]
fn an_agent_that_left_while_it_rings_stops_it() {
    let mut watched = watched(false);
    let sight = present(CallStatus::Ringing);
    watched.agent_missing = Some(Duration::ZERO);
    let first = of(&uncertain(), &nothing(), sight.clone(), &watched);
    assert_eq!(first, Step::Keep, "a platform that restarts lists it again");
    watched.agent_missing = Some(Duration::from_secs(2));
    let again = of(&uncertain(), &nothing(), sight, &watched);
    assert_eq!(again, Step::RecordStop(StopWhy::AgentLost));
}

#[test]
fn a_stop_deletes_what_rings_and_hangs_up_only_if_it_says_so() {
    let ringing = stopped(State::Uncertain, Mode::StopRinging);
    let hang_up = stopped(State::Uncertain, Mode::HangUp);
    let early = watched(false);
    for attempt in [&ringing, &hang_up] {
        let step = of(attempt, &nothing(), present(CallStatus::Ringing), &early);
        assert_eq!(step, Step::DeleteRoom(Met::Ringing { listed: true }));
    }
    let talks = || present(CallStatus::Active);
    assert_eq!(
        of(&ringing, &nothing(), talks(), &early),
        Step::Adopt(leg())
    );
    let ended = Step::DeleteRoom(Met::Talking(leg()));
    assert_eq!(of(&hang_up, &nothing(), talks(), &early), ended);
    // What may still join must not ring.
    let mut agent_alone = present(CallStatus::Ringing);
    agent_alone.callee = Callee::Absent;
    let step = of(&ringing, &nothing(), agent_alone, &early);
    assert_eq!(step, Step::DeleteRoom(Met::Nobody));
}

#[test]
fn a_stop_that_is_over_is_canceled_only_if_nobody_can_have_answered() {
    let canceled = Step::NotConnected(Disposition::Canceled, After::Silent);
    let mut attempt = stopped(State::Uncertain, Mode::StopRinging);
    let whole = watched(true);
    assert_eq!(of(&attempt, &nothing(), absent(), &whole), canceled);
    let mut late = whole;
    late.early = false;
    let unknown = of(&attempt, &nothing(), absent(), &late);
    assert_eq!(unknown, Step::Review(ReviewCause::Stopped));
    if let Some(stop) = &mut attempt.stop {
        stop.met_ringing = Some(NOW);
    }
    assert_eq!(of(&attempt, &nothing(), absent(), &late), canceled);
    let answered = seen(CallStatus::Active, Some(LeftReason::RoomDeleted));
    let step = of(&attempt, &answered, absent(), &late);
    assert_eq!(step, Step::WasAnswered(leg()));
}

#[test]
fn a_review_waits_its_time_and_is_settled_by_evidence_that_comes_late() {
    let attempt = attempt(State::NeedsReview);
    let late = seen(CallStatus::Ringing, Some(LeftReason::UserUnavailable));
    let mut first_look = watched(true);
    first_look.early = false;
    let step = of(&attempt, &late, absent(), &first_look);
    let unreached = Step::NotConnected(Disposition::Unreached, After::Silent);
    assert_eq!(step, unreached);
    let before = NOW.plus(HOLD).minus(Duration::from_secs(1));
    let waits = at(&attempt, &nothing(), &absent(), &first_look, before);
    assert_eq!(waits, Step::Keep);
    let over = at(&attempt, &nothing(), &absent(), &first_look, NOW.plus(HOLD));
    assert_eq!(over, Step::Unresolved);
}

#[test]
fn a_platform_that_does_not_answer_is_waited_for_until_a_person_is_asked() {
    let (attempt, call, sight) = (uncertain(), nothing(), Sight::of_no_room());
    let of = |watched: &Watched| {
        let view = View {
            attempt: &attempt,
            call: &call,
            sight: &sight,
            watched,
            agent_grace: Duration::from_secs(1),
            review_hold: HOLD,
        };
        unanswered(&view, NOW).step
    };
    let mut watched = watched(true);
    assert_eq!(of(&watched), Step::Keep);
    watched.overdue = true;
    assert_eq!(of(&watched), Step::Review(ReviewCause::PlatformSilent));
}

#[test]
fn looking_alone_never_says_that_nothing_was_dialed() {
    for past in [false, true] {
        for call in [nothing(), seen(CallStatus::Dialing, None)] {
            for sight in [absent(), present(CallStatus::Dialing)] {
                match of(&uncertain(), &call, sight, &watched(past)) {
                    Step::NotConnected(disposition, _) => {
                        assert_ne!(disposition, Disposition::NotDialed);
                    }
                    Step::Keep
                    | Step::Again(_)
                    | Step::Ask(_)
                    | Step::Adopt(_)
                    | Step::WasAnswered(_)
                    | Step::Over(_)
                    | Step::Review(_)
                    | Step::Unresolved
                    | Step::RecordStop(_)
                    | Step::DeleteRoom(_) => {}
                }
            }
        }
    }
}
