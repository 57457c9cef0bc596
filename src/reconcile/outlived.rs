//! Rooms that are to be deleted, that the platform does not list, and of which it does not say
//! whether a node runs them.
//!
//! So it is where the platform lost its records and "no node answers" takes longer to be said
//! than we wait. Silence proves nothing, and the room is asked after again, more and more
//! rarely. But no call in it lasts for ever: none starts after the horizon, and the platform
//! ends each after its longest duration. Whoever has asked in vain for as long as that, and the
//! grace that the platform's own end gets, gives the room up.
//!
//! How long is known by our own monotonic clock, and anew in each process: a step of the wall
//! clock lets no call end sooner.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Reconciler;
use crate::ledger::Error;
use crate::ledger::record::{Room, RoomCause};
use crate::model::id::SessionId;
use crate::placement::settle::backoff;

/// Since when rooms were asked after in vain, some forty bytes each.
#[derive(Debug, Default)]
pub(super) struct Silent(Mutex<BTreeMap<SessionId, Instant>>);

impl Silent {
    /// It was not answered, again or for the first time: for how long already. So many as
    /// `limit` are remembered; for one more, another begins anew.
    fn unanswered(&self, session: SessionId, limit: usize) -> Duration {
        let mut since = self.lock();
        if since.len() >= limit && !since.contains_key(&session) {
            // Sessions sort by chance, so this forgets one of them, whichever.
            since.pop_first();
        }
        let now = Instant::now();
        now.saturating_duration_since(*since.entry(session).or_insert(now))
    }

    /// Whether it was asked after in vain, the last time.
    pub(super) fn is_asked_for(&self, session: SessionId) -> bool {
        self.lock().contains_key(&session)
    }

    /// Something was answered: what is unanswered later counts from then.
    pub(super) fn answered(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler {
    /// Nobody said whether the room lives: it is asked after again, or it is given up.
    pub(super) async fn unheard(&self, room: &Room) -> Result<(), Error> {
        let limits = &self.config.reconcile;
        let asked = self.silent.unanswered(room.session, limits.watched_max);
        let left = self.longest_life(room).await?.saturating_sub(asked);
        if !left.is_zero() {
            self.waits(room);
            let setbacks = room.setbacks.saturating_add(1);
            let pause = backoff(setbacks, limits.look_interval, limits.silent_look, 0.0);
            return self.setback(room, pause.min(left)).await;
        }
        tracing::warn!(
            event = "room.outlived",
            room = %room.name,
            attempt = %room.attempt,
            asked_seconds = asked.as_secs(),
            "LiveKit does not list a room and never said whether a node runs it; no call can be \
             in it any more: it is taken for gone"
        );
        self.rooms.gone(room, RoomCause::Outlived).await?;
        self.silent.answered(room.session);
        Ok(())
    }

    /// How long, from when the room was planned, a call may be in it: up to its horizon one
    /// may start, and then it lasts as long as it may.
    async fn longest_life(&self, room: &Room) -> Result<Duration, Error> {
        let found = self.ledger.attempt(&room.workspace, &room.attempt).await?;
        let dial = &self.config.dial;
        // An earlier try, or one that is forgotten: whatever any may.
        let call = found
            .filter(|(attempt, _)| {
                let session = attempt.placed.as_ref().map(|placed| placed.session);
                session == Some(room.session) && !attempt.tombstone
            })
            .map_or(dial.max_call_duration_max, |(attempt, _)| {
                attempt.spec.max_call()
            });
        let horizon = room.horizon.unwrap_or(room.planned_at);
        Ok(horizon
            .since(room.planned_at)
            .max(self.config.longest_horizon())
            .saturating_add(call)
            .saturating_add(self.config.reconcile.overrun_grace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_lets_the_time_begin_anew_and_so_does_a_limit() {
        let silent = Silent::default();
        let (deployment, ws) = ("d-1".parse().unwrap(), "w".parse().unwrap());
        let attempt = "a".parse().unwrap();
        let [one, two] = [1, 2].map(|n| SessionId::of(&deployment, &ws, &attempt, n));
        let second = Duration::from_secs(1);
        assert_eq!(silent.unanswered(one, 1), Duration::ZERO);
        tokio::time::sleep(second).await;
        assert_eq!(silent.unanswered(one, 1), second);
        silent.answered(one);
        assert_eq!(silent.unanswered(one, 1), Duration::ZERO);
        tokio::time::sleep(second).await;
        assert_eq!(silent.unanswered(two, 1), Duration::ZERO);
        assert_eq!(silent.unanswered(one, 2), Duration::ZERO, "forgotten");
    }
}
