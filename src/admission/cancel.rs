//! `CancelAttempt`: from this commit on nothing of the attempt begins any more.
//!
//! What has not been dialed is canceled here. What may ring is only told to stop: the
//! room is deleted by the placement that waits for its dial, or by the reconciler, never
//! by the handler of the request.

use super::place::{Admission, PlaceError};
use crate::ledger::record::{RoomCause, attempt_key, keys_of};
use crate::ledger::store::Version;
use crate::ledger::{Change, Decision, Error, View};
use crate::model::attempt::{
    AgentWanted, Attempt, CancelRequest, Cause, EndCause, Event, Gate, Keep, Keyed, Mode, Settled,
    Spec, State,
};
use crate::model::disposition::{Disposition, Rang};
use crate::model::id::{AttemptId, Workspace};
use crate::model::time::Time;

/// A request to cancel.
#[derive(Debug, Clone)]
pub struct CancelCommand {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// How far it goes.
    pub mode: Mode,
    /// Whether an unknown id is canceled for the future.
    pub allow_missing: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub requested_by: String,
}

/// What a cancel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// Nothing was dialed, and nothing will be.
    Prevented,
    /// It was stopped while it rang.
    Stopped,
    /// It was hung up.
    HungUp,
    /// It was over, or further than the mode goes.
    TooLate,
    /// It is being stopped; what became of it will be known later.
    Pending,
    /// It was canceled before, and the attempt says how: whoever lost the answer asks again.
    Already,
}

impl CancelResult {
    /// What a cancel has come to, by the attempt as it stands now.
    #[must_use]
    pub fn of(attempt: &Attempt) -> Self {
        match attempt.state {
            State::Canceled if attempt.settled.as_ref().is_some_and(|s| s.call_started) => {
                Self::Stopped
            }
            State::Canceled => Self::Prevented,
            State::Ended
                if attempt
                    .settled
                    .as_ref()
                    .is_some_and(|s| s.end_cause == Some(EndCause::Canceled)) =>
            {
                Self::HungUp
            }
            State::Dialing | State::Uncertain | State::NeedsReview if attempt.stop.is_some() => {
                Self::Pending
            }
            // A stop that reaches ringing alone came too late for a call that is answered.
            State::Answered if attempt.hangs_up() => Self::Pending,
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview => Self::TooLate,
        }
    }
}

impl Admission {
    /// Commits the cancel; `None` if the id is unknown and may not be missing.
    ///
    /// # Errors
    ///
    /// If nothing was decided, or if that is not known.
    pub async fn cancel(
        &self,
        command: &CancelCommand,
    ) -> Result<Option<(CancelResult, Attempt, Version)>, PlaceError> {
        let ledger = self.ledger();
        let (ws, id) = (&command.workspace, &command.attempt);
        let key = attempt_key(ws, id);
        let decided = ledger
            .decide(ws, vec![key.clone()], |view| {
                let now = ledger.now();
                let seen = view.version(&key).unwrap_or(Version(0));
                let Some(attempt) = view.attempt(ws, id)? else {
                    if !command.allow_missing {
                        return Ok(Decision::Keep(None));
                    }
                    let attempt = tombstone(command, ledger.epoch().id, now);
                    let mut change = Change::default();
                    change.attempt(&attempt, Cause::Canceled)?;
                    let answer = (CancelResult::Prevented, attempt, seen);
                    return Ok(Decision::Write(change, Some(answer)));
                };
                let missing = keys_of(&attempt).into_iter().any(|key| !view.has(&key));
                if missing {
                    return Ok(Decision::More(keys_of(&attempt)));
                }
                decide(view, attempt, command, now, seen)
            })
            .await?;
        Ok(decided
            .answer
            .map(|(result, attempt, seen)| (result, attempt, decided.version.unwrap_or(seen))))
    }
}

type Answer = Option<(CancelResult, Attempt, Version)>;

