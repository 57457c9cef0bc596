//! What time alone breaks: due times that passed, and rooms that nobody owns.

use std::time::Duration;

use tokio::time::Instant;

use super::{Case, is_over};
use crate::model::attempt::{Attempt, Placed, State};
use crate::model::id::RoomName;
use crate::model::time::Time;
use crate::model::verdict::Unclear;
use crate::sim::violation::Invariant;

/// How late a passing state may be.
const LATE: Duration = Duration::from_secs(10);

/// How long after its leg is gone an answered call may be called so: the room's departure
/// timeout, one look of the slow sweep, and the time for both.
const END_TOLD: Duration = Duration::from_secs(90);

/// How long after the horizon an uncertain attempt may be called so.
const SETTLED: Duration = Duration::from_secs(10);

/// How long whoever settles must have watched by itself before an absence counts: the longest
/// horizon of a call here, counted from its start, or from when it could look again.
const WATCHED: Duration = Duration::from_secs(150);

/// The same for an answered call whose leg is listed for ever, since no node is left that
/// could tell of it: two questions that no node answers, thirty seconds apart, the first of
/// them thirty seconds after whoever asks has started. A process that dies in between takes
/// what it knew with it.
const NODE_WATCHED: Duration = Duration::from_secs(75);

/// How long a room may outlive what owned it, and its horizon.
const ROOM_LEFT: Duration = Duration::from_mins(1);

/// What is looked at when its moment has come.
#[derive(Debug, Clone)]
pub(super) enum Check {
    /// The attempt is not in this passing state with this due time any more.
    Passed(String, State, Time),
    /// The attempt is not called answered any more.
    Ended(String),
    /// The attempt is not uncertain with this horizon any more.
    Settled(String, Time),
}

impl Case {
    /// Puts on the agenda when `attempt` must have passed on.
    pub(super) fn follow(&mut self, key: &str, attempt: &Attempt) {
        let state = attempt.state;
        match state {
            State::Queued | State::Deferred | State::Reserved | State::Dialing => {
                if let Some(due) = attempt.due() {
                    let at = self.moment(due) + LATE;
                    self.put(at, Check::Passed(key.to_owned(), state, due));
                }
            }
            State::Uncertain if self.settles => {
                let placed = attempt.placed.as_ref();
                let horizon = placed.and_then(Placed::horizon);
                let horizon = horizon.unwrap_or(attempt.since);
                let at = self.moment(horizon) + SETTLED;
                // Who did not write the marker must have looked for a whole horizon by itself.
                let abandoned = placed.is_some_and(|p| p.unclear == Some(Unclear::Abandoned));
                let at = if abandoned {
                    at.max(Instant::now() + WATCHED + LATE)
                } else {
                    at
                };
                self.put(at, Check::Settled(key.to_owned(), horizon));
            }
            State::Answered
            | State::Refused
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => {}
        }
    }

    /// The leg of an attempt is gone.
    pub(super) fn watch_end(&mut self, key: &str, at: Instant) {
        self.put(at + END_TOLD, Check::Ended(key.to_owned()));
    }

    fn put(&mut self, at: Instant, check: Check) {
        self.order += 1;
        self.checks.insert((at, self.order), check);
    }

    pub(super) fn overdue(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.checks.first_entry() {
            // A clock that steps back makes all that is due as much later, also what was put
            // on the agenda before.
            if first.key().0 + self.skew > now {
                return;
            }
            let check = first.remove();
            if !self.stands(&check) {
                continue;
            }
            // What went wrong may hold this up; it is looked at once that is over.
            let calm = match check {
                Check::Passed(..) => self.rough_until,
                Check::Ended(_) => self.rough_until + NODE_WATCHED,
                Check::Settled(..) => self.rough_until + WATCHED,
            };
            if calm >= now {
                self.put(calm + LATE, check);
                continue;
            }
            let (key, invariant, what) = match check {
                Check::Passed(key, state, due) => {
                    let what = format!("{key} is {} beyond {due}", state.name());
                    (key, Invariant::Moves, what)
                }
                Check::Ended(key) => {
                    let what = format!("{key} is called answered, and its phone is silent");
                    (key, Invariant::Moves, what)
                }
                Check::Settled(key, horizon) => {
                    let what = format!("{key} is uncertain beyond {horizon}");
                    (key, Invariant::Settles, what)
                }
            };
            return self.failed(&key, invariant, what);
        }
    }

    fn stands(&self, check: &Check) -> bool {
        let (Check::Passed(key, ..) | Check::Ended(key) | Check::Settled(key, _)) = check;
        let Some(known) = self.attempts.get(key) else {
            return false;
        };
        let attempt = &known.attempt;
        match check {
            Check::Passed(_, state, due) => attempt.state == *state && attempt.due() == Some(*due),
            Check::Ended(_) => attempt.state == State::Answered && known.legs == 0,
            Check::Settled(..) => attempt.state == State::Uncertain,
        }
    }

    /// Rooms that nobody owns go, once their horizon has passed and nobody talks in them.
    pub(super) fn rooms(&mut self, living: &[String]) {
        let now = Instant::now();
        self.orphans
            .retain(|name, _| living.iter().any(|room| room == name));
        for name in living {
            let (owned, horizon, legs) = self.owner(name);
            if owned || legs > 0 {
                self.orphans.remove(name);
                continue;
            }
            let since = *self.orphans.entry(name.clone()).or_insert(now);
            let horizon = horizon.map_or(since, |at| self.moment(at) + self.skew);
            let until = since.max(horizon).max(self.rough_until) + ROOM_LEFT;
            if now > until {
                let what = format!("the room {name} lives, and nobody owns it");
                self.violated(Invariant::NoRoomLeft, what);
            }
        }
    }

    fn owner(&self, name: &str) -> (bool, Option<Time>, u32) {
        let session = RoomName::parse(name).map(|(_, session)| session);
        let known = session
            .and_then(|session| self.sessions.get(&session))
            .and_then(|key| self.attempts.get(key));
        let Some(known) = known else {
            return (false, None, 0);
        };
        let placed = known.attempt.placed.as_ref();
        let own = placed.is_some_and(|placed| Some(placed.session) == session);
        let owned = own && !is_over(known.attempt.state);
        // The horizon of an older try is past before the next one begins.
        (owned, placed.and_then(Placed::horizon), known.legs)
    }
}
