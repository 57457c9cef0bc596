//! Attempts whose time in a passing state is over.

use std::collections::BTreeSet;

use super::Reconciler;
use super::plan::{Every, Look, Step, after_look, before_look};
use crate::admission::enter::refuse;
use crate::admission::rules::Answer;
use crate::ledger::record::{Room, RoomCause, attempt_key};
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, EndCause, Reason, Rule, State, StopWhy};
use crate::model::time::Time;
use crate::model::verdict::{TryFailure, Unclear};
use crate::placement::rooms::Deletion;
use crate::placement::settle::{Finding, Settlement, Try};
use crate::provider::{Call, Lives};
use crate::runtime::mutant::{self, Mutant};

impl Reconciler {
    /// Carries out what is due. The rooms of all that must be looked at are listed in one
    /// request a chunk; each absence is then asked of the node.
    pub(super) async fn attempts(&self, due: Vec<Attempt>) {
        let now = self.ledger.now();
        let grace = self.config.reconcile.overrun_grace;
        let planned = due.into_iter().map(|attempt| {
            let step = before_look(&attempt, now, grace);
            (attempt, step)
        });
        let (to_look, to_do): (Vec<_>, Vec<_>) =
            planned.partition(|(_, step)| *step == Step::LookAtRoom);
        let to_look: Vec<Attempt> = to_look.into_iter().map(|(attempt, _)| attempt).collect();
        self.concurrently(to_do, |(attempt, step)| self.carry_out(attempt, step, None))
            .await;
        if to_look.is_empty() {
            return;
        }
        let names: Vec<_> = to_look
            .iter()
            .filter_map(|a| a.placed.as_ref().map(|p| p.room.clone()))
            .collect();
        self.budget.spend(1.0).await;
        let listed: Option<BTreeSet<String>> = match self.rooms.client().list_rooms(&names).await {
            Call::Done(rooms) => Some(rooms.into_iter().map(|room| room.name).collect()),
            Call::Refused(_) | Call::Unclear(_) => None,
        };
        self.concurrently(to_look, |attempt| self.look(attempt, listed.as_ref()))
            .await;
    }

    async fn look(&self, attempt: Attempt, listed: Option<&BTreeSet<String>>) -> Result<(), Error> {
        let Some(placed) = attempt.placed.as_ref() else {
            return Ok(());
        };
        let look = match listed {
            None => Look::Unknown,
            Some(names) if names.contains(placed.room.as_str()) => Look::Listed,
            Some(_) => self.lives(&attempt).await,
        };
        let room = self.ledger.room(&attempt.workspace, placed.session).await?;
        let limits = &self.config.reconcile;
        let every = Every {
            living: limits.answered_look,
            finished: limits.uncertain_look,
        };
        let step = after_look(&attempt, room.as_ref(), look, self.ledger.now(), every);
        self.carry_out(attempt, step, room).await
    }

    /// A room that is not listed may live all the same: a platform that lost its records.
    async fn lives(&self, attempt: &Attempt) -> Look {
        let Some(placed) = attempt.placed.as_ref() else {
            return Look::Unknown;
        };
        self.budget.spend(1.0).await;
        match self.rooms.client().dispatches(&placed.room).await {
            Call::Done(Lives::No) => Look::Gone,
            Call::Done(Lives::Yes(_)) => Look::Living,
            Call::Refused(_) | Call::Unclear(_) => Look::Unknown,
        }
    }

    async fn carry_out(
        &self,
        attempt: Attempt,
        step: Step,
        room: Option<Room>,
    ) -> Result<(), Error> {
        match step {
            Step::Wait | Step::LookAtRoom => Ok(()),
            Step::Expire => self.expire(&attempt).await,
            Step::Abandon | Step::LoseSight => self.abandoned(attempt).await,
            Step::CarryOutStop => self.stop(attempt).await,
            Step::End(why) => self.end(&attempt, why).await,
            Step::PutOff(until) => self.put_off(&attempt, until).await,
            Step::RoomFinished => {
                if let Some(room) = room {
                    self.rooms.gone(&room, RoomCause::Finished).await?;
                }
                let every = self.config.reconcile.uncertain_look;
                self.put_off(&attempt, self.ledger.now().plus(every)).await
            }
        }
    }

    /// The owner is gone. Without a marker nothing was dialed: a failed try. With one, what
    /// became of it is unknown, and the room stays alive.
    pub(super) async fn abandoned(&self, attempt: Attempt) -> Result<(), Error> {
        let Some(of) = Try::of(&attempt) else {
            return Ok(());
        };
        let epoch = self.ledger.epoch().id;
        let settled = self
            .settler
            .settle(&of, Cause::OwnerGone, None, |attempt| match attempt.state {
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
        self.close_room(settled).await
    }

    /// A recorded stop whose placement is gone: the room is deleted; an answered call is
    /// then over, an uncertain one stays uncertain.
    pub(super) async fn stop(&self, attempt: Attempt) -> Result<(), Error> {
        let Some(placed) = attempt.placed.as_ref() else {
            return Ok(());
        };
        let Some(room) = self.ledger.room(&attempt.workspace, placed.session).await? else {
            return Ok(());
        };
        self.budget.spend(1.0).await;
        if self.rooms.delete(&room).await == Deletion::Left {
            // Somebody waits for this: sooner than by the lease.
            let again = self.ledger.now().plus(self.config.janitor.backoff_max);
            return self.put_off(&attempt, again).await;
        }
        let cause = match attempt.stop.as_ref().map(|s| s.why) {
            Some(StopWhy::AgentLost) => EndCause::AgentLost,
            Some(StopWhy::Maximum) => EndCause::Maximum,
            Some(StopWhy::Cancel) | None => EndCause::Canceled,
        };
        if attempt.state == State::Answered {
            return self.end(&attempt, cause).await;
        }
        self.rooms.gone(&room, RoomCause::Canceled).await?;
        let horizon = placed.horizon().unwrap_or(Time::ZERO);
        let every = self.ledger.now().plus(self.config.reconcile.uncertain_look);
        let next = if self.ledger.now() < horizon {
            horizon
        } else {
            every
        };
        self.put_off(&attempt, next).await
    }

    async fn end(&self, attempt: &Attempt, why: EndCause) -> Result<(), Error> {
        let Some(of) = Try::of(attempt) else {
            return Ok(());
        };
        let cause = match why {
            EndCause::RoomGone => Cause::RoomGone,
            EndCause::LegLeft => Cause::Told,
            EndCause::Canceled => Cause::Canceled,
            EndCause::Maximum => Cause::Maximum,
            EndCause::AgentLost => Cause::Looked,
        };
        let settled = self
            .settler
            .settle(&of, cause, None, |attempt| {
                let answered = attempt.state == State::Answered;
                answered.then(|| (Finding::Over(why), "the room was looked at".to_owned()))
            })
            .await?;
        if why == EndCause::RoomGone {
            return match settled.and_then(|s| s.closing) {
                Some(room) => self.rooms.gone(&room, RoomCause::Finished).await,
                None => Ok(()),
            };
        }
        self.close_room(settled).await
    }

    /// Deletes the room that a settling closed.
    async fn close_room(&self, settled: Option<Settlement>) -> Result<(), Error> {
        match settled.and_then(|s| s.closing) {
            Some(room) => self.room(room).await,
            None => Ok(()),
        }
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
    async fn put_off(&self, attempt: &Attempt, until: Time) -> Result<(), Error> {
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
                now.look_at = Some(until);
                let mut change = Change::default();
                change.quietly(&now)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}
