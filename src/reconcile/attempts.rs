//! Attempts whose time in a passing state is over.

use super::Reconciler;
use super::plan::{Overdue, overdue};
use crate::admission::enter::refuse;
use crate::admission::rules::Answer;
use crate::ledger::record::{Room, RoomCause, attempt_key};
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, EndCause, Reason, Rule, State};
use crate::model::id::{RoomName, SessionId};
use crate::model::time::Time;
use crate::model::verdict::{TryFailure, Unclear};
use crate::placement::rooms::Deletion;
use crate::placement::settle::{Finding, Try};
use crate::placement::stopping::{Met, Stopped};
use crate::runtime::mutant::{self, Mutant};

impl Reconciler {
    /// Carries out what is due. What must be looked at is handed to the looks, which ask for
    /// many at once.
    pub(super) async fn attempts(&self, due: Vec<Attempt>) {
        self.concurrently(due, |attempt| self.attempt(attempt))
            .await;
    }

    async fn attempt(&self, attempt: Attempt) -> Result<(), Error> {
        let grace = self.config.reconcile.overrun_grace;
        match overdue(&attempt, self.ledger.now(), grace) {
            Overdue::Wait => Ok(()),
            Overdue::Expire => self.expire(&attempt).await,
            Overdue::Abandon | Overdue::LoseSight => {
                // It was read a moment ago, and a process that was paused goes on now: what it
                // dials has a window of its own.
                let still = |now: &Attempt| match overdue(now, self.ledger.now(), grace) {
                    Overdue::Abandon | Overdue::LoseSight => true,
                    Overdue::Wait | Overdue::Expire | Overdue::Maximum | Overdue::Look => false,
                };
                self.abandoned(&attempt, still).await
            }
            Overdue::Maximum => self.end(&attempt, EndCause::Maximum).await,
            Overdue::Look => {
                self.watches.hurry(&attempt);
                Ok(())
            }
        }
    }

    /// The owner is gone, or silent beyond the window. Without a marker nothing was dialed: a
    /// failed try. With one, what became of it is unknown, and the room stays alive. `still`
    /// asks that of the attempt as it stands when it is written.
    pub(super) async fn abandoned(
        &self,
        attempt: &Attempt,
        still: impl Fn(&Attempt) -> bool + Send + Sync,
    ) -> Result<(), Error> {
        let Some(of) = Try::of(attempt) else {
            return Ok(());
        };
        let epoch = self.ledger.epoch().id;
        let settled = self
            .settler
            .settle(&of, Cause::OwnerGone, None, |attempt| match attempt.state {
                _ if !still(attempt) => None,
                State::Reserved if attempt.epoch != epoch => {
                    let never = Some(Answer::Never(Reason::of(Rule::HistoryLost)));
                    Some((
                        Finding::NoCall(TryFailure::Abandoned, never),
                        "it was reserved in a history that is not this store's".to_owned(),
                    ))
                }
                State::Reserved => Some((
                    Finding::NoCall(TryFailure::Abandoned, None),
                    "no marker was written".to_owned(),
                )),
                State::Dialing if mutant::is(Mutant::LeaseHandsOverDialing) => Some((
                    Finding::NoCall(TryFailure::Abandoned, None),
                    "whoever dialed does not report any more".to_owned(),
                )),
                State::Dialing => Some((
                    Finding::Unclear(Unclear::Abandoned),
                    "whoever dialed does not report any more".to_owned(),
                )),
                State::Queued
                | State::Deferred
                | State::Refused
                | State::Answered
                | State::Ended
                | State::NotConnected
                | State::NotDialed
                | State::Uncertain
                | State::NeedsReview
                | State::Canceled => None,
            })
            .await?;
        self.hand_over(settled);
        Ok(())
    }

