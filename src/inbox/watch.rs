//! What an operator must hear of: agents that came late, twice, or went, and legs that we did
//! not dial. Each is said once, when the observation that shows it is new.

use super::apply::Merged;
use super::{Counted, Counts};
use crate::model::attempt::{Attempt, Passage, State};
use crate::model::observation::Call;
use crate::model::time::Time;

/// Says what is new in `merged`.
pub(super) fn look(merged: &Merged, counts: &Counts, now: Time) {
    let (before, after) = (&merged.before, &merged.record.seen);
    if before == after {
        return;
    }
    foreign_legs(merged, counts);
    let Some(attempt) = &merged.attempt else {
        return;
    };
    before_reply(attempt, (before, after), counts, now);
    if before.agents_in().count() < 2 && after.agents_in().count() >= 2 {
        counts.add(Counted::SecondAgents);
        tracing::error!(
            event = "agent.second",
            workspace = %attempt.workspace,
            attempt = %attempt.id,
            "two agents are in one room: the callee hears both"
        );
    }
    late(attempt, before, after, counts);
    if under_way(attempt) && lost(before, after) {
        counts.add(Counted::LostAgents);
        tracing::warn!(
            event = "agent.lost",
            workspace = %attempt.workspace,
            attempt = %attempt.id,
            state = attempt.state.name(),
            "the agent left while a call was under way"
        );
    }
}

/// Whether the last agent left and the callee's leg is still there.
pub(super) fn lost(before: &Call, after: &Call) -> bool {
    let leg_is_there = after.leg().is_some_and(|(_, leg)| !after.is_over(leg));
    leg_is_there && before.agents_in().next().is_some() && after.agents_in().next().is_none()
}

/// Whether somebody should look at the platform now: a call goes on without its agent, what
/// is open learned something, or a leg lives whose attempt is closed.
pub(super) fn wants_a_look(merged: &Merged) -> bool {
    let (before, after) = (&merged.before, &merged.record.seen);
    let Some(attempt) = merged.attempt.as_ref().filter(|_| before != after) else {
        return false;
    };
    match attempt.state {
        State::Dialing | State::Answered => lost(before, after),
        State::Uncertain | State::NeedsReview => true,
        State::Ended | State::NotConnected | State::NotDialed | State::Canceled => {
            after.leg().is_some_and(|(_, leg)| !after.is_over(leg))
        }
        State::Queued | State::Deferred | State::Refused | State::Reserved => false,
    }
}

fn under_way(attempt: &Attempt) -> bool {
    match attempt.state {
        State::Dialing | State::Answered | State::Uncertain | State::NeedsReview => true,
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => false,
    }
}

fn foreign_legs(merged: &Merged, counts: &Counts) {
    let (before, record) = (&merged.before, &merged.record);
    for (sid, _) in record.seen.foreign() {
        if before.legs.contains_key(sid) {
            continue;
        }
        counts.add(Counted::ForeignLegs);
        // Its identity may be a number, so the sid alone is said.
        tracing::error!(
            event = "call.foreign_leg",
            workspace = %record.workspace,
            attempt = %record.attempt,
            session = %record.session,
            participant = sid,
            "a SIP leg that we did not dial is in a room of ours: somebody else dials there"
        );
    }
}

/// An event that says how the dial went, before the dial's own answer did.
fn before_reply(attempt: &Attempt, (before, after): (&Call, &Call), counts: &Counts, now: Time) {
    let says = |call: &Call| call.answered().is_some() || call.ended().is_some();
    let awaited = attempt.state == State::Dialing && attempt.passage(now) == Passage::InFlight;
    if awaited && says(after) && !says(before) {
        counts.add(Counted::BeforeReply);
        tracing::debug!(
            event = "webhook.before_reply",
            workspace = %attempt.workspace,
            attempt = %attempt.id,
            "a webhook told how a dial went before its answer did"
        );
    }
}

/// The first agent joined after the answer: somebody has listened into silence. The two
/// moments are of two clocks, which differ by less than `livekit.clock_skew_max`.
fn late(attempt: &Attempt, before: &Call, after: &Call, counts: &Counts) {
    let placed = attempt.placed.as_ref();
    let Some(answered) = placed.and_then(|placed| placed.answer.as_ref()) else {
        return;
    };
    let first = after.agents.values().filter_map(|agent| agent.joined).min();
    let known = before
        .agents
        .values()
        .filter_map(|agent| agent.joined)
        .min();
    let Some(first) = first.filter(|first| *first > answered.at && known.is_none()) else {
        return;
    };
    counts.add(Counted::LateAgents);
    tracing::warn!(
        event = "agent.late",
        workspace = %attempt.workspace,
        attempt = %attempt.id,
        seconds = first.since(answered.at).as_secs_f64(),
        "answered into silence: the agent joined after the answer"
    );
}
