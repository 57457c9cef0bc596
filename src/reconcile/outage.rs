//! A platform that does not answer, and the rooms that wait for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::model::id::SessionId;
use crate::model::time::Time;

/// More rooms than an outage leaves behind, at some thirty bytes each.
const ROOMS_MAX: usize = 10_000;

/// Rooms that could not be looked for since LiveKit does not answer. Nothing of them is known
/// to be there, so they are no leak: one line for all of them, once an outage.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Which outage it is: since when every request fails.
    since: Option<Time>,
    rooms: BTreeSet<SessionId>,
    said: bool,
}

impl Outage {
    /// Another look for the room of `session` got no answer, in the outage that began at
    /// `since`. How many rooms wait, if that is to be said now: when one has waited `long`, and
    /// nobody said it before.
    pub(super) fn waits(&self, session: SessionId, since: Time, long: bool) -> Option<usize> {
        // A std mutex, since nothing is awaited while it is held.
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn session(number: u32) -> SessionId {
        let (deployment, workspace) = ("d".parse().unwrap(), "w".parse().unwrap());
        SessionId::of(&deployment, &workspace, &"a".parse().unwrap(), number)
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
