//! What a finding makes of an attempt: one pure decision, for the answer to a dial, for a
//! try that failed before it, and for what the reconciler found.

mod answered;
mod contradicted;
mod failed;
mod late;

use std::sync::Arc;
use std::time::Duration;

use crate::admission::rules::Answer;
use crate::config::Config;
use crate::ledger::record::{Contact, Number, Room, RoomCause, attempt_key, keys_of};
use crate::ledger::{Change, Decision, Error, Ledger, View};
use crate::model::attempt::{
    Attempt, Cause, EndCause, Event, Outcome, Resolution, ReviewCause, Settled, StopWhy,
};
use crate::model::disposition::{Disposition, Rang};
use crate::model::id::{AttemptId, SessionId, Workspace};
use crate::model::time::Time;
use crate::model::verdict::{After, Leg, NotConnected, TryFailure, Unclear};
use crate::model::window::Slacks;
use crate::runtime::mutant::{self, Mutant};
use crate::telemetry::counters::Counters;

/// What was found out about a try.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// It certainly started no call. With a rule's answer, if a rule turned it back.
    NoCall(TryFailure, Option<Answer>),
    /// It was answered.
    Answered(Leg),
    /// It ended without an answer.
    NotConnected(NotConnected),
    /// What became of it is not known.
    Unclear(Unclear),
    /// It had been answered, and is over.
    Over(EndCause),
    /// Looks found the leg alive: answered.
    Adopted(Leg),
    /// What was not known to be answered was, and is over.
    WasAnswered(Leg, EndCause),
    /// Evidence cannot settle it: a person must.
    Review(ReviewCause),
    /// No person did.
    Unresolved,
    /// A person says so.
    Resolved(Resolution),
}

/// A try's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// The session: the fence. What another try became is none of this one's business.
    pub session: SessionId,
}

impl Try {
    /// The present or last try of an attempt, if it had one.
    #[must_use]
    pub fn of(attempt: &Attempt) -> Option<Self> {
        attempt.placed.as_ref().map(|placed| Self {
            workspace: attempt.workspace.clone(),
            attempt: attempt.id.clone(),
            session: placed.session,
        })
    }
}

/// What came of settling.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The attempt as it stands.
    pub attempt: Attempt,
    /// The room, if this closed it: whoever settled deletes it now.
    pub closing: Option<Room>,
    /// The records of the try, as they are now.
    pub seen: View,
}

/// The decision, with what it needs from the configuration.
#[derive(Debug)]
pub struct Settler {
    ledger: Arc<Ledger>,
    config: Arc<Config>,
    counters: Arc<Counters>,
    slacks: Slacks,
}

impl Settler {
    /// With the times of `config`; what is placed is counted in `counters`.
    #[must_use]
    pub fn new(ledger: &Arc<Ledger>, config: &Arc<Config>, counters: &Arc<Counters>) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            config: Arc::clone(config),
            counters: Arc::clone(counters),
            slacks: slacks(config),
        }
    }

    /// Settles a try by what `find` says of the attempt as it stands, in one commit.
    /// `None`: there is nothing to settle (another try runs, or `find` found nothing).
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn settle(
        &self,
        of: &Try,
        cause: Cause,
        ring_time: Option<Time>,
        find: impl FnMut(&Attempt) -> Option<(Finding, String)> + Send,
    ) -> Result<Option<Settlement>, Error> {
        self.settle_from(of, View::default(), cause, ring_time, find)
            .await
    }

    /// [`Settler::settle`], by whoever has `seen` the records of the try.
    pub(super) async fn settle_from(
        &self,
        of: &Try,
        seen: View,
        cause: Cause,
        ring_time: Option<Time>,
        mut find: impl FnMut(&Attempt) -> Option<(Finding, String)> + Send,
    ) -> Result<Option<Settlement>, Error> {
        let (ws, id) = (&of.workspace, &of.attempt);
        let jitter = self.ledger.ids().unit();
        let mut was_placed = false;
        let decided = self
            .ledger
            .decide_from(ws, seen, |view| {
                if !view.has(&attempt_key(ws, id)) {
                    return Ok(Decision::More(vec![attempt_key(ws, id)]));
                }
                let Some(mut attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(None));
                };
                match &mut attempt.placed {
                    Some(placed) if placed.session == of.session || mutant::is(Mutant::NoFence) => {
                        placed.ring_time = placed.ring_time.or(ring_time);
                    }
                    Some(_) | None => return Ok(Decision::Keep(None)),
                }
                let keys = keys_of(&attempt);
                if keys.iter().any(|key| !view.has(key)) {
                    return Ok(Decision::More(keys));
                }
                let Some((finding, evidence)) = find(&attempt) else {
                    return Ok(Decision::Keep(None));
                };
                was_placed = is_placed(&attempt);
                let settling = Settling::new(self, view, attempt, cause, evidence, jitter)?;
                settling.decide(finding).map(|decision| decision.map(Some))
            })
            .await?;
        if decided.version.is_some()
            && let Some((attempt, _)) = &decided.answer
            && is_placed(attempt)
            && !was_placed
        {
            self.counters.placed(attempt);
        }
        Ok(decided.answer.map(|(attempt, closing)| Settlement {
            attempt,
            closing,
            seen: decided.seen,
        }))
    }
}

