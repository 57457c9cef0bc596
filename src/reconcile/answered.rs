//! What a look says of an answered call: pure. The fallback for an end that nobody told,
//! and for an agent that went away.

use std::time::Duration;

use super::plan::{Ending, Planned, Question, Step};
use super::sight::{Callee, Sight};
use super::watched::Watched;
use crate::model::attempt::{Attempt, StopWhy};
use crate::placement::stopping::Met;

/// What is known when a decision is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub attempt: &'a Attempt,
    pub sight: &'a Sight,
    pub watched: &'a Watched,
    /// How long an answered call goes on without its agent.
    pub agent_grace: Duration,
    /// How long the leg must be missing: a platform that restarts lists it again soon.
    pub confirm: Duration,
    /// How long no node must answer for a room that is listed: a node that cannot be reached
    /// for a moment goes on with its calls.
    pub node_grace: Duration,
}

/// What is to be done with an attempt in ANSWERED.
pub(super) fn plan(view: &View<'_>) -> Planned {
    match &view.sight.callee {
        Callee::Present { leg, .. } if view.attempt.hangs_up() => Planned::new(
            Step::DeleteRoom(Met::Talking(leg.clone())),
            "a recorded stop hangs up",
        ),
        Callee::Absent if view.attempt.hangs_up() && view.sight.room.is_some() => Planned::new(
            Step::DeleteRoom(Met::Nobody),
            "a recorded stop, and the platform lists no leg",
        ),
        Callee::Present { .. } => present(view),
        Callee::Absent => absent(view),
    }
}

fn present(view: &View<'_>) -> Planned {
    match view.watched.agent_missing {
        None => living(view),
        Some(missing) if missing < view.agent_grace => Planned::new(
            Step::Again(view.agent_grace.saturating_sub(missing)),
            "the agent is gone: it may come back",
        ),
        Some(_) => Planned::new(
            Step::RecordStop(StopWhy::AgentLost),
            "the agent is gone and did not come back",
        ),
    }
}

/// Everybody is listed; a platform that was killed as a whole lists them for ever.
fn living(view: &View<'_>) -> Planned {
    let silent = view.watched.node_silent.unwrap_or_default();
    match view.sight.lives {
        None => Planned::new(Step::Ask(Question::Lives), "one more answer decides"),
        Some(true) => Planned::new(Step::Keep, "somebody talks"),
        Some(false) if silent < view.node_grace => Planned::new(
            Step::Again(view.node_grace.saturating_sub(silent)),
            "no node answers for the room: once more",
        ),
        Some(false) => Planned::new(
            Step::Over(Ending::RoomGone),
            "the leg is listed, and no node answers for the room: a stale record",
        ),
    }
}

fn absent(view: &View<'_>) -> Planned {
    let missing = view.watched.callee_missing.unwrap_or_default();
    if missing < view.confirm {
        return Planned::new(
            Step::Again(view.confirm.saturating_sub(missing)),
            "the leg is not listed: once more",
        );
    }
    let over = if view.sight.room.is_some() {
        Planned::new(
            Step::Over(Ending::CalleeGone),
            "the callee's leg is gone from the room",
        )
    } else {
        Planned::new(Step::Over(Ending::RoomGone), "the room is gone")
    };
    match (view.sight.trunk, view.sight.lives) {
        (None, _) => Planned::new(Step::Ask(Question::Trunk), "one more answer decides"),
        (Some(true), _) | (Some(false), Some(false)) => over,
        (Some(false), None) => Planned::new(Step::Ask(Question::Lives), "one more answer decides"),
        (Some(false), Some(true)) => Planned::new(
            Step::Keep,
            "the platform lost its records, and the room lives: absence proves nothing",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{attempt, leg, present, stopped, watched};
    use super::*;
    use crate::model::attempt::{Mode, State};
    use crate::model::observation::CallStatus;

    const SECOND: Duration = Duration::from_secs(1);

    fn of(attempt: &Attempt, sight: &Sight, watched: &Watched) -> Step {
        plan(&View {
            attempt,
            sight,
            watched,
            agent_grace: 10 * SECOND,
            confirm: 5 * SECOND,
            node_grace: 30 * SECOND,
        })
        .step
    }

    #[test]
    fn a_leg_that_is_gone_is_looked_for_twice_and_then_it_is_over() {
        let attempt = attempt(State::Answered);
        let mut watched = watched(false);
        let mut sight = Sight::of_no_room();
        watched.callee_missing = Some(Duration::ZERO);
        assert_eq!(of(&attempt, &sight, &watched), Step::Again(5 * SECOND));
        watched.callee_missing = Some(5 * SECOND);
        assert_eq!(of(&attempt, &sight, &watched), Step::Ask(Question::Trunk));
        sight.trunk = Some(true);
        assert_eq!(of(&attempt, &sight, &watched), Step::Over(Ending::RoomGone));
        sight.room = Some("RM_1".to_owned());
        let left = of(&attempt, &sight, &watched);
        assert_eq!(
            left,
            Step::Over(Ending::CalleeGone),
            "the agent is still there"
        );
        // The platform lost its records: only the node knows.
        sight.trunk = Some(false);
        assert_eq!(of(&attempt, &sight, &watched), Step::Ask(Question::Lives));
        sight.lives = Some(true);
        assert_eq!(of(&attempt, &sight, &watched), Step::Keep);
        sight.lives = Some(false);
        assert_eq!(
            of(&attempt, &sight, &watched),
            Step::Over(Ending::CalleeGone)
        );
    }

    #[test]
    fn a_leg_that_is_listed_is_over_once_no_node_answers_for_its_room() {
        let attempt = attempt(State::Answered);
        let mut watched = watched(false);
        let mut sight = present(CallStatus::Active);
        assert_eq!(of(&attempt, &sight, &watched), Step::Ask(Question::Lives));
        sight.lives = Some(true);
        assert_eq!(of(&attempt, &sight, &watched), Step::Keep);
        sight.lives = Some(false);
        watched.node_silent = Some(Duration::ZERO);
        assert_eq!(of(&attempt, &sight, &watched), Step::Again(30 * SECOND));
        watched.node_silent = Some(29 * SECOND);
        assert_eq!(of(&attempt, &sight, &watched), Step::Again(SECOND));
        watched.node_silent = Some(30 * SECOND);
        assert_eq!(of(&attempt, &sight, &watched), Step::Over(Ending::RoomGone));
    }

    #[test]
    fn nobody_talks_to_an_agent_that_is_gone_for_longer_than_ten_seconds() {
        let attempt = attempt(State::Answered);
        let mut sight = present(CallStatus::Active);
        sight.lives = Some(true);
        let mut watched = watched(false);
        assert_eq!(of(&attempt, &sight, &watched), Step::Keep);
        watched.agent_missing = Some(4 * SECOND);
        assert_eq!(of(&attempt, &sight, &watched), Step::Again(6 * SECOND));
        watched.agent_missing = Some(10 * SECOND);
        let lost = of(&attempt, &sight, &watched);
        assert_eq!(lost, Step::RecordStop(StopWhy::AgentLost));
    }

    #[test]
    fn only_a_stop_that_hangs_up_ends_a_call_in_which_somebody_talks() {
        let mut sight = present(CallStatus::Active);
        sight.lives = Some(true);
        let spares = stopped(State::Answered, Mode::StopRinging);
        assert_eq!(of(&spares, &sight, &watched(false)), Step::Keep);
        let hangs_up = stopped(State::Answered, Mode::HangUp);
        let step = of(&hangs_up, &sight, &watched(false));
        assert_eq!(step, Step::DeleteRoom(Met::Talking(leg())));
    }
}
