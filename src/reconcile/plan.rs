//! What is to be done with an attempt whose time in a passing state is over: pure.
//!
//! What looks say of a call is planned beside this: [`super::uncertain`] and
//! [`super::answered`].

use std::time::Duration;

use crate::model::attempt::{Attempt, Passage, ReviewCause, State, StopWhy};
use crate::model::disposition::Disposition;
use crate::model::time::Time;
use crate::model::verdict::{After, Leg};
use crate::placement::stopping::Met;

/// What is to be done, and why: the reason is stored with what it settles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    pub step: Step,
    pub why: &'static str,
}

impl Planned {
    pub(super) const fn new(step: Step, why: &'static str) -> Self {
        Self { step, why }
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The state stays; it is looked at again in its turn.
    Keep,
    /// The state stays; it is looked at again after this.
    Again(Duration),
    /// One more question before anything is decided.
    Ask(Question),
    /// The callee answered and talks: ANSWERED.
    Adopt(Leg),
    /// The callee answered, and that is over: ENDED.
    WasAnswered(Leg),
    /// An answered call is over, and this ended it.
    Over(Ending),
    /// It ended without an answer.
    NotConnected(Disposition, After),
    /// A person must settle it.
    Review(ReviewCause),
    /// Nobody could: it is closed without an answer.
    Unresolved,
    /// A stop is to be recorded.
    RecordStop(StopWhy),
    /// The recorded stop is carried out: the room is deleted.
    DeleteRoom(Met),
}

/// What ended an answered call, as looks tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The room is gone.
    RoomGone,
    /// The callee's leg is gone, while the agent is still there.
    CalleeGone,
}

/// A question to the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Is the trunk that the dial used still listed?
    Trunk,
    /// Does the room live on a node?
    Lives,
}

/// What is due, before any look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Nothing now; the lease brings it back.
    Wait,
    /// The caller kept it too long.
    Expire,
    /// Its owner is gone before the marker: a failed try.
    Abandon,
    /// Its owner is gone, or silent beyond the window: uncertain.
    LoseSight,
    /// An answered call lasts longer than it may.
    Maximum,
    /// The platform is to be looked at.
    Look,
}

/// What is to be done before any look. `grace` is how long an answered call may overrun its
/// longest duration, since the platform ends it by itself.
pub(super) fn overdue(attempt: &Attempt, now: Time, grace: Duration) -> Overdue {
    let due = attempt.due().is_some_and(|due| due <= now);
    match attempt.state {
        _ if !due => Overdue::Wait,
        State::Deferred => Overdue::Expire,
        State::Reserved => Overdue::Abandon,
        State::Dialing if attempt.passage(now) == Passage::InFlight => Overdue::Wait,
        State::Dialing => Overdue::LoseSight,
        State::Answered if overran(attempt, now, grace) => Overdue::Maximum,
        State::Answered | State::Uncertain | State::NeedsReview => Overdue::Look,
        State::Queued
        | State::Refused
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => Overdue::Wait,
    }
}

fn overran(attempt: &Attempt, now: Time, grace: Duration) -> bool {
    let answered = attempt.placed.as_ref().and_then(|p| p.answer.as_ref());
    answered.is_some_and(|a| now >= a.at.plus(attempt.spec.max_call()).plus(grace))
}