/// Whether the placement marker is written.
fn is_placed(attempt: &Attempt) -> bool {
    attempt
        .placed
        .as_ref()
        .is_some_and(|placed| placed.answer.is_some())
}

/// The slacks of the configuration.
#[must_use]
pub fn slacks(config: &Config) -> Slacks {
    let dial = &config.dial;
    Slacks {
        send_by: dial.send_by,
        server: dial.server_slack,
        client: dial.client_slack,
        acknowledgement: dial.acknowledgement,
        window: dial.window_slack,
        token_leeway: config.livekit.token_leeway,
        no_answer: dial.no_answer_slack,
        deadline_exceeded: dial.deadline_exceeded_slack,
        unclear: dial.unclear_slack,
    }
}

/// One settling on one view.
struct Settling<'a> {
    settler: &'a Settler,
    before: Attempt,
    attempt: Attempt,
    contact: Contact,
    number: Number,
    room: Option<Room>,
    cause: Cause,
    evidence: String,
    jitter: f64,
    now: Time,
}

type Decided = Result<Decision<(Attempt, Option<Room>)>, Error>;

impl<'a> Settling<'a> {
    fn new(
        settler: &'a Settler,
        view: &View,
        attempt: Attempt,
        cause: Cause,
        evidence: String,
        jitter: f64,
    ) -> Result<Self, Error> {
        let ws = &attempt.workspace;
        let session = attempt.placed.as_ref().map(|p| p.session);
        Ok(Self {
            contact: view.contact(ws, &attempt.spec.contact)?,
            number: view.number(ws, &attempt.number_key)?,
            room: session
                .map(|session| view.room(ws, session))
                .transpose()?
                .flatten(),
            now: settler.ledger.now(),
            settler,
            before: attempt.clone(),
            attempt,
            cause,
            evidence,
            jitter,
        })
    }

    fn decide(self, finding: Finding) -> Decided {
        match finding {
            Finding::NoCall(failure, turned) => self.no_call(failure, turned),
            Finding::Answered(leg) => self.answered(leg),
            Finding::NotConnected(end) => self.not_connected(end),
            Finding::Unclear(unclear) => self.unclear(unclear),
            Finding::Over(why) => self.over(why),
            Finding::Adopted(leg) => self.adopted(leg),
            Finding::WasAnswered(leg, why) => self.was_answered(leg, why),
            Finding::Review(why) => self.review(why),
            Finding::Unresolved => self.unresolved(),
            Finding::Resolved(as_what) => self.resolved(as_what),
        }
    }

    fn not_connected(mut self, end: NotConnected) -> Decided {
        let stop = self.attempt.stop.as_ref().map(|s| s.why);
        let hold = &self.settler.config.dial;
        let until = match end.after {
            _ if mutant::is(Mutant::NoHoldAfterEnd) => None,
            After::Over => None,
            After::Canceled => Some(self.now.plus(hold.hold_after_cancel)),
            After::Silent => Some(self.now.plus(hold.hold_after_silence)),
        };
        let (event, disposition, room) = match (end.disposition, stop) {
            (Disposition::Canceled, Some(StopWhy::AgentLost)) => (
                Event::NotConnect,
                Disposition::AgentLost,
                RoomCause::AgentLost,
            ),
            (Disposition::Canceled, _) => {
                (Event::Cancel, Disposition::Canceled, RoomCause::Canceled)
            }
            (disposition, _) => (Event::NotConnect, disposition, RoomCause::NotConnected),
        };
        self.end(disposition, true);
        if let Some(settled) = &mut self.attempt.settled {
            settled.sip = end.sip;
            settled.after = Some(end.after);
        }
        self.apply(event, room, until)
    }

