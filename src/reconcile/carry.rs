//! Carries out what a look decided: every settling stores its proof.

use super::Reconciler;
use super::gaps::Gap;
use super::looks::Known;
use super::plan::{Ending, Planned, Step};
use super::sight::Sight;
use super::watched::{Watch, Watched};
use crate::ledger::record::{RoomCause, RoomState, attempt_key};
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{Attempt, Cause, EndCause, State, Stop, StopWhy};
use crate::model::evidence;
use crate::model::observation::Call;
use crate::model::time::Time;
use crate::model::verdict::{After, Leg, NotConnected};
use crate::placement::rooms::Deletion;
use crate::placement::settle::{Finding, Settlement, Try};
use crate::placement::stopping::Met;

impl Reconciler {
    /// Does what was planned for an attempt that was looked at.
    pub(super) async fn carry_out(
        &self,
        watch: &Watch,
        known: Known,
        planned: Planned,
        sight: &Sight,
        watched: &Watched,
    ) -> Result<(), Error> {
        let proof = proof(&planned, sight, watched, &known);
        let rang = rang(&known.call, self.ledger.now());
        let find = |finding| (finding, proof.clone());
        let attempt = &known.attempt;
        match planned.step {
            // A question that is still open was not answered.
            Step::Keep | Step::Ask(_) => return self.keep(watch, &known, sight, watched).await,
            Step::Again(pause) => {
                self.watches.again(watch.session, pause);
                return Ok(());
            }
            Step::RecordStop(why) => {
                return self.record_stop(attempt, &known.call, why, &proof).await;
            }
            Step::DeleteRoom(found) => {
                return self.delete_by_stop(watch, &known, found, &proof).await;
            }
            Step::Adopt(leg) => {
                self.settle_looked(attempt, rang, find(Finding::Adopted(leg)))
                    .await?;
            }
            Step::WasAnswered(leg) => {
                self.missed(&known.call, Gap::Left);
                let finding =
                    Finding::WasAnswered(leg, ended(attempt, &known.call, EndCause::RoomGone));
                let settled = self.settle_looked(attempt, rang, find(finding)).await?;
                return self.close_seen(settled, sight).await;
            }
            Step::Over(ending) => {
                let (gap, by_itself) = match ending {
                    Ending::RoomGone => (Gap::RoomFinished, EndCause::RoomGone),
                    Ending::CalleeGone => (Gap::Left, EndCause::LegLeft),
                };
                let cause = ended(attempt, &known.call, by_itself);
                self.gaps.found(gap);
                let settled = self
                    .settle_looked(attempt, rang, find(Finding::Over(cause)))
                    .await?;
                return match ending {
                    Ending::RoomGone => self.close_seen(settled, sight).await,
                    // The room stays a little for its agent; its own time deletes it then.
                    Ending::CalleeGone => Ok(()),
                };
            }
            Step::NotConnected(disposition, after) => {
                if watched.seen {
                    self.missed(&known.call, Gap::Left);
                }
                let finding = Finding::NotConnected(NotConnected {
                    disposition,
                    sip: None,
                    after,
                });
                let settled = self.settle_looked(attempt, rang, find(finding)).await?;
                return self.close_seen(settled, sight).await;
            }
            Step::Review(cause) => {
                self.settle_looked(attempt, rang, find(Finding::Review(cause)))
                    .await?;
                return self.finished_unseen(&known, sight).await;
            }
            Step::Unresolved => {
                let settled = self
                    .settle_looked(attempt, rang, find(Finding::Unresolved))
                    .await?;
                return self.close_seen(settled, sight).await;
            }
        }
        Ok(())
    }

    /// The state stays. What is looked at by the ledger's time goes back to it.
    async fn keep(
        &self,
        watch: &Watch,
        known: &Known,
        sight: &Sight,
        watched: &Watched,
    ) -> Result<(), Error> {
        let now = self.ledger.now();
        let hourly = now.plus(self.config.reconcile.uncertain_look);
        let attempt = &known.attempt;
        match attempt.state {
            State::Answered => {
                self.watches.forget(watch.session);
                Ok(())
            }
            State::NeedsReview => {
                self.watches.forget(watch.session);
                self.finished_unseen(known, sight).await?;
                let closes = attempt.since.plus(self.config.attempt.review_hold);
                // While its room is listed, the room's end is news.
                let next = match sight.room {
                    Some(_) => now.plus(self.config.reconcile.answered_look * LISTED_REVIEW),
                    None => hourly,
                };
                self.put_off(attempt, next.min(hourly).min(closes).max(now))
                    .await
            }
            // Its time is over and nothing is decided: then hourly, for whoever reads it. We
            // ourselves go on looking.
            State::Uncertain
                if watched.past_horizon && attempt.look_at.is_some_and(|at| at <= now) =>
            {
                self.put_off(attempt, hourly).await
            }
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::Canceled => Ok(()),
        }
    }

