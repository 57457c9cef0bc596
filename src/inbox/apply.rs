//! From observations to changes: merged into the call's record, and the end of an answered
//! call. Never a marker.

use std::sync::Arc;

use super::project::{Owner, Sight};
use super::watch;
use super::{Counted, Counts};
use crate::ledger::call::{CallRecord, Stray, call_key, stray_key};
use crate::ledger::record::{Room, RoomCause, RoomState, attempt_key, session_key};
use crate::ledger::{Change, Decision, Error, Ledger, View};
use crate::model::attempt::{Attempt, Cause, EndCause, State};
use crate::model::evidence;
use crate::model::id::{AttemptId, Partition, SessionId, Workspace};
use crate::model::observation::{Call, Leg};
use crate::placement::rooms::Rooms;
use crate::placement::settle::{Finding, Settler, Try};
use crate::provider::RoutingMetadata;
use crate::runtime::mutant::{self, Mutant};

/// Applies what was seen.
#[derive(Debug)]
pub(super) struct Projection {
    ledger: Arc<Ledger>,
    rooms: Arc<Rooms>,
    settler: Arc<Settler>,
}

/// What became of what was told of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// It is in the call's record.
    Merged,
    /// The session is not ours; it is left alone.
    Foreign,
}

/// What a merge found and left.
#[derive(Debug)]
pub(super) struct Merged {
    /// The attempt, if the ledger knows it and this is its present try.
    pub attempt: Option<Attempt>,
    /// The record as it was.
    pub before: Call,
    /// The record as it is.
    pub record: CallRecord,
}

impl Projection {
    pub(super) const fn new(ledger: Arc<Ledger>, rooms: Arc<Rooms>, settler: Arc<Settler>) -> Self {
        Self {
            ledger,
            rooms,
            settler,
        }
    }

    /// Applies what was told of one session.
    pub(super) async fn apply(
        &self,
        p: Partition,
        session: SessionId,
        sights: &[Sight],
        counts: &Counts,
    ) -> Result<Took, Error> {
        if self.ledger.partitions().all(|ours| ours != p) {
            return Ok(Took::Foreign);
        }
        // Whose session it is, the ledger says; the metadata only guesses it, so that one read
        // brings all.
        let mut keys = vec![session_key(session)];
        if let Some(routing) = self.routed(p, sights) {
            keys.push(attempt_key(&routing.workspace, &routing.attempt));
            keys.push(call_key(&routing.workspace, session));
        }
        let decided = self
            .ledger
            .decide_in(p, keys, |view| self.merge(view, p, session, sights))
            .await?;
        let Some(merged) = decided.answer else {
            return Ok(Took::Foreign);
        };
        watch::look(&merged, counts, self.ledger.now());
        self.ledger.news().hear();
        if watch::wants_a_look(&merged) {
            let record = &merged.record;
            self.ledger.news().told(&record.workspace, &record.attempt);
        }
        self.end(&merged, counts).await?;
        self.finished(&merged).await?;
        Ok(Took::Merged)
    }

