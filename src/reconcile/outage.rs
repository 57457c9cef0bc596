//! A platform that does not answer, and the rooms that wait for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::model::id::SessionId;
use crate::model::time::Time;
use crate::provider::Health;

/// More rooms than an outage leaves behind, at some thirty bytes each.
const ROOMS_MAX: usize = 10_000;

/// An outage of the platform, as it is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has lasted long enough to be one.
    Began(Time),
    /// It is answered again; this is when it began.
    Ended(Time),
}

/// An outage, and the rooms that could not be looked for in it.
///
/// A request that is lost is none, however long nothing else is asked after it: where nobody
/// calls, it is the next sweep of rooms that confirms it, a minute later
/// ([`Health::away_since`]).
///
/// Of the rooms nothing is known to be there, so they are no leak: one line for all of them,
/// once an outage.
#[derive(Debug, Default)]
pub(super) struct Outage {
    waiting: Mutex<Waiting>,
    /// Since when it lasts, once that was told.
    told: Mutex<Option<Time>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Which outage it is: since when every request fails.
    since: Option<Time>,
    rooms: BTreeSet<SessionId>,
    said: bool,
}

impl Outage {
    /// What is to be told of this `health`: the beginning of an outage and its end, each once.
    pub(super) fn turn(&self, health: &Health) -> Option<Turn> {
        // A std mutex, since nothing is awaited while it is held.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match (*told, health.failing_since) {
            (None, Some(since)) if health.away_since().is_some() => {
                *told = Some(since);
                Some(Turn::Began(since))
            }
            (Some(began), None) => {
                *told = None;
                Some(Turn::Ended(began))
            }
            // One answer among failures does not make two outages.
            (None | Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Another look for the room of `session` got no answer, in the outage that began at
    /// `since`. How many rooms wait, if that is to be said now: when one has waited `long`, and
    /// nobody said it before.
    pub(super) fn waits(&self, session: SessionId, since: Time, long: bool) -> Option<usize> {
        // A std mutex, since nothing is awaited while it is held.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.since != Some(since) {
            *waiting = Waiting {
                since: Some(since),
                ..Waiting::default()
            };
        }
        if waiting.rooms.len() < ROOMS_MAX {
            waiting.rooms.insert(session);
        }
        let now = long && !waiting.said;
        waiting.said |= long;
        now.then_some(waiting.rooms.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Trouble;
    use crate::provider::health::Failed;

    fn session(number: u32) -> SessionId {
        let (deployment, workspace) = ("d".parse().unwrap(), "w".parse().unwrap());
        SessionId::of(&deployment, &workspace, &"a".parse().unwrap(), number)
    }

    /// A platform of which every request has failed from `since` on, the last one at `last`.
    fn failing(since: i64, last: i64) -> Health {
        let (at, why) = (Time::from_secs(last), Trouble::Broken);
        Health {
            failed: Some(Failed { at, why }),
            failing_since: Some(Time::from_secs(since)),
            ..Health::default()
        }
    }

    #[test]
    fn an_outage_is_told_when_it_begins_and_when_it_is_over() {
        let outage = Outage::default();
        let well = Health::default();
        assert_eq!(outage.turn(&well), None);
        assert_eq!(outage.turn(&failing(2, 2)), None, "one request was lost");
        assert_eq!(outage.turn(&well), None);
        let began = Time::from_secs(5);
        assert_eq!(outage.turn(&failing(5, 9)), None, "and its repetitions");
        assert_eq!(outage.turn(&failing(5, 10)), Some(Turn::Began(began)));
        assert_eq!(outage.turn(&failing(5, 11)), None, "once");
        assert_eq!(outage.turn(&well), Some(Turn::Ended(began)));
        assert_eq!(outage.turn(&well), None);
    }

    #[test]
    fn an_outage_is_told_once_with_all_that_wait_and_the_next_one_again() {
        let outage = Outage::default();
        let began = Time::from_secs(1);
        assert_eq!(outage.waits(session(1), began, false), None);
        assert_eq!(outage.waits(session(2), began, false), None);
        assert_eq!(outage.waits(session(1), began, true), Some(2));
        assert_eq!(outage.waits(session(2), began, true), None);
        let next = Time::from_secs(9);
        assert_eq!(outage.waits(session(3), next, true), Some(1));
    }
}