    /// Settles by looks, if the attempt is still as it was looked at.
    async fn settle_looked(
        &self,
        attempt: &Attempt,
        rang: Option<Time>,
        found: (Finding, String),
    ) -> Result<Option<Settlement>, Error> {
        let Some(of) = Try::of(attempt) else {
            return Ok(None);
        };
        let state = attempt.state;
        let settled = self
            .settler
            .settle(&of, Cause::Looked, rang, |present| {
                (present.state == state).then(|| found.clone())
            })
            .await?;
        if let Some(settlement) = &settled {
            let attempt = &settlement.attempt;
            let disposition = attempt.settled.as_ref().map(|s| s.disposition);
            tracing::info!(
                event = "attempt.reconciled",
                workspace = %attempt.workspace,
                attempt = %attempt.id,
                state = attempt.state.name(),
                disposition = disposition.map(tracing::field::debug),
                evidence = found.1,
                "looking settled what was open"
            );
        }
        Ok(settled)
    }

    /// The room of what was just settled: one that is not listed is finished; another is
    /// deleted.
    async fn close_seen(&self, settled: Option<Settlement>, sight: &Sight) -> Result<(), Error> {
        match settled.and_then(|s| s.closing) {
            Some(room) if sight.room.is_none() => self.rooms.gone(&room, RoomCause::Finished).await,
            Some(room) => self.room(room).await,
            None => Ok(()),
        }
    }

