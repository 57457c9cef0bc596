//! What the answer of the rules makes of an attempt: reserved, waiting or refused.

use std::sync::Arc;

use super::pace::{NotNow, Pace, Slot};
use super::rules::{self, Answer, Facts};
use crate::config::Config;
use crate::ledger::call::{Stray, stray_key};
use crate::ledger::record::{Contact, Number, Room, RoomState, Session, room_key, session_key};
use crate::ledger::{Change, Decision, Error, Ledger, View};
use crate::model::attempt::{
    Attempt, Cause, Event, Keep, Outcome, Placed, Reason, Rule, Settled, Waiting, transition,
};
use crate::model::disposition::{Disposition, Rang};
use crate::model::id::{Nonce, SessionId};
use crate::model::phone::{NumberClass, NumberRules};
use crate::model::request::Private;
use crate::model::time::Time;
use crate::model::verdict::Unclear;
use crate::runtime::mutant::{self, Mutant};

/// A reserved try: whoever holds this, and nobody else, runs it.
#[derive(Debug)]
pub struct Claim {
    /// The attempt as committed.
    pub attempt: Attempt,
    /// What is sealed in it.
    pub private: Private,
    /// The right to dial.
    pub slot: Slot,
    /// The records of the try, as they were committed.
    pub seen: View,
}

/// An attempt after a decision.
#[derive(Debug, Clone)]
pub struct Entered {
    /// The attempt.
    pub attempt: Attempt,
    /// Whether this decision reserved it.
    pub reserved: bool,
}

/// What decides entries: the rules and the pace, with their configuration.
#[derive(Debug)]
pub struct Door {
    pub(super) ledger: Arc<Ledger>,
    pub(super) pace: Arc<Pace>,
    pub(super) config: Arc<Config>,
    pub(super) numbers: NumberRules,
}

/// The slot of one decision, taken when the rules first let it pass, and kept while the
/// decision is made anew after a conflict.
#[derive(Debug, Default)]
pub(super) struct Ticket(Option<Result<Slot, NotNow>>);

impl Ticket {
    pub(super) fn into_slot(self) -> Option<Slot> {
        self.0.and_then(Result::ok)
    }
}

/// One decision to be made.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub attempt: Attempt,
    /// Whether the ledger knew the attempt.
    pub known: bool,
    pub private: &'a Private,
    pub now: Time,
}

/// An attempt that was let in, with what it holds.
struct Admitted {
    attempt: Attempt,
    /// Whether the ledger knew the attempt.
    known: bool,
    contact: Contact,
    number: Number,
}

impl Door {
    /// Where the rules let `entry` go.
    pub(super) fn enter(
        &self,
        view: &View,
        entry: Entry<'_>,
        ticket: &mut Ticket,
    ) -> Result<Decision<Entered>, Error> {
        let Entry {
            attempt,
            known,
            private,
            now,
        } = entry;
        let contact = view.contact(&attempt.workspace, &attempt.spec.contact)?;
        let number = view.number(&attempt.workspace, &attempt.number_key)?;
        let facts = Facts {
            now,
            attempt: &attempt,
            known,
            to: Some(&private.to),
            remembered_since: self.remembered_since(now),
            epoch: self.ledger.epoch().id,
            contact: &contact.held,
            number: &number.held,
            numbers: &self.numbers,
        };
        match self.with_pace(rules::ask(&facts), &attempt, known, ticket, now) {
            Answer::Pass => self.reserve(view, attempt, known, now, contact, number),
            Answer::NotNow(reason) => self.wait(attempt, known, reason, now),
            Answer::Never(reason) => refuse(attempt, known, reason, now),
        }
    }

    /// Intents from before this are not remembered: the store's epoch, or the retention.
    pub(super) fn remembered_since(&self, now: Time) -> Time {
        let retention = self.config.store.id_retention;
        self.ledger.epoch().since.max(now.minus(retention))
    }

    fn with_pace(
        &self,
        answer: Answer,
        attempt: &Attempt,
        known: bool,
        ticket: &mut Ticket,
        now: Time,
    ) -> Answer {
        if answer != Answer::Pass {
            return answer;
        }
        let trunk = &attempt.spec.trunk;
        let taken = ticket.0.get_or_insert_with(|| {
            if known {
                self.pace.take(trunk)
            } else {
                self.pace.take_new(trunk)
            }
        });
        match taken {
            Ok(_) => Answer::Pass,
            Err(NotNow { after }) => Answer::NotNow(Reason {
                rule: Rule::Pace,
                holder: None,
                until: Some(now.plus(*after)),
            }),
        }
    }

