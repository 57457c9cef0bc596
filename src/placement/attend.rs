//! What happens beside a dial that waits for its answer: one look at the room before the
//! ringing ends, and the carrying out of a recorded stop.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Placement;
use super::gate::{Joined, who_joined};
use super::settle::Try;
use crate::ledger::record::{Room, attempt_key};
use crate::ledger::store::Version;
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, Gate, State, Stop, StopWhy};
use crate::model::time::Time;
use crate::provider::{Call, CallStatus, Kind};

/// What was seen while it rang.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<Time>>);

impl Seen {
    /// When it was first seen ringing.
    pub(super) fn ring_time(&self) -> Option<Time> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rings(&self, at: Time) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(at);
    }
}

impl Placement {
    /// Never returns: whoever awaits the dial drops this with it. `news` has been heard from
    /// before the marker on, whose commit, `version`, saw no stop: only a later one is read.
    pub(super) async fn attend(
        &self,
        attempt: &Attempt,
        of: &Try,
        room: &Room,
        seen: &Seen,
        news: &mut watch::Receiver<Version>,
        version: Version,
    ) {
        let ringing = attempt.spec.ringing();
        let before_end = ringing.saturating_sub(self.config.dial.look_before_ring_end);
        let look_at = Instant::now() + before_end;
        let mut looked = false;
        loop {
            let newer = *news.borrow_and_update() > version;
            if newer && self.stop_is_recorded(of).await {
                return self.carry_out_stop(room).await;
            }
            tokio::select! {
                biased;
                changed = news.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                () = sleep_until(look_at), if !looked => {
                    looked = true;
                    self.look(attempt, of, room, seen).await;
                }
            }
        }
    }

    async fn stop_is_recorded(&self, of: &Try) -> bool {
        match self.ledger.attempt(&of.workspace, &of.attempt).await {
            Ok(found) => found.is_some_and(|(attempt, _)| attempt.stop.is_some()),
            Err(_) => false,
        }
    }

    /// Deletes the room, again and again: the platform may have been about to let the leg
    /// join, and then the join makes the room anew.
    async fn carry_out_stop(&self, room: &Room) {
        loop {
            let _deleted = self.rooms.client().delete_room(&room.name).await;
            sleep(self.config.room.stop_interval.max(Duration::from_millis(1))).await;
        }
    }

    /// Whether it rings, and whether the agent is still there. An agent that left while it
    /// rang would leave the callee in silence: a stop is recorded, and the room goes.
    async fn look(&self, attempt: &Attempt, of: &Try, room: &Room, seen: &Seen) {
        let Call::Done(there) = self.rooms.client().participants(&room.name).await else {
            return;
        };
        let identity = of.session.identity();
        let leg = there
            .iter()
            .find(|p| p.kind == Kind::Sip && p.identity == identity);
        if let Some(leg) = leg {
            match leg.call_status {
                Some(
                    CallStatus::Ringing
                    | CallStatus::Active
                    | CallStatus::Automation
                    | CallStatus::Hangup,
                ) => seen.rings(self.ledger.now()),
                Some(CallStatus::Dialing | CallStatus::Other) | None => {}
            }
        }
        let gone = who_joined(&there, &attempt.spec.agent.name) == Joined::Nobody;
        // An empty list is no evidence of an absence: a platform that lost its records says so.
        if attempt.spec.agent.gate == Gate::Joined
            && leg.is_some()
            && gone
            && let Err(error) = self.record_stop(of, StopWhy::AgentLost).await
        {
            tracing::warn!(%error, attempt = %of.attempt, "a lost agent could not be recorded");
        }
    }

    async fn record_stop(&self, of: &Try, why: StopWhy) -> Result<(), Error> {
        let (ws, id) = (&of.workspace, &of.attempt);
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let Some(mut attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                let ours = attempt
                    .placed
                    .as_ref()
                    .is_some_and(|p| p.session == of.session);
                if !ours || attempt.state != State::Dialing || attempt.stop.is_some() {
                    return Ok(Decision::Keep(()));
                }
                attempt.stop = Some(Stop {
                    why,
                    at: self.ledger.now(),
                    met_ringing: None,
                });
                let mut change = Change::default();
                change.attempt(&attempt, Cause::Looked)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}
