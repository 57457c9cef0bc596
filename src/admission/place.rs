//! `PlaceCall`: one commit decides what becomes of a request.

use std::sync::Arc;

use super::enter::{Claim, Door, Entered, Entry, Ticket};
use super::pace::Pace;
use super::queue::Bell;
use crate::config::Config;
use crate::ledger::record::{attempt_key, contact_key, number_key};
use crate::ledger::store::{self, Failure, Version};
use crate::ledger::{self, Change, Decision, Ledger, View};
use crate::model::attempt::{Attempt, Cause, Keep, Keyed, Spec, State, Waiting};
use crate::model::phone::NumberRules;
use crate::model::request::{Private, Request, fixed};
use crate::model::time::Time;
use crate::runtime::streak::Streak;
use crate::telemetry::counters::Counters;

/// Why a request was not decided.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The id stands for another call: these fields of the first request differ.
    #[error("this attempt id was used for another call; what differs: {}", .fields.join(", "))]
    IdReused {
        /// The fields.
        fields: Vec<&'static str>,
    },
    /// The workspace has as many waiting attempts as it may.
    #[error("the workspace has {limit} waiting attempts, as many as it may; nothing was decided")]
    QueueFull {
        /// The limit.
        limit: u64,
    },
    /// The process is stopping.
    #[error("this server is stopping; nothing was decided")]
    Draining,
    /// The store cannot be asked; nothing was decided.
    #[error("the store is not available, nothing was decided: {0}")]
    Unavailable(String),
    /// The store's disk is nearly full: what is left is for what is under way.
    #[error(
        "little space is left on the disk of the store, and nothing new is begun; nothing was \
         decided: free some, and send it again"
    )]
    NoRoom,
    /// Whether it was decided is not known: send the same id again.
    #[error("whether this was decided is not known; send the same id again")]
    DecisionUnknown,
    /// A fault of ours; nothing was decided.
    #[error("fault: {0}")]
    Fault(String),
}