    /// A new try: a new session, a new room, and the contact and the number are held. The
    /// room is recorded before it is made, so that whoever finds the record can undo it.
    fn reserve(
        &self,
        view: &View,
        mut attempt: Attempt,
        known: bool,
        now: Time,
        mut contact: Contact,
        mut number: Number,
    ) -> Result<Decision<Entered>, Error> {
        let tries = attempt.tries.saturating_add(1);
        let (ws, id) = (attempt.workspace.clone(), attempt.id.clone());
        let named = if mutant::is(Mutant::RoomUsedAgain) {
            1
        } else {
            tries
        };
        let session = SessionId::of(self.ledger.deployment(), &ws, &id, named);
        let keys = [
            room_key(&ws, session),
            session_key(session),
            stray_key(&ws, &id),
        ];
        if keys.iter().any(|key| !view.has(key)) {
            // A session is named by attempt and try, and this try has just been counted.
            return Ok(Decision::New(keys.into()));
        }
        if let Some(stray) = view.stray(&ws, &id)? {
            let entry = Admitted {
                attempt,
                known,
                contact,
                number,
            };
            return self.lost_sight(view, entry, &stray, now);
        }
        if view.room(&ws, session)?.is_some() && !mutant::is(Mutant::RoomUsedAgain) {
            return Err(Error::Fault(format!(
                "the session {session} was used before"
            )));
        }
        let join = std::time::Duration::from_millis(attempt.spec.agent.join_ms);
        let reserved_until = now.plus(self.config.attempt.reserved_for).plus(join);
        let name = session.room(self.ledger.partition(&ws));
        let nonce = Nonce(self.ledger.ids().uuid());
        attempt.tries = tries;
        attempt.epoch = self.ledger.epoch().id;
        let placed = Placed::reserved(session, name, nonce, now, reserved_until);
        let room = Room::planned(&attempt, &placed);
        attempt.placed = Some(placed);
        go(
            &mut attempt,
            known,
            Event::Reserve,
            now,
            Cause::Admitted,
            String::new(),
        )?;
        contact.held.take(&id, now, reserved_until);
        number.held.take(&id, now, reserved_until);
        let mut change = Change::default();
        change.attempt(&attempt, Cause::Admitted)?;
        change.put(&contact)?;
        change.put(&number)?;
        change.put(&room)?;
        change.put(&Session {
            session,
            workspace: ws,
            attempt: id,
            number: tries,
        })?;
        Ok(Decision::Write(
            change,
            Entered {
                attempt,
                reserved: true,
            },
        ))
    }

    /// LiveKit has told of a call of this attempt that this store does not know: a history
    /// that was lost has dialed it, so it is not dialed again. It is reserved as that call's
    /// try and lost sight of in one commit; the reconciler settles it from what is seen.
    fn lost_sight(
        &self,
        view: &View,
        entry: Admitted,
        stray: &Stray,
        now: Time,
    ) -> Result<Decision<Entered>, Error> {
        let Admitted {
            mut attempt,
            known,
            mut contact,
            mut number,
        } = entry;
        let (ws, id) = (attempt.workspace.clone(), attempt.id.clone());
        let Some((&session, &nonce)) = stray.sessions.first_key_value() else {
            return Err(Error::Fault("a stray without a session".to_owned()));
        };
        let keys = [room_key(&ws, session), session_key(session)];
        if keys.iter().any(|key| !view.has(key)) {
            return Ok(Decision::More(keys.into()));
        }
        let horizon = now.plus(self.config.longest_horizon());
        let name = session.room(self.ledger.partition(&ws));
        let mut placed = Placed::reserved(session, name, nonce, now, horizon);
        placed.horizon = Some(horizon);
        placed.unclear = Some(Unclear::Abandoned);
        attempt.tries = attempt.tries.saturating_add(1);
        attempt.epoch = self.ledger.epoch().id;
        let mut room = Room::planned(&attempt, &placed);
        room.state = RoomState::Created;
        attempt.placed = Some(placed);
        attempt.look_at = Some(now);
        let told = "LiveKit told of a call of this attempt that this store does not know";
        for (from_known, event) in [(known, Event::Reserve), (true, Event::LoseSight)] {
            let evidence = told.to_owned();
            go(&mut attempt, from_known, event, now, Cause::Told, evidence)?;
        }
        contact.held.take(&id, now, horizon);
        number.held.take(&id, now, horizon);
        let mut change = Change::default();
        change.attempt(&attempt, Cause::Told)?;
        change.put(&contact)?;
        change.put(&number)?;
        change.put(&room)?;
        change.put(&Session {
            session,
            workspace: ws,
            attempt: id,
            number: attempt.tries,
        })?;
        let reserved = false;
        Ok(Decision::Write(change, Entered { attempt, reserved }))
    }