    /// `None`: not ours.
    fn merge(
        &self,
        view: &View,
        p: Partition,
        session: SessionId,
        sights: &[Sight],
    ) -> Result<Decision<Option<Merged>>, Error> {
        let known = view.session(session)?;
        let (ws, id) = match &known {
            Some(known) => (known.workspace.clone(), known.attempt.clone()),
            None => match self.routed(p, sights) {
                Some(routing) => (routing.workspace.clone(), routing.attempt.clone()),
                None => return Ok(Decision::Keep(None)),
            },
        };
        let mut keys = vec![attempt_key(&ws, &id), call_key(&ws, session)];
        if known.is_none() {
            keys.push(stray_key(&ws, &id));
        }
        if keys.iter().any(|key| !view.has(key)) {
            return Ok(Decision::More(keys));
        }
        let attempt = view
            .attempt(&ws, &id)?
            .filter(|attempt| is_present(attempt, session));
        if attempt
            .as_ref()
            .is_some_and(|attempt| other_nonce(attempt, sights))
        {
            tracing::error!(
                event = "room.foreign",
                workspace = %ws,
                attempt = %id,
                %session,
                "a room of our name carries another nonce; it is left alone: has this store lost \
                 history?"
            );
            return Ok(Decision::Keep(None));
        }
        let found = view.call(&ws, session)?;
        let mut record = found.unwrap_or_else(|| CallRecord::new(ws.clone(), id.clone(), session));
        let before = record.seen.clone();
        for sight in sights {
            record.seen.merge(&sight.seen);
        }
        let mut change = Change::default();
        let mut news = record.seen != before;
        if news {
            change.put(&record)?;
        }
        if known.is_none() {
            news |= stray(view, &mut change, (&ws, &id), session, sights)?;
        }
        let attempt = match attempt {
            Some(attempt) => Some(self.poke(attempt, &before, &record.seen, &mut change)?),
            None => None,
        };
        let merged = Some(Merged {
            attempt,
            before,
            record,
        });
        Ok(if news {
            Decision::Write(change, merged)
        } else {
            Decision::Keep(merged)
        })
    }

    /// The metadata by which a room of a session that the ledger does not know is ours.
    fn routed<'a>(&self, p: Partition, sights: &'a [Sight]) -> Option<&'a RoutingMetadata> {
        sights.iter().find_map(|sight| match &sight.owner {
            Owner::Ours(routing) if self.ledger.partition(&routing.workspace) == p => {
                Some(&**routing)
            }
            Owner::Ours(_) | Owner::Unsaid => None,
        })
    }

    /// The provider's call id, as soon as anything shows it, and a wake-up for who decides. It
    /// is written quietly: nobody outside waits for either.
    fn poke(
        &self,
        mut attempt: Attempt,
        before: &Call,
        after: &Call,
        change: &mut Change,
    ) -> Result<Attempt, Error> {
        if before == after {
            return Ok(attempt);
        }
        let mut changed = false;
        if let (Some(placed), Some(call)) = (&mut attempt.placed, after.call_id())
            && placed.call.as_deref() != Some(call)
        {
            placed.call = Some(call.to_owned());
            changed = true;
        }
        let urgent = match attempt.state {
            State::Uncertain | State::NeedsReview => true,
            State::Answered => watch::lost(before, after),
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Canceled => false,
        };
        let now = self.ledger.now();
        if urgent && attempt.look_at.is_none_or(|at| at > now) {
            attempt.look_at = Some(now);
            changed = true;
        }
        if changed {
            change.quietly(&attempt)?;
        }
        Ok(attempt)
    }

    /// An answered call whose leg is gone is over. Its room stays for the agent's linger, and
    /// the reconciler deletes it then.
    async fn end(&self, merged: &Merged, counts: &Counts) -> Result<(), Error> {
        let seen = &merged.record.seen;
        let Some(attempt) = &merged.attempt else {
            return Ok(());
        };
        if mutant::is(Mutant::WebhookWritesMarker)
            && attempt.state == State::Dialing
            && let (Some((participant, _)), Some(of)) = (seen.leg(), Try::of(attempt))
        {
            let (call, participant) = ("SCL_".to_owned(), participant.to_owned());
            let leg = crate::model::verdict::Leg { call, participant };
            let told = |_: &Attempt| Some((Finding::Answered(leg.clone()), String::new()));
            self.settler.settle(&of, Cause::Told, None, told).await?;
        }
        if let (Some((leg, proof)), None) = (evidence::answered(seen), merged.before.answered())
            && let Some(of) = Try::of(attempt)
        {
            let told = format!("a webhook told that it was answered: {proof}");
            self.settler
                .contradict(&of, &leg, Cause::Told, &told)
                .await?;
        }
        let ended = seen.ended().filter(|_| attempt.state == State::Answered);
        let Some((sid, leg)) = ended.filter(|(sid, leg)| was_answered(attempt, sid, leg)) else {
            return Ok(());
        };
        let Some(of) = Try::of(attempt) else {
            return Ok(());
        };
        let proof = format!("a webhook told it: {}", evidence::describe(sid, leg));
        let deleted = leg.left.and_then(|left| left.reason.is_by_deletion());
        let settled = self
            .settler
            .settle(&of, Cause::Told, None, |attempt| {
                let answered = attempt.state == State::Answered;
                answered.then(|| {
                    let reached = deleted.unwrap_or(attempt.is_met());
                    (
                        Finding::Over(attempt.ended_by(EndCause::LegLeft, reached)),
                        proof.clone(),
                    )
                })
            })
            .await?;
        if settled.is_some() {
            counts.add(Counted::Ended);
        }
        Ok(())
    }

    /// A room that waits for its linger to end, and that LiveKit has closed by itself, is gone.
    async fn finished(&self, merged: &Merged) -> Result<(), Error> {
        let (ws, session) = (&merged.record.workspace, merged.record.session);
        let closed = merged
            .record
            .seen
            .rooms
            .values()
            .any(|room| room.finished.is_some());
        if !closed || merged.attempt.is_none() {
            return Ok(());
        }
        let Some(room) = self.ledger.room(ws, session).await? else {
            return Ok(());
        };
        if lingers(&room) && is_finished(&room, &merged.record.seen) {
            self.rooms.gone(&room, RoomCause::Finished).await?;
        }
        Ok(())
    }
}