fn decide(
    view: &View,
    mut attempt: Attempt,
    command: &CancelCommand,
    now: Time,
    seen: Version,
) -> Result<Decision<Answer>, Error> {
    let too_late = |attempt| Ok(Decision::Keep(Some((CancelResult::TooLate, attempt, seen))));
    let already = |attempt| Ok(Decision::Keep(Some((CancelResult::Already, attempt, seen))));
    let hangs_up = command.mode == Mode::HangUp;
    match attempt.state {
        State::Queued | State::Deferred | State::Reserved => {
            prevent(view, attempt, command, now, seen)
        }
        State::Dialing | State::Uncertain | State::NeedsReview
            if command.mode == Mode::BeforeDial =>
        {
            too_late(attempt)
        }
        State::Answered if !hangs_up => too_late(attempt),
        State::Dialing | State::Uncertain | State::NeedsReview | State::Answered => {
            let before = attempt.cancel.as_ref().map(|c| c.mode);
            if before.is_some_and(|mode| mode >= command.mode) {
                return Ok(Decision::Keep(Some((CancelResult::Pending, attempt, seen))));
            }
            attempt.record_stop(request(command, now));
            if attempt.state != State::Dialing {
                attempt.look_at = Some(now);
            }
            let mut change = Change::default();
            change.attempt(&attempt, Cause::Canceled)?;
            Ok(Decision::Write(
                change,
                Some((CancelResult::Pending, attempt, seen)),
            ))
        }
        State::Canceled => already(attempt),
        // Hung up by a cancel, which may have been this very one.
        State::Ended if CancelResult::of(&attempt) == CancelResult::HungUp => already(attempt),
        State::Refused | State::Ended | State::NotConnected | State::NotDialed => too_late(attempt),
    }
}

/// Nothing was dialed: canceled in this commit, the hold freed, the room to be deleted.
fn prevent(
    view: &View,
    mut attempt: Attempt,
    command: &CancelCommand,
    now: Time,
    seen: Version,
) -> Result<Decision<Answer>, Error> {
    attempt.cancel = Some(request(command, now));
    attempt.settled = Some(Settled::new(
        Disposition::Canceled,
        Rang::NoEvidence,
        false,
        now,
    ));
    super::enter::go(
        &mut attempt,
        true,
        Event::Cancel,
        now,
        Cause::Canceled,
        String::new(),
    )?;
    let mut change = Change::default();
    change.attempt(&attempt, Cause::Canceled)?;
    let mut contact = view.contact(&attempt.workspace, &attempt.spec.contact)?;
    let mut number = view.number(&attempt.workspace, &attempt.number_key)?;
    contact.held.free(&attempt.id, None);
    number.held.free(&attempt.id, None);
    change.put(&contact)?;
    change.put(&number)?;
    if let Some(placed) = &attempt.placed
        && let Some(mut room) = view.room(&attempt.workspace, placed.session)?
    {
        // The request that makes it may be under way: until the try's deadline a room that
        // is not listed may still appear.
        room.horizon = Some(placed.reserved_until);
        room.close(RoomCause::Canceled, now);
        change.put(&room)?;
    }
    Ok(Decision::Write(
        change,
        Some((CancelResult::Prevented, attempt, seen)),
    ))
}

fn request(command: &CancelCommand, at: Time) -> CancelRequest {
    CancelRequest {
        mode: command.mode,
        by: command.requested_by.clone(),
        why: command.reason.clone(),
        at,
    }
}

/// A cancel that came before the request: the message may still be in a queue, and is not
/// to be placed later.
fn tombstone(command: &CancelCommand, epoch: uuid::Uuid, now: Time) -> Attempt {
    let spec = Spec {
        contact: nobody(),
        outreach: nobody(),
        campaign: None,
        follows: None,
        intend_time: now,
        expire_time: now,
        keep: Keep::Return,
        trunk: nobody(),
        agent: AgentWanted {
            name: nobody(),
            gate: Gate::Joined,
            join_ms: 0,
        },
        ringing_ms: 0,
        max_call_ms: 0,
        time_zone: None,
        priority: 0,
        labels: std::collections::BTreeMap::new(),
    };
    let (ws, id) = (command.workspace.clone(), command.attempt.clone());
    let mut attempt = Attempt::new(ws, id, spec, Keyed::default(), epoch, now);
    attempt.tombstone = true;
    attempt.cancel = Some(request(command, now));
    attempt.settled = Some(Settled::new(
        Disposition::Canceled,
        Rang::NoEvidence,
        false,
        now,
    ));
    attempt.enter(None, State::Canceled, now, Cause::Canceled, String::new());
    attempt
}

/// The id that stands where a tombstone knows none.
fn nobody<T: std::str::FromStr<Err = crate::model::id::BadId>>() -> T {
    "-".parse()
        .unwrap_or_else(|_| unreachable!("a dash is in the alphabet of ids"))
}