    /// Not now. Equal refusals are one record with count, first and last.
    fn wait(
        &self,
        mut attempt: Attempt,
        known: bool,
        reason: Reason,
        now: Time,
    ) -> Result<Decision<Entered>, Error> {
        let until = self.ask_again(&attempt, &reason, now);
        let before = attempt.waiting.take();
        let same = before
            .as_ref()
            .is_some_and(|w| w.reason.rule == reason.rule);
        let (first, count) = match before.as_ref().filter(|_| same) {
            Some(w) => (w.first, w.count.saturating_add(1)),
            None => (now, 1),
        };
        let not_before = before.as_ref().and_then(|w| w.not_before);
        let quiet = known && before.is_some_and(|w| alike(&w.reason, &reason));
        let cause = Cause::Rule(reason.rule);
        attempt.waiting = Some(Waiting {
            reason,
            until,
            not_before,
            count,
            first,
            last: now,
        });
        let event = match attempt.spec.keep {
            Keep::UntilExpiry => Event::Wait,
            Keep::Return => Event::Defer,
        };
        let state = attempt.state;
        go(&mut attempt, known, event, now, cause, String::new())?;
        attempt.epoch = self.ledger.epoch().id;
        let mut change = Change::default();
        if quiet && attempt.state == state {
            change.quietly(&attempt)?;
        } else {
            change.attempt(&attempt, cause)?;
        }
        Ok(Decision::Write(
            change,
            Entered {
                attempt,
                reserved: false,
            },
        ))
    }

    /// When a waiting attempt is decided anew: the earliest of its expiry, the rule's own
    /// time, the holder's time and a little, and a recheck; never before its back-off.
    fn ask_again(&self, attempt: &Attempt, reason: &Reason, now: Time) -> Time {
        let queue = &self.config.queue;
        let rule = match reason.holder {
            // A holder may keep what it holds beyond its time: an uncertain one does, for
            // hours. A time that has passed says nothing; asking by it would never pause.
            Some(_) => reason
                .until
                .map(|until| until.plus(queue.holder_slack))
                .filter(|at| *at > now),
            // The trunk has a time of its own for all that wait for it. Were each asked at its
            // own, a queue of thousands would be decided anew every second.
            None if reason.rule == Rule::Pace && attempt.spec.keep == Keep::UntilExpiry => None,
            None => reason.until.map(|until| until.max(now)),
        };
        let recheck = now.plus(queue.recheck);
        let earliest = rule.map_or(recheck, |rule| rule.min(recheck));
        let not_before = attempt.waiting.as_ref().and_then(|w| w.not_before);
        let asked = not_before.map_or(earliest, |not_before| earliest.max(not_before));
        // One moment beyond the expiry, so that the decision then finds it expired.
        asked.min(
            attempt
                .spec
                .expire_time
                .plus(std::time::Duration::from_millis(1)),
        )
    }
}

/// Whether two refusals tell a caller the same. The pace names another time each time.
fn alike(before: &Reason, now: &Reason) -> bool {
    before == now || (before.rule == Rule::Pace && now.rule == Rule::Pace)
}

/// Never, for this id.
pub(crate) fn refuse(
    mut attempt: Attempt,
    known: bool,
    reason: Reason,
    now: Time,
) -> Result<Decision<Entered>, Error> {
    let rule = reason.rule;
    let cause = Cause::Rule(rule);
    if known && attempt.history_lost() && rule == Rule::HistoryLost {
        return Ok(Decision::Keep(Entered {
            attempt,
            reserved: false,
        }));
    }
    attempt.waiting = Some(Waiting::first(reason, now, None, now));
    if let Some(disposition) = refused_as(rule) {
        attempt.settled = Some(Settled::new(disposition, Rang::NoEvidence, false, now));
    }
    go(
        &mut attempt,
        known,
        Event::Refuse,
        now,
        cause,
        String::new(),
    )?;
    let mut change = Change::default();
    change.attempt(&attempt, cause)?;
    Ok(Decision::Write(
        change,
        Entered {
            attempt,
            reserved: false,
        },
    ))
}

/// How an attempt is called that `rule` refused; lost history says nothing of the call.
pub(crate) const fn refused_as(rule: Rule) -> Option<Disposition> {
    match rule {
        Rule::Expired => Some(Disposition::Expired),
        Rule::Number(NumberClass::Invalid | NumberClass::Emergency) => {
            Some(Disposition::WrongNumber)
        }
        // The number may well exist; the rule's own name says why it is not dialed.
        Rule::Number(NumberClass::Premium | NumberClass::Country)
        | Rule::HistoryLost
        | Rule::ContactReserved
        | Rule::NumberInUse
        | Rule::Pace
        | Rule::NextTry => None,
    }
}

/// Applies `event` to an attempt that is known, or to a new one.
pub(super) fn go(
    attempt: &mut Attempt,
    known: bool,
    event: Event,
    at: Time,
    cause: Cause,
    evidence: String,
) -> Result<(), Error> {
    let from = known.then_some(attempt.state);
    match transition(from, event) {
        Outcome::Applied(to) => {
            attempt.enter(from, to, at, cause, evidence);
            Ok(())
        }
        Outcome::Ignored(_) | Outcome::Illegal => Err(Error::Fault(format!(
            "{event:?} does not apply to {from:?}"
        ))),
    }
}
