//! What a look says of an attempt whose dial's outcome is not known: pure, line by line as
//! the design has it. Silence is never proof, a listed record is not the room, and nothing
//! here says that nothing was dialed.
//!
//! # Which question comes first
//!
//! An absence counts unless the platform lost its records while the room lives on. So it
//! counts if no node answers for the room, *or* if the trunk that the dial used is still
//! listed: that record is in the same store, and its id never comes back once it is lost.
//! Where the trunk is listed, the node's answer changes nothing; so the trunk is asked
//! first. One request answers for every attempt of that trunk, while a node that does not
//! answer costs seconds for each room: ten thousand absences settle within a minute.

use super::plan::{Planned, Question, Step};
use super::sight::{Callee, Sight, answered};
use super::watched::Watched;
use crate::model::attempt::{Attempt, Gate, Placed, ReviewCause, State, StopWhy};
use crate::model::disposition::Disposition;
use crate::model::evidence::{self, Asked, Evidence, Unconnected};
use crate::model::observation::{Call, CallStatus};
use crate::model::time::Time;
use crate::model::verdict::{After, Leg};
use crate::placement::stopping::Met;

/// What is known when a decision is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub attempt: &'a Attempt,
    /// What webhooks and looks have shown.
    pub call: &'a Call,
    /// What this look showed.
    pub sight: &'a Sight,
    pub watched: &'a Watched,
    /// For how long an agent may be missing while the phone rings: one more look.
    pub agent_grace: std::time::Duration,
    /// For how long a review waits for a person.
    pub review_hold: std::time::Duration,
}

/// What is to be done with an attempt in `UNCERTAIN` or `NEEDS_REVIEW`.
pub(super) fn plan(view: &View<'_>, now: Time) -> Planned {
    let past = view.watched.past_horizon;
    match &view.sight.callee {
        Callee::Present { leg, status } if !past => present(view, leg, *status),
        // At any status: what is alive when nothing can start any more was answered, since no
        // ringing lasts that long.
        Callee::Present { leg, status } => match view.sight.lives {
            None => ask(Question::Lives),
            Some(true) => present_late(view, leg, *status),
            Some(false) => gone(view, now, true),
        },
        Callee::Absent if !past && !view.watched.long_past => absent_early(view),
        Callee::Absent => match (view.sight.trunk, view.sight.lives) {
            (None, _) => ask(Question::Trunk),
            (Some(true), _) | (Some(false), Some(false)) => gone(view, now, false),
            (Some(false), None) => ask(Question::Lives),
            (Some(false), Some(true)) => silent(
                view,
                now,
                "the platform lost its records, and the room lives: absence proves nothing",
            ),
        },
    }
}

/// What is to be done when the platform did not answer a look.
pub(super) fn unanswered(view: &View<'_>, now: Time) -> Planned {
    silent(view, now, "the platform did not answer")
}

const fn ask(question: Question) -> Planned {
    Planned::new(Step::Ask(question), "one more answer decides")
}

/// Listed before the horizon.
fn present(view: &View<'_>, leg: &Leg, status: Option<CallStatus>) -> Planned {
    if view.attempt.stop.is_some() {
        return stopped(view, leg, status);
    }
    if answered(status) {
        return Planned::new(
            Step::Adopt(leg.clone()),
            "the callee's leg is listed as answered",
        );
    }
    let missing = view.watched.agent_missing;
    if view.attempt.spec.agent.gate == Gate::Joined
        && missing.is_some_and(|missing| missing >= view.agent_grace)
    {
        return Planned::new(
            Step::RecordStop(StopWhy::AgentLost),
            "the agent left while the phone rings: whoever answers would hear nobody",
        );
    }
    Planned::new(Step::Keep, "it is dialed or rings")
}

/// Listed after the horizon, and the room lives.
fn present_late(view: &View<'_>, leg: &Leg, status: Option<CallStatus>) -> Planned {
    if view.attempt.hangs_up() {
        return Planned::new(
            Step::DeleteRoom(Met::Talking(leg.clone())),
            "a recorded stop hangs up",
        );
    }
    let why = if answered(status) {
        "the callee's leg is listed as answered, and a node answers for the room"
    } else {
        "the callee's leg is there after the horizon, and a node answers for the room"
    };
    Planned::new(Step::Adopt(leg.clone()), why)
}

/// Listed, and a stop is recorded.
fn stopped(view: &View<'_>, leg: &Leg, status: Option<CallStatus>) -> Planned {
    if !answered(status) {
        return Planned::new(
            Step::DeleteRoom(Met::Ringing {
                listed: status == Some(CallStatus::Ringing),
            }),
            "a recorded stop: it is dialed or rings",
        );
    }
    if view.attempt.hangs_up() {
        return Planned::new(
            Step::DeleteRoom(Met::Talking(leg.clone())),
            "a recorded stop hangs up",
        );
    }
    Planned::new(
        Step::Adopt(leg.clone()),
        "the callee's leg is listed as answered, and the stop reaches ringing alone",
    )
}

