//! What happens beside a dial that waits for its answer: one look at the room before the
//! ringing ends, and the carrying out of a recorded stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Placement;
use super::gate::{Joined, who_joined};
use super::settle::Try;
use super::stopping::{Met, may_delete};
use crate::ledger::record::{Room, attempt_key};
use crate::ledger::store::Version;
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, Gate, State, Stop, StopWhy};
use crate::model::time::Time;
use crate::model::verdict::Leg;
use crate::provider::{Call, Gone};

/// What was seen, and done, while the dial waited for its answer.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Facts>);

#[derive(Debug, Default)]
struct Facts {
    /// When it was first seen ringing.
    rang: Option<Time>,
    /// The callee's leg, once it was seen answered.
    talks: Option<Leg>,
    /// Whether a deletion of the room is under way.
    deletes: bool,
    /// Whether one was done, or may have been.
    deleted: bool,
}

impl Facts {
    fn ended(&mut self, gone: Gone) {
        self.deletes = false;
        self.deleted |= match gone {
            Gone::Deleted | Gone::Unclear(_) => true,
            Gone::NotThere | Gone::Refused(_) => false,
        };
    }
}

impl Seen {
    /// When it was first seen ringing.
    pub(super) fn ring_time(&self) -> Option<Time> {
        self.facts().rang
    }

    /// The callee's leg, if it was seen answered.
    pub(super) fn talks(&self) -> Option<Leg> {
        self.facts().talks.clone()
    }

    /// Whether a recorded stop has deleted the room, or may have: the answer to the dial can
    /// come while the answer to the deletion is awaited.
    pub(super) fn deleted(&self) -> bool {
        let facts = self.facts();
        facts.deletes || facts.deleted
    }

    /// Takes down whom a look met.
    fn take(&self, met: &Met, at: Time) {
        let mut facts = self.facts();
        match met {
            Met::Ringing { listed: true } => {
                facts.rang.get_or_insert(at);
            }
            Met::Talking(leg) => {
                facts.rang.get_or_insert(at);
                facts.talks = Some(leg.clone());
            }
            Met::Ringing { listed: false } | Met::Nobody => {}
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            if newer && self.stopped(of).await.is_some() {
                return self.carry_out_stop(of, room, seen).await;
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

    /// The attempt, if a stop of it is recorded.
    async fn stopped(&self, of: &Try) -> Option<Attempt> {
        let found = self.ledger.attempt(&of.workspace, &of.attempt).await;
        let (attempt, _) = found.ok()??;
        attempt.stop.is_some().then_some(attempt)
    }

    /// Deletes the room, again and again: the platform may have been about to let the leg
    /// join, and then the join makes the room anew.
    async fn carry_out_stop(&self, of: &Try, room: &Room, seen: &Seen) {
        let fresh = self.config.reconcile.look_gap_max;
        loop {
            // Read each time: the cancel may have been asked to go further since.
            if let Some(attempt) = self.stopped(of).await {
                let met = self.rooms.look_to_stop(&room.name, of.session, fresh).await;
                if let Some(met) = &met {
                    seen.take(met, self.ledger.now());
                }
                if may_delete(&attempt, met.as_ref()) {
                    seen.facts().deletes = true;
                    let gone = self.rooms.client().delete_room_once(&room.name).await;
                    seen.facts().ended(gone);
                }
            }
            sleep(self.config.room.stop_interval.max(Duration::from_millis(1))).await;
        }
    }

    /// Whether it rings, and whether the agent is still there. An agent that left while it
    /// rang would leave the callee in silence: a stop is recorded, and the room goes.
    async fn look(&self, attempt: &Attempt, of: &Try, room: &Room, seen: &Seen) {
        let Call::Done(there) = self.rooms.client().participants(&room.name).await else {
            return;
        };
        let met = Met::of(&there, of.session);
        seen.take(&met, self.ledger.now());
        let gone = who_joined(&there, &attempt.spec.agent.name) == Joined::Nobody;
        // An empty list is no evidence of an absence: a platform that lost its records says so.
        if attempt.spec.agent.gate == Gate::Joined
            && met != Met::Nobody
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
