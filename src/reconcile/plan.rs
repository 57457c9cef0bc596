//! What a look means: pure.

use std::time::Duration;

use crate::ledger::record::{Room, RoomState};
use crate::model::attempt::{Attempt, EndCause, Mode, State, StopWhy};
use crate::model::time::Time;

/// What a look at an attempt's room showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It is listed. Its record may be stale, so this proves nothing.
    Listed,
    /// It is not listed, and no node answers for it.
    Gone,
    /// It is not listed, and lives on a node: the platform lost its records.
    Living,
    /// The platform did not say.
    Unknown,
}

/// What is to be done with an attempt that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing now; the lease brings it back.
    Wait,
    /// The caller kept it too long.
    Expire,
    /// Its owner is gone before the marker: a failed try.
    Abandon,
    /// Its owner is gone, or silent beyond the window: uncertain.
    LoseSight,
    /// Ask the platform whether its room is there.
    LookAtRoom,
    /// A stop is recorded: delete the room, then go on.
    CarryOutStop,
    /// It had been answered and is over; the room is gone or is to go.
    End(EndCause),
    /// The room is gone; the state stays, until evidence settles it.
    RoomFinished,
    /// Look again then.
    PutOff(Time),
}

/// What is to be done before any look. `grace` is how long an answered call may overrun its
/// longest duration, since the platform ends it by itself.
pub(super) fn before_look(attempt: &Attempt, now: Time, grace: Duration) -> Step {
    let due = attempt.due().is_some_and(|due| due <= now);
    match attempt.state {
        _ if !due => Step::Wait,
        State::Deferred => Step::Expire,
        State::Reserved => Step::Abandon,
        State::Dialing => Step::LoseSight,
        State::Answered if overran(attempt, now, grace) => Step::End(EndCause::Maximum),
        State::Answered | State::Uncertain | State::NeedsReview if stops(attempt) => {
            Step::CarryOutStop
        }
        State::Answered | State::Uncertain | State::NeedsReview => Step::LookAtRoom,
        State::Queued
        | State::Refused
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => Step::Wait,
    }
}

fn overran(attempt: &Attempt, now: Time, grace: Duration) -> bool {
    let answered = attempt.placed.as_ref().and_then(|p| p.answer.as_ref());
    answered.is_some_and(|a| now >= a.at.plus(attempt.spec.max_call()).plus(grace))
}

/// Whether a stop is to be carried out: a cancel that does not hang up leaves what was
/// answered alone.
fn stops(attempt: &Attempt) -> bool {
    match &attempt.stop {
        None => false,
        Some(stop) => match stop.why {
            StopWhy::AgentLost | StopWhy::Maximum => true,
            StopWhy::Cancel => {
                attempt.state != State::Answered
                    || attempt
                        .cancel
                        .as_ref()
                        .is_some_and(|c| c.mode == Mode::HangUp)
            }
        },
    }
}

/// How often what is uncertain is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Every {
    /// While its room lives.
    pub living: Duration,
    /// Once it is gone.
    pub finished: Duration,
}

/// What a look at the room means. Neither silence nor a listed record is evidence.
pub(super) fn after_look(
    attempt: &Attempt,
    room: Option<&Room>,
    look: Look,
    now: Time,
    every: Every,
) -> Step {
    match (attempt.state, look) {
        (State::Answered, Look::Gone) => Step::End(EndCause::RoomGone),
        (State::Uncertain | State::NeedsReview, Look::Gone)
            if room.is_some_and(|r| r.state == RoomState::Created) =>
        {
            Step::RoomFinished
        }
        // While its room lives, the room's end is news.
        (State::Uncertain | State::NeedsReview, Look::Listed | Look::Living) => {
            Step::PutOff(now.plus(every.living))
        }
        (State::Uncertain | State::NeedsReview, Look::Gone) => {
            Step::PutOff(now.plus(every.finished))
        }
        (State::Answered, Look::Listed | Look::Living)
        | (State::Answered | State::Uncertain | State::NeedsReview, Look::Unknown)
        | (
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Canceled,
            Look::Gone | Look::Listed | Look::Living | Look::Unknown,
        ) => Step::Wait,
    }
}