/// Whether this is the leg that answered, or a later join in its place. The end of an earlier
/// one may be all that was told, if the webhooks of the leg that talks were lost: it ends
/// nothing, and a look finds out.
fn was_answered(attempt: &Attempt, sid: &str, leg: &Leg) -> bool {
    let answer = attempt.placed.as_ref().and_then(|p| p.answer.as_ref());
    answer.is_none_or(|answer| {
        answer.leg.participant == sid || leg.joined.is_some_and(|at| at > answer.at)
    })
}

/// Whether `session` is the attempt's present or last try.
fn is_present(attempt: &Attempt, session: SessionId) -> bool {
    attempt
        .placed
        .as_ref()
        .is_some_and(|placed| placed.session == session)
}

/// Whether the room says that it is of another history of this very session.
fn other_nonce(attempt: &Attempt, sights: &[Sight]) -> bool {
    attempt.placed.as_ref().is_some_and(|placed| {
        sights
            .iter()
            .filter_map(|sight| sight.owner.nonce())
            .any(|nonce| nonce != placed.nonce)
    })
}

/// A call that the ledger does not know, in a room of ours: it is remembered with the
/// attempt's id, so that this attempt is not dialed.
fn stray(
    view: &View,
    change: &mut Change,
    (ws, id): (&Workspace, &AttemptId),
    session: SessionId,
    sights: &[Sight],
) -> Result<bool, Error> {
    let Some(nonce) = sights.iter().find_map(|sight| sight.owner.nonce()) else {
        return Ok(false);
    };
    let found = view.stray(ws, id)?;
    let mut stray = found.unwrap_or_else(|| Stray::new(ws.clone(), id.clone()));
    if !stray.add(session, nonce) {
        return Ok(false);
    }
    tracing::error!(
        event = "call.stray",
        workspace = %ws,
        attempt = %id,
        %session,
        "LiveKit tells of a call of ours that this store does not know: it has lost history, and \
         this attempt will not be dialed"
    );
    change.put(&stray)?;
    Ok(true)
}

fn lingers(room: &Room) -> bool {
    room.state == RoomState::Closing && room.cause == Some(RoomCause::Ended)
}

fn is_finished(room: &Room, seen: &Call) -> bool {
    let sid = room.sid.as_ref();
    sid.and_then(|sid| seen.rooms.get(sid))
        .is_some_and(|seen| seen.finished.is_some())
}