    fn unclear(mut self, unclear: Unclear) -> Decided {
        let now = self.now;
        let slacks = &self.settler.slacks;
        if let Some(placed) = &mut self.attempt.placed {
            let horizon = placed
                .marker
                .as_ref()
                .map(|m| m.horizon_after(unclear, now, slacks));
            placed.horizon = horizon;
            placed.unclear = Some(unclear);
            self.attempt.look_at = Some(horizon.unwrap_or(now));
        }
        // A recorded stop goes on being carried out.
        if self.attempt.stop.is_some() {
            self.attempt.look_at = Some(now);
        }
        self.apply_alive(Event::LoseSight)
    }

    fn over(mut self, why: EndCause) -> Decided {
        let now = self.now;
        let settled = self
            .attempt
            .settled
            .get_or_insert_with(|| Settled::new(Disposition::Answered, Rang::Rang, true, now));
        settled.end_cause = Some(why);
        settled.at = now;
        let cause = match why {
            EndCause::RoomGone => RoomCause::Finished,
            EndCause::LegLeft | EndCause::Resolved => RoomCause::Ended,
            EndCause::Canceled => RoomCause::Canceled,
            EndCause::Maximum => RoomCause::Maximum,
            EndCause::AgentLost => RoomCause::AgentLost,
        };
        self.apply(Event::End, cause, None)
    }

    fn end(&mut self, disposition: Disposition, call_started: bool) {
        let rang = self.attempt.rang();
        self.attempt.settled = Some(Settled::new(disposition, rang, call_started, self.now));
    }

    /// `event` happens to the attempt; why not, if it is passed over.
    fn happens(&mut self, event: Event) -> Result<Option<&'static str>, Error> {
        let before = self.attempt.state;
        let evidence = self.evidence.clone();
        match self.attempt.apply(event, self.now, self.cause, evidence) {
            Outcome::Applied(_) => Ok(None),
            Outcome::Ignored(why) => Ok(Some(why)),
            Outcome::Illegal => Err(Error::Fault(format!(
                "{event:?} cannot happen to {before:?}"
            ))),
        }
    }

    /// The try is over: contact and number are freed (at `until`, if the phone may still
    /// ring), and the room is to be deleted.
    fn apply(mut self, event: Event, room: RoomCause, until: Option<Time>) -> Decided {
        if let Some(why) = self.happens(event)? {
            return self.ignored(event, why);
        }
        let id = self.attempt.id.clone();
        self.contact.held.free(&id, until);
        self.number.held.free(&id, until);
        let horizon = self
            .attempt
            .placed
            .as_ref()
            .and_then(|p| p.horizon().or(Some(p.reserved_until)));
        let config = &self.settler.config;
        // Whoever settles deletes the room at once, and this is for whoever finds it left; but
        // the room of a call that ended by itself stays a little for its agent.
        let due = self.now.plus(match room {
            RoomCause::Ended => config.agent.linger,
            RoomCause::NeverCreated
            | RoomCause::TryFailed
            | RoomCause::NotConnected
            | RoomCause::Canceled
            | RoomCause::AgentLost
            | RoomCause::Maximum
            | RoomCause::Finished
            | RoomCause::Late
            | RoomCause::Operator
            | RoomCause::Outlived => config.janitor.delete_timeout,
        });
        if let Some(record) = &mut self.room {
            record.horizon = horizon;
            record.close(room, due);
        }
        let closing = self.room.clone();
        self.write(closing)
    }

    /// The try goes on: contact and number stay held.
    fn apply_alive(mut self, event: Event) -> Decided {
        if let Some(why) = self.happens(event)? {
            return self.ignored(event, why);
        }
        let id = self.attempt.id.clone();
        let due = self.attempt.due().unwrap_or(self.now);
        self.contact.held.take(&id, self.now, due);
        self.number.held.take(&id, self.now, due);
        if mutant::is(Mutant::UncertainFreesHold) && event == Event::LoseSight {
            self.contact.held.free(&id, None);
            self.number.held.free(&id, None);
        }
        self.write(None)
    }

    fn write(self, closing: Option<Room>) -> Decided {
        let mut change = Change::default();
        change.attempt(&self.attempt, self.cause)?;
        change.put(&self.contact)?;
        change.put(&self.number)?;
        if let Some(room) = &self.room {
            change.put(room)?;
        }
        Ok(Decision::Write(change, (self.attempt, closing)))
    }
}

/// `first`, doubled with each setback, at most `most`, and a share of it for jitter.
#[must_use]
pub fn backoff(setbacks: u32, first: Duration, most: Duration, share: f64) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(setbacks.saturating_sub(1).min(16)));
    let pause = doubled.min(most);
    pause.saturating_add(pause.mul_f64(share.clamp(0.0, 1.0)))
}