    /// A stop that was recorded while it rang, and whoever waited for that dial may be dead:
    /// the room is deleted. That the deletion met a leg which rang is kept: it was not
    /// answered then. Whether nothing is left to do: the platform may not have answered.
    pub(super) async fn stop(&self, attempt: &Attempt) -> Result<bool, Error> {
        // It may be the second time, and the dial's answer has come in between.
        let found = (self.ledger)
            .attempt(&attempt.workspace, &attempt.id)
            .await?;
        let Some((attempt, _)) = found.filter(|(now, _)| now.state == State::Dialing) else {
            return Ok(true);
        };
        let Some(placed) = attempt.placed.as_ref() else {
            return Ok(true);
        };
        let Some(room) = self.room_of(&attempt).await? else {
            return Ok(true);
        };
        // Nobody waits between the look and the deletion: whoever comes next does.
        self.budget.charge(2.0);
        let stopped = self.stop_room(&attempt, &room.name, placed.session).await?;
        let gone = stopped.deleted
            || attempt.hangs_up()
                && self.rooms.delete_within(&room, &self.budget).await == Deletion::Gone;
        if !gone {
            return Ok(matches!(stopped.met, Some(Met::Talking(_))) && !attempt.hangs_up());
        }
        if let (true, Some(met)) = (stopped.deleted, &stopped.met) {
            self.note_met(&attempt, met).await?;
        }
        self.rooms.gone(&room, RoomCause::Canceled).await?;
        Ok(true)
    }

    /// Looks at a room, and deletes it if the recorded stop allows that. Whom it hangs up on is
    /// written down before: a process that is killed between the two would leave an end of which
    /// nobody knows that it was ours.
    pub(super) async fn stop_room(
        &self,
        attempt: &Attempt,
        room: &RoomName,
        session: SessionId,
    ) -> Result<Stopped, Error> {
        let fresh = self.config.reconcile.look_gap_max;
        let met = self.rooms.meets(room, session, fresh).await;
        if let Some(talking @ Met::Talking(_)) = &met
            && attempt.hangs_up()
        {
            self.note_met(attempt, talking).await?;
        }
        Ok(self.rooms.stop(attempt, room, met).await)
    }

    async fn note_met(&self, attempt: &Attempt, met: &Met) -> Result<(), Error> {
        self.rewrite_attempt(attempt, |now| {
            if let Some(stop) = &mut now.stop {
                met.note(stop, self.ledger.now());
            }
        })
        .await
    }

    async fn end(&self, attempt: &Attempt, why: EndCause) -> Result<(), Error> {
        let Some(of) = Try::of(attempt) else {
            return Ok(());
        };
        let why = match attempt.ended_by(EndCause::RoomGone, attempt.is_met()) {
            EndCause::RoomGone | EndCause::LegLeft => why,
            stopped @ (EndCause::Canceled
            | EndCause::Maximum
            | EndCause::AgentLost
            | EndCause::Resolved) => stopped,
        };
        let settled = self
            .settler
            .settle(&of, Cause::Maximum, None, |attempt| {
                let answered = attempt.state == State::Answered;
                answered.then(|| {
                    let evidence = "it lasted as long as it may, by the ledger's clock";
                    (Finding::Over(why), evidence.to_owned())
                })
            })
            .await?;
        self.hand_over(settled);
        Ok(())
    }

    /// The caller kept it and did not come back in time.
    async fn expire(&self, attempt: &Attempt) -> Result<(), Error> {
        let (ws, id) = (&attempt.workspace, &attempt.id);
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let now = self.ledger.now();
                let Some(attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                if attempt.state != State::Deferred || now <= attempt.spec.expire_time {
                    return Ok(Decision::Keep(()));
                }
                let expired = refuse(attempt, true, Reason::of(Rule::Expired), now)?;
                Ok(expired.map(|_| ()))
            })
            .await?;
        Ok(())
    }

    /// Puts the next look off; nobody outside sees a difference.
    pub(super) async fn put_off(&self, attempt: &Attempt, until: Time) -> Result<(), Error> {
        self.rewrite_attempt(attempt, |now| now.look_at = Some(until))
            .await
    }

    /// Writes what nobody outside sees, unless something came in between.
    async fn rewrite_attempt(
        &self,
        attempt: &Attempt,
        with: impl Fn(&mut Attempt) + Send + Sync,
    ) -> Result<(), Error> {
        let (ws, id) = (&attempt.workspace, &attempt.id);
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let Some(mut now) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                // A cancel that came meanwhile has set its own time.
                if now.state != attempt.state || now.look_at != attempt.look_at {
                    return Ok(Decision::Keep(()));
                }
                with(&mut now);
                let mut change = Change::default();
                change.quietly(&now)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }

    /// The room of an attempt's present or last try, as recorded.
    pub(super) async fn room_of(&self, attempt: &Attempt) -> Result<Option<Room>, Error> {
        match &attempt.placed {
            Some(placed) => self.ledger.room(&attempt.workspace, placed.session).await,
            None => Ok(None),
        }
    }
}