    /// The room of what stays open is finished: creation and end are told as a pair.
    async fn finished_unseen(&self, known: &Known, sight: &Sight) -> Result<(), Error> {
        match &known.room {
            Some(room) if sight.room.is_none() && room.state == RoomState::Created => {
                self.rooms.gone(room, RoomCause::Finished).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A recorded stop is carried out: again in its turn, until nothing of it is left.
    async fn delete_by_stop(
        &self,
        watch: &Watch,
        known: &Known,
        found: Met,
        proof: &str,
    ) -> Result<(), Error> {
        let Some(room) = &known.room else {
            return Ok(());
        };
        let attempt = &known.attempt;
        // Looked again: who rang when the round began may talk by now. Nobody waits between
        // the look and the deletion; whoever comes next does.
        self.budget.charge(2.0);
        let stopped = self.stop_room(attempt, &room.name, watch.session).await?;
        // Only "it was there and is deleted" proves that the deletion met the leg.
        let met = stopped.deleted;
        let gone = met
            || attempt.hangs_up()
                && self.rooms.delete_within(room, &self.budget).await == Deletion::Gone;
        self.watches
            .again(watch.session, self.config.room.stop_interval);
        if !gone {
            return Ok(());
        }
        let found = stopped.met.unwrap_or(found);
        let rang = rang(&known.call, self.ledger.now());
        let finding = match found {
            Met::Ringing { .. } if met => Finding::NotConnected(NotConnected {
                disposition: crate::model::disposition::Disposition::Canceled,
                sip: None,
                // Whether its bridge lives to send a CANCEL is not known.
                after: After::Silent,
            }),
            Met::Talking(leg) => hung_up(attempt, leg),
            Met::Nobody if attempt.state == State::Answered => {
                // The callee had left before, or an earlier deletion met them.
                Finding::Over(attempt.ended_by(EndCause::LegLeft, attempt.is_met()))
            }
            Met::Ringing { .. } | Met::Nobody => {
                return self.rooms.gone(room, RoomCause::Canceled).await;
            }
        };
        let proof = format!("{proof}; the room was deleted");
        let settled = self.settle_looked(attempt, rang, (finding, proof)).await?;
        match settled.and_then(|s| s.closing) {
            Some(room) => {
                let cause = room.cause.unwrap_or(RoomCause::Canceled);
                self.rooms.gone(&room, cause).await
            }
            None => Ok(()),
        }
    }

    /// A commit says that the room is deleted on purpose; only then is it.
    pub(super) async fn record_stop(
        &self,
        attempt: &Attempt,
        call: &Call,
        why: StopWhy,
        proof: &str,
    ) -> Result<(), Error> {
        if why == StopWhy::AgentLost && call.agents_in().next().is_some() {
            self.gaps.found(Gap::AgentLeft);
        }
        let (ws, id) = (&attempt.workspace, &attempt.id);
        tracing::warn!(
            event = "attempt.stopped",
            workspace = %ws,
            attempt = %id,
            why = ?why,
            evidence = proof,
            "a call is ended on purpose"
        );
        let (state, of) = (attempt.state, Try::of(attempt));
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let Some(mut now) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                if now.state != state || Try::of(&now) != of || now.hangs_up() {
                    return Ok(Decision::Keep(()));
                }
                let at = self.ledger.now();
                now.stop = Some(Stop::new(why, at));
                let mut change = Change::default();
                change.attempt(&now, Cause::Looked)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }

    /// Something ended that webhooks tell, and none told it.
    fn missed(&self, call: &Call, gap: Gap) {
        if call.told.is_none() {
            self.gaps.found(gap);
        }
    }

    /// The room of a settled attempt, as whoever settled it left it.
    pub(super) async fn close_room(&self, settled: Option<Settlement>) -> Result<(), Error> {
        match settled.and_then(|s| s.closing) {
            Some(room) => self.room(room).await,
            None => Ok(()),
        }
    }
}

/// How much rarer than an answered call a review is looked at whose room is still listed.
const LISTED_REVIEW: u32 = 10;

/// What ended it: as LiveKit told why the callee's leg left, or else by whom a deletion met.
fn ended(attempt: &Attempt, call: &Call, by_itself: EndCause) -> EndCause {
    let left = call.ended().and_then(|(_, leg)| leg.left);
    let deleted = left.and_then(|left| left.reason.is_by_deletion());
    attempt.ended_by(by_itself, deleted.unwrap_or(attempt.is_met()))
}

/// A recorded stop hung up on an answered leg.
fn hung_up(attempt: &Attempt, leg: Leg) -> Finding {
    let cause = attempt.ended_by(EndCause::RoomGone, true);
    if attempt.state == State::Answered {
        Finding::Over(cause)
    } else {
        Finding::WasAnswered(leg, cause)
    }
}

/// Since when it is known to have rung.
fn rang(call: &Call, now: Time) -> Option<Time> {
    call.rang().then(|| {
        call.callees()
            .filter(|(_, leg)| leg.ringing || leg.was_answered())
            .filter_map(|(_, leg)| leg.first)
            .min()
            .unwrap_or(now)
    })
}

/// What was asked, when, what came back, which events.
fn proof(planned: &Planned, sight: &Sight, watched: &Watched, known: &Known) -> String {
    format!(
        "{}. Last look: {}; {}; known: {}",
        planned.why,
        sight.describe(),
        watched.describe(),
        events(&known.attempt, &known.call)
    )
}

/// What webhooks, looks and the dial itself told of the leg.
fn events(attempt: &Attempt, call: &Call) -> String {
    let answer = attempt.placed.as_ref().and_then(|p| p.answer.as_ref());
    match (call.leg(), answer) {
        (Some((sid, leg)), _) => evidence::describe(sid, leg),
        // The answer came before anybody looked, and no webhook told of the leg.
        (None, Some(answer)) => format!(
            "the dial was answered with leg {} of SIP call {}, which was not seen otherwise",
            answer.leg.participant, answer.leg.call
        ),
        (None, None) => "no leg was ever seen".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{NOW, attempt, leg, seen};
    use super::*;
    use crate::model::attempt::Answered;
    use crate::model::observation::CallStatus;

    #[test]
    fn the_leg_that_the_dial_named_is_no_leg_that_was_never_seen() {
        let mut open = attempt(State::Answered);
        assert_eq!(events(&open, &Call::default()), "no leg was ever seen");
        open.placed.as_mut().unwrap().answer = Some(Answered {
            at: NOW,
            leg: leg(),
            proof: String::new(),
        });
        let told = events(&open, &Call::default());
        assert!(
            told.contains("answered with leg PA_1 of SIP call SCL_1"),
            "{told}"
        );
        let told = events(&open, &seen(CallStatus::Ringing, None));
        assert_eq!(told, "leg PA_1 was seen ringing");
    }
}