/// Not listed before the horizon: it may still come, also into a deleted room.
fn absent_early(view: &View<'_>) -> Planned {
    if view.attempt.stop.is_some() && view.sight.room.is_some() {
        return Planned::new(
            Step::DeleteRoom(Met::Nobody),
            "a recorded stop: what may still join must not ring",
        );
    }
    Planned::new(Step::Keep, "it may still start")
}

/// Nothing of it lives after the horizon; `stale`: its record is listed all the same.
fn gone(view: &View<'_>, now: Time, stale: bool) -> Planned {
    match evidence::read(view.call, &asked(view)) {
        Evidence::Answered { leg, .. } | Evidence::Ended { leg, .. } => {
            return Planned::new(
                Step::WasAnswered(leg),
                "it was seen answered, and nothing of it is left",
            );
        }
        Evidence::NotConnected { how, .. } => {
            let (disposition, after) = unconnected(how);
            return Planned::new(
                Step::NotConnected(disposition, after),
                "an event told how it ended, and nothing of it is left",
            );
        }
        Evidence::Nothing => {}
    }
    let watched = view.watched;
    let seen = watched.seen || view.call.callees().next().is_some();
    if let Some(leg) = view
        .attempt
        .stop
        .as_ref()
        .and_then(|s| s.met_talking.clone())
    {
        return Planned::new(
            Step::WasAnswered(leg),
            "a recorded stop hung up on whoever had answered",
        );
    }
    if let Some(stop) = &view.attempt.stop {
        // The deletion met it while it rang, or nobody ever answered while it was looked at
        // all the time.
        return if stop.met_ringing.is_some() || watched.complete() {
            stopped_ringing()
        } else {
            review(view, now, ReviewCause::Stopped)
        };
    }
    // A platform that lost its records in between had shown nothing: the trunk, whose id never
    // comes back, vouches for every look since the dial.
    let vouched = view.sight.trunk == Some(true);
    if !stale && !seen && watched.complete() && vouched {
        return Planned::new(
            Step::NotConnected(Disposition::NoTrace, After::Over),
            "it was looked for from the dial to the horizon and never seen",
        );
    }
    let cause = if stale {
        ReviewCause::StaleRecord
    } else if seen {
        ReviewCause::SeenThenGone
    } else if watched.complete() {
        ReviewCause::PlatformSilent
    } else if watched.early {
        ReviewCause::LookedWithGaps
    } else {
        ReviewCause::LookedLate
    };
    review(view, now, cause)
}

/// A recorded stop ended it before an answer.
pub(super) const fn stopped_ringing() -> Planned {
    Planned::new(
        Step::NotConnected(Disposition::Canceled, After::Silent),
        "a recorded stop ended it before it was answered",
    )
}

/// The platform does not say. That may pass, but nobody waits for ever.
fn silent(view: &View<'_>, now: Time, why: &'static str) -> Planned {
    match view.attempt.state {
        State::Uncertain if view.watched.overdue => {
            Planned::new(Step::Review(ReviewCause::PlatformSilent), why)
        }
        State::NeedsReview => review(view, now, ReviewCause::PlatformSilent),
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::Canceled => Planned::new(Step::Keep, why),
    }
}

/// A person must settle it; one that nobody settled in time is closed.
fn review(view: &View<'_>, now: Time, cause: ReviewCause) -> Planned {
    if view.attempt.state != State::NeedsReview {
        return Planned::new(Step::Review(cause), cause.explain());
    }
    if now >= view.attempt.since.plus(view.review_hold) {
        return Planned::new(
            Step::Unresolved,
            "nobody settled it in the time that a review has",
        );
    }
    Planned::new(Step::Keep, "it waits for a person")
}

/// The horizon is past by our own clock, whatever the wall clock says.
fn asked(view: &View<'_>) -> Asked {
    let horizon = view.attempt.placed.as_ref().and_then(Placed::horizon);
    Asked {
        now: horizon.unwrap_or(Time::ZERO),
        horizon,
        pending: false,
        deleted_by_us: view.attempt.stop.is_some(),
    }
}

/// How it is called, and how surely it is over.
pub(super) const fn unconnected(how: Unconnected) -> (Disposition, After) {
    match how {
        // It rang out and was canceled, or the carrier was silent: which is not known.
        Unconnected::Unreached => (Disposition::Unreached, After::Silent),
        Unconnected::Rejected => (Disposition::Rejected, After::Over),
        // That the room went says nothing of the bridge, whose answer is missing: one that was
        // killed before sent no CANCEL, and the phone rings on.
        Unconnected::StoppedByUs => (Disposition::Canceled, After::Silent),
        Unconnected::StoppedOnPlatform => (Disposition::StoppedOnPlatform, After::Silent),
    }
}

#[cfg(test)]
mod tests;