impl From<ledger::Error> for PlaceError {
    fn from(error: ledger::Error) -> Self {
        match error {
            ledger::Error::Store(store::Error::Unknown(_)) => Self::DecisionUnknown,
            ledger::Error::Store(store::Error::NotApplied(failure)) => match failure {
                Failure::Newer(_) => Self::Fault(failure.to_string()),
                Failure::Busy
                | Failure::Full
                | Failure::ReadOnly
                | Failure::Corrupt(_)
                | Failure::Epoch
                | Failure::Closed
                | Failure::Other(_) => Self::Unavailable(failure.to_string()),
            },
            ledger::Error::Contended => Self::Unavailable(error.to_string()),
            ledger::Error::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Runs a reserved try. It answers at once; the try goes on in a task of its own.
pub trait Start: std::fmt::Debug + Send + Sync {
    /// Runs it.
    fn start(&self, claim: Claim);
}

/// Decides requests, and what waits.
#[derive(Debug)]
pub struct Admission {
    pub(super) door: Door,
    counters: Arc<Counters>,
    pub(super) bell: Arc<Bell>,
    pub(super) start: Arc<dyn Start>,
    /// Passes over the queue that the store refused.
    pub(super) refused: Streak,
}

/// A request's decision: the attempt and its version, or why there is none.
type Placed = Result<(Entered, Option<Version>), PlaceError>;

impl Admission {
    /// With the pace and the bell that observe the ledger, and what runs a reserved try.
    #[must_use]
    pub fn new(
        ledger: Arc<Ledger>,
        pace: Arc<Pace>,
        bell: Arc<Bell>,
        start: Arc<dyn Start>,
        config: Arc<Config>,
        numbers: NumberRules,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            door: Door {
                ledger,
                pace,
                config,
                numbers,
            },
            counters,
            bell,
            start,
            refused: Streak::default(),
        }
    }

    /// Decides `request` in one commit; when this returns, the decision is durable. A
    /// reserved try runs on by itself, whoever goes on waiting for it.
    ///
    /// # Errors
    ///
    /// If nothing was decided, or if that is not known.
    pub async fn place(&self, request: Request) -> Result<(Attempt, Version), PlaceError> {
        let ledger = &self.door.ledger;
        let (ws, id) = (request.workspace.clone(), request.attempt.clone());
        let number = ledger.number_key(&ws, &request.private.to);
        let fresh = self.fresh(&request, &number);
        let keys = vec![
            attempt_key(&ws, &id),
            contact_key(&ws, &request.spec.contact),
            number_key(&ws, &number),
        ];
        let mut ticket = Ticket::default();
        let decided = ledger
            .decide(&ws, keys, |view| {
                self.decide(view, &request, &fresh, &mut ticket)
            })
            .await?;
        let (entered, seen) = decided.answer?;
        // The record was there before, and not only as a cancel's tombstone.
        if seen.is_some() && !entered.attempt.tombstone {
            self.counters
                .redeliveries
                .heard(&entered.attempt, ledger.now());
        }
        let version = decided.version.or(seen).unwrap_or(Version(0));
        if entered.reserved
            && let Some(mut slot) = ticket.into_slot()
        {
            slot.bind();
            let attempt = entered.attempt.clone();
            self.start.start(Claim {
                attempt,
                private: request.private,
                slot,
                seen: decided.seen,
            });
        }
        Ok((entered.attempt, version))
    }

    fn decide(
        &self,
        view: &View,
        request: &Request,
        fresh: &Attempt,
        ticket: &mut Ticket,
    ) -> Result<Decision<Placed>, ledger::Error> {
        let now = self.door.ledger.now();
        let (ws, id) = (&request.workspace, &request.attempt);
        let seen = view.version(&attempt_key(ws, id));
        let private = &request.private;
        let no_room = || Ok(Decision::Keep(Err(PlaceError::NoRoom)));
        let has_room = self.door.ledger.has_room();
        let Some(known) = view.attempt(ws, id)? else {
            if !has_room {
                return no_room();
            }
            let mut attempt = fresh.clone();
            (attempt.create_time, attempt.since) = (now, now);
            attempt.sealed = Some(self.door.ledger.seal(ws, id, private)?);
            let entry = Entry {
                attempt,
                known: false,
                private,
                now,
            };
            return Ok(match self.door.enter(view, entry, ticket)? {
                Decision::Write(_, entered) if self.queue_is_full(&entered.attempt) => {
                    let limit = self.door.config.queue.limit;
                    Decision::Keep(Err(PlaceError::QueueFull { limit }))
                }
                decided @ (Decision::Write(..)
                | Decision::Keep(_)
                | Decision::More(_)
                | Decision::New(_)) => carry(decided, seen),
            });
        };
        let fields = differing(&known, fresh);
        if !known.tombstone && !fields.is_empty() {
            return Ok(Decision::Keep(Err(PlaceError::IdReused { fields })));
        }
        let mut updated = known.clone();
        let changed = self.update(&mut updated, request)?;
        if asks_anew(&known, request.spec.keep, now) {
            if !has_room {
                return no_room();
            }
            let entry = Entry {
                attempt: updated,
                known: true,
                private,
                now,
            };
            return Ok(carry(self.door.enter(view, entry, ticket)?, seen));
        }
        if changed {
            let mut change = Change::default();
            let cause = updated
                .waiting
                .as_ref()
                .map_or(Cause::Admitted, |w| Cause::Rule(w.reason.rule));
            change.attempt(&updated, cause)?;
            return Ok(Decision::Write(change, Ok((stays(updated), seen))));
        }
        Ok(Decision::Keep(Ok((stays(known), seen))))
    }

    /// An attempt as it would be accepted. It is sealed when it is: most that is asked for
    /// again is known, and is answered without.
    fn fresh(&self, request: &Request, number: &str) -> Attempt {
        let ledger = &self.door.ledger;
        let (ws, id) = (&request.workspace, &request.attempt);
        let keyed = Keyed {
            fingerprint: ledger.fingerprint(&fixed(&request.spec, number)),
            number_key: number.to_owned(),
            number_mask: request.private.to.mask(),
            sealed: None,
        };
        let (ws, id, spec) = (ws.clone(), id.clone(), request.spec.clone());
        Attempt::new(ws, id, spec, keyed, ledger.epoch().id, Time::ZERO)
    }

    /// Takes the changed mutable fields over, where the attempt waits; whether there were
    /// any. The intent's time stays that of the first call, and a back-off is not shortened.
    fn update(&self, known: &mut Attempt, request: &Request) -> Result<bool, ledger::Error> {
        let waits = matches!(known.state, State::Queued | State::Deferred) || known.history_lost();
        if !waits {
            return Ok(false);
        }
        let mut spec: Spec = request.spec.clone();
        spec.intend_time = known.spec.intend_time;
        if known.state == State::Queued {
            // We said that we keep it.
            spec.keep = Keep::UntilExpiry;
        }
        let private: Option<Private> = match known.sealed {
            Some(_) => Some(self.door.ledger.unseal(known)?),
            None => None,
        };
        if spec == known.spec && private.as_ref() == Some(&request.private) {
            return Ok(false);
        }
        if let Some(waiting) = &mut known.waiting {
            let Waiting {
                until, not_before, ..
            } = waiting;
            *until = not_before.unwrap_or(*until).min(*until);
        }
        known.spec = spec;
        let (ws, id) = (&request.workspace, &request.attempt);
        known.sealed = Some(self.door.ledger.seal(ws, id, &request.private)?);
        Ok(true)
    }

    fn queue_is_full(&self, attempt: &Attempt) -> bool {
        attempt.state == State::Queued
            && self.bell.depth(&attempt.workspace) >= self.door.config.queue.limit
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.door.ledger
    }
}

const fn stays(attempt: Attempt) -> Entered {
    Entered {
        attempt,
        reserved: false,
    }
}

fn carry(decision: Decision<Entered>, seen: Option<Version>) -> Decision<Placed> {
    decision.map(|entered| Ok((entered, seen)))
}

/// Whether a known attempt is decided anew by this call: a deferred one whose time has come
/// or whose caller hands it over, and one that was refused because history was lost.
fn asks_anew(known: &Attempt, keep: Keep, now: Time) -> bool {
    match known.state {
        State::Deferred => {
            keep == Keep::UntilExpiry || known.waiting.as_ref().is_none_or(|w| now >= w.until)
        }
        State::Refused => known.history_lost(),
        State::Queued
        | State::Reserved
        | State::Dialing
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::NeedsReview
        | State::Canceled => false,
    }
}

/// The fields that the first call fixed and that differ now.
fn differing(known: &Attempt, fresh: &Attempt) -> Vec<&'static str> {
    if known.fingerprint == fresh.fingerprint {
        return Vec::new();
    }
    let (a, b) = (&known.spec, &fresh.spec);
    [
        ("contact_id", a.contact != b.contact),
        ("outreach_id", a.outreach != b.outreach),
        ("campaign_id", a.campaign != b.campaign),
        ("to", known.number_key != fresh.number_key),
        ("follows", a.follows != b.follows),
    ]
    .into_iter()
    .filter_map(|(field, differs)| differs.then_some(field))
    .collect()
}
