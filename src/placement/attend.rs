//! What happens beside a dial that waits for its answer: one look at the room before the
//! ringing ends, and the carrying out of a recorded stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Placement;
use super::gate::{Joined, who_joined};
use super::settle::{Finding, Try};
use super::stopping::{Met, may_delete};
use crate::ledger::record::{Room, attempt_key};
use crate::ledger::store::Version;
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, EndCause, Gate, State, Stop, StopWhy};
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
    /// Whether a deletion of the room with the callee in it is under way.
    deletes: bool,
    /// Whether one met the callee's leg, or may have.
    deleted: bool,
    /// Whether one was sent at all: the agent may be gone with the room.
    emptied: bool,
}

impl Facts {
    /// Takes down that a deletion is sent, whose look met these.
    fn begun(&mut self, met: Option<&Met>) {
        self.deletes = met != Some(&Met::Nobody);
        self.emptied = true;
    }

    /// Takes the end of a deletion down, whose look met these; whether it was done. One that
    /// met nobody has hung up on nobody: the leg joins late, and the join makes the room anew.
    fn ended(&mut self, gone: Gone, met: Option<&Met>) -> bool {
        self.deletes = false;
        let (done, maybe) = match gone {
            Gone::Deleted => (true, true),
            Gone::Unclear(_) => (false, true),
            Gone::NotThere | Gone::Refused(_) => (false, false),
        };
        self.deleted |= maybe && met != Some(&Met::Nobody);
        done
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

    /// Whether a recorded stop has deleted the room with the callee in it, or may have: the
    /// answer to the dial can come while the answer to the deletion is awaited.
    pub(super) fn deleted(&self) -> bool {
        let facts = self.facts();
        facts.deletes || facts.deleted
    }

    /// Whether a recorded stop has deleted the room, or may have, before the callee was in it:
    /// its agent is gone.
    pub(super) fn emptied(&self) -> bool {
        let facts = self.facts();
        facts.emptied && !facts.deletes && !facts.deleted
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
                self.stop_once(&attempt, of, room, seen, fresh).await;
            }
            sleep(self.config.room.stop_interval.max(Duration::from_millis(1))).await;
        }
    }

    async fn stop_once(
        &self,
        attempt: &Attempt,
        of: &Try,
        room: &Room,
        seen: &Seen,
        fresh: Duration,
    ) {
        let look = self.rooms.look_to_stop(&room.name, of.session, fresh).await;
        let met = look.as_ref().map(|look| &look.met);
        if let Some(met) = met {
            seen.take(met, self.ledger.now());
        }
        if may_delete(attempt, met) {
            // Before the deletion: whoever is killed after it would leave an end of which nobody
            // knows that it was ours.
            if let Some(talking @ Met::Talking(_)) = met {
                self.note(of, |stop, at| talking.note(stop, at)).await;
            }
            seen.facts().begun(met);
            let gone = self.rooms.client().delete_room_once(&room.name).await;
            let reached = seen.facts().ended(gone, met);
            if let (true, Some(met)) = (reached, met) {
                self.note(of, |stop, at| met.note(stop, at)).await;
            }
            return;
        }
        if seen.emptied() && look.is_some_and(|look| look.is_alone()) {
            self.agent_is_gone(of).await;
        }
    }

    /// The dial is answered. If an earlier deletion met nobody, it took the agent away, and the
    /// late join made the room anew: whoever answered hears nobody, and nobody will come.
    pub(super) async fn answered_alone(&self, of: &Try, room: &Room, seen: &Seen) {
        if !seen.emptied() {
            return;
        }
        let fresh = self.config.reconcile.look_gap_max;
        let look = self.rooms.look_to_stop(&room.name, of.session, fresh).await;
        if look.is_some_and(|look| look.is_alone()) {
            self.agent_is_gone(of).await;
        }
    }

    /// The stop goes on for another reason, which reaches who talks.
    async fn agent_is_gone(&self, of: &Try) {
        self.note(of, |stop, _| stop.why = StopWhy::AgentLost).await;
    }

    /// Takes something down with the stop that is recorded. A store that refuses it makes the
    /// end less sure, and nothing else.
    async fn note(&self, of: &Try, note: impl Fn(&mut Stop, Time) + Send + Sync) {
        let noted = self
            .rewrite_dialing(of, |attempt, now| {
                if let Some(stop) = &mut attempt.stop {
                    note(stop, now);
                }
            })
            .await;
        if let Err(error) = noted {
            tracing::warn!(%error, attempt = %of.attempt, "what a stop met could not be kept");
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
        self.rewrite_dialing(of, |attempt, now| {
            attempt.stop.get_or_insert_with(|| Stop::new(why, now));
        })
        .await
    }

    /// Changes the attempt while this very try of it is dialing; without a change nothing is
    /// written.
    async fn rewrite_dialing(
        &self,
        of: &Try,
        with: impl Fn(&mut Attempt, Time) + Send + Sync,
    ) -> Result<(), Error> {
        let (ws, id) = (&of.workspace, &of.attempt);
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let Some(before) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                let ours = before
                    .placed
                    .as_ref()
                    .is_some_and(|p| p.session == of.session);
                let mut attempt = before.clone();
                with(&mut attempt, self.ledger.now());
                if !ours || before.state != State::Dialing || attempt == before {
                    return Ok(Decision::Keep(()));
                }
                let mut change = Change::default();
                change.attempt(&attempt, Cause::Looked)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}

/// What a finding of the dial's answer comes to, given what was seen while it was waited for.
pub(super) fn after_stop(
    found: Finding,
    attempt: &Attempt,
    talked: Option<&Leg>,
    deleted: bool,
) -> Finding {
    match (found, talked) {
        // Our deletion did not meet it: a stop that reaches ringing alone came too late.
        (Finding::Answered(leg), _) if !deleted => Finding::Adopted(leg),
        (Finding::NotConnected(_), Some(leg)) => {
            let reached = deleted || attempt.is_met();
            Finding::WasAnswered(leg.clone(), attempt.ended_by(EndCause::RoomGone, reached))
        }
        (found, _) => found,
    }
}
