//! The attempt marker: the last commit before the dial, and the last moment at which a rule
//! or a stop turns it back.

use std::sync::Arc;

use super::settle::Try;
use crate::admission::rules::{self, Answer, Facts};
use crate::ledger::record::{RoomState, attempt_key, keys_of};
use crate::ledger::store::Version;
use crate::ledger::{Change, Decision, Error, Ledger, View};
use crate::model::attempt::{Attempt, Cause, Event, Outcome, State};
use crate::model::phone::{E164, NumberRules};
use crate::model::verdict::TryFailure;
use crate::model::window::Marker;
use crate::provider::TrunkId;
use crate::runtime::mutant::{self, Mutant};

/// What the marker says beside the times.
#[derive(Debug, Clone)]
pub(super) struct Marking<'a> {
    /// The try.
    pub of: &'a Try,
    /// The marker.
    pub marker: Marker,
    /// The room's id on the platform.
    pub sid: &'a str,
    /// The trunk that the dial uses.
    pub trunk: &'a TrunkId,
    /// The number, which the rules see once more.
    pub to: &'a E164,
    /// The records of the try, as they were seen last.
    pub seen: View,
    /// Whether this is the second send, after the trunk was resolved anew.
    pub heal: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Marked {
    /// It is written, with this version: dial. With the records of the try.
    Written(Box<Attempt>, Version, View),
    /// It is not, and nothing may be dialed.
    TurnedBack(TryFailure, Option<Answer>),
}

/// What the decision says.
enum Verdict {
    Written(Box<Attempt>),
    TurnedBack(TryFailure, Option<Answer>),
}

/// Writes markers.
#[derive(Debug)]
pub(super) struct Markers {
    pub ledger: Arc<Ledger>,
    pub numbers: NumberRules,
}

impl Markers {
    /// Writes the marker, unless the try is no longer ours to dial. The rules are asked
    /// again, since seconds have passed: a contact that was taken meanwhile is not rung.
    pub(super) async fn write(&self, mut marking: Marking<'_>) -> Result<Marked, Error> {
        let seen = std::mem::take(&mut marking.seen);
        let (ws, id) = (&marking.of.workspace, &marking.of.attempt);
        let decided =
            self.ledger
                .decide_from(ws, seen, |view| {
                    let turned = |why| Ok(Decision::Keep(Verdict::TurnedBack(why, None)));
                    if !view.has(&attempt_key(ws, id)) {
                        return Ok(Decision::More(vec![attempt_key(ws, id)]));
                    }
                    let Some(attempt) = view.attempt(ws, id)? else {
                        return turned(TryFailure::Abandoned);
                    };
                    if attempt.placed.as_ref().is_none_or(|p| {
                        p.session != marking.of.session && !mutant::is(Mutant::NoFence)
                    }) {
                        return turned(TryFailure::Abandoned);
                    }
                    let missing = keys_of(&attempt);
                    if missing.iter().any(|key| !view.has(key)) {
                        return Ok(Decision::More(missing));
                    }
                    self.decide(view, attempt, &marking)
                })
                .await?;
        Ok(match (decided.answer, decided.version) {
            (Verdict::Written(attempt), Some(version)) => {
                Marked::Written(attempt, version, decided.seen)
            }
            // Nothing was committed, so nothing may be dialed.
            (Verdict::Written(_), None) => Marked::TurnedBack(TryFailure::Abandoned, None),
            (Verdict::TurnedBack(why, answer), _) => Marked::TurnedBack(why, answer),
        })
    }

    fn decide(
        &self,
        view: &View,
        mut attempt: Attempt,
        marking: &Marking<'_>,
    ) -> Result<Decision<Verdict>, Error> {
        let now = self.ledger.now();
        let turned = |why, answer| Ok(Decision::Keep(Verdict::TurnedBack(why, answer)));
        let expected = if marking.heal {
            State::Dialing
        } else {
            State::Reserved
        };
        if mutant::is(Mutant::CancelIgnoredAtMarker) && attempt.state == State::Canceled {
            (attempt.state, attempt.cancel) = (State::Reserved, None);
        }
        if attempt.state != expected {
            return turned(TryFailure::Abandoned, None);
        }
        if attempt.cancel.is_some() || attempt.stop.is_some() {
            return turned(TryFailure::Stopped, None);
        }
        let mut contact = view.contact(&attempt.workspace, &attempt.spec.contact)?;
        let mut number = view.number(&attempt.workspace, &attempt.number_key)?;
        let facts = Facts {
            now,
            attempt: &attempt,
            known: true,
            to: Some(marking.to),
            remembered_since: self.ledger.epoch().since,
            epoch: self.ledger.epoch().id,
            contact: &contact.held,
            number: &number.held,
            numbers: &self.numbers,
        };
        match rules::ask(&facts) {
            Answer::Pass => {}
            answer @ (Answer::NotNow(_) | Answer::Never(_)) => {
                return turned(TryFailure::TurnedBack, Some(answer));
            }
        }
        let cause = if marking.heal {
            Cause::Healed
        } else {
            Cause::Marked
        };
        match attempt.apply(Event::Dial, now, cause, String::new()) {
            Outcome::Applied(_) => {}
            Outcome::Ignored(_) | Outcome::Illegal => return turned(TryFailure::Abandoned, None),
        }
        let mut room = None;
        if let Some(placed) = &mut attempt.placed {
            placed.marker = Some(marking.marker.clone());
            placed.heals += u32::from(marking.heal);
            room = view.room(&attempt.workspace, placed.session)?;
        }
        let due = attempt.due().unwrap_or(now);
        for held in [&mut contact.held, &mut number.held] {
            held.take(&attempt.id, now, due);
            if !marking.heal {
                held.dialed(now);
            }
        }
        let mut change = Change::default();
        change.attempt(&attempt, cause)?;
        change.put(&contact)?;
        change.put(&number)?;
        if let Some(room) = &mut room {
            room.state = RoomState::Created;
            room.sid = Some(marking.sid.to_owned());
            room.trunk = Some(marking.trunk.to_string());
            change.put(room)?;
        }
        Ok(Decision::Write(change, Verdict::Written(Box::new(attempt))))
    }
}
