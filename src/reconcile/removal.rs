//! A room is deleted because a person says so: only ours, never under somebody's hands.

use super::inventory::{Inventory, Leak, Leg, Standing, is_gone};
use super::leak::{Facts, judge};
use crate::ledger::record::{Room, RoomCause, RoomState, attempt_key};
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::{CancelRequest, Cause, Mode, State};
use crate::model::id::{AttemptId, RoomName};
use crate::model::time::Time;
use crate::placement::rooms::Deletion;
use crate::provider::{Call, Metadata, RoomSeen};

/// A person's wish to have a room deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// The room.
    pub name: String,
    /// Also while a leg lives in it, or an attempt owns it that is answered or not known.
    pub force: bool,
    /// Why; may be empty.
    pub reason: String,
    /// Who asks; may be empty.
    pub by: String,
}

/// Whether the deletion of its room ends a call in this state, or may.
const fn is_hung_up(state: State) -> bool {
    match state {
        State::Answered | State::Uncertain | State::NeedsReview => true,
        // Placement is at work in it, or nobody is in it.
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Dialing
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => false,
    }
}

/// Why a room was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum NotDeleted {
    /// The store failed; if that came after the deletion, the same again records it.
    #[error(transparent)]
    Ledger(#[from] Error),
    /// The platform did not say what there is, or that the room is gone.
    #[error("LiveKit did not say that the room is gone; the same again is safe")]
    Platform,
    /// There is no such room.
    #[error("LiveKit lists no room of this name, and the ledger knows none that is left")]
    NotFound,
    /// No room of ours is called so.
    #[error("no room of ringonce has such a name, and no other is touched from here")]
    NoNameOfOurs,
    /// It is somebody else's, or of a history that this store has lost.
    #[error(
        "a room of this name exists and is not this deployment's by its metadata; it is never touched from here"
    )]
    NotOurs,
    /// A live attempt owns it.
    #[error("attempt {attempt} owns this room and is {}: {}", .state.name(), instead(*.state))]
    Owned {
        /// The attempt.
        attempt: AttemptId,
        /// Its state.
        state: State,
    },
    /// Somebody is on the phone in it.
    #[error("a SIP leg lives in this room: deleting it hangs up on somebody, which needs force")]
    LegLives,
}

/// What to do instead of deleting the room of an attempt in `state`.
const fn instead(state: State) -> &'static str {
    match state {
        State::Reserved | State::Dialing => {
            "placement is at work in it; cancel the attempt, which deletes the room"
        }
        State::Answered => "cancel the attempt with the mode hang-up, or force it",
        State::Uncertain | State::NeedsReview => {
            "cancel the attempt, which deletes the room, or force it"
        }
        State::Queued
        | State::Deferred
        | State::Refused
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => "the room is about to be deleted",
    }
}

impl Inventory {
    /// Deletes a room because a person says so, and tells what is known of it afterwards.
    ///
    /// Never while placement is at work in it: a dial into a deleted room makes it anew,
    /// without metadata, and nobody hears the callee.
    ///
    /// # Errors
    ///
    /// It was not deleted, or that could not be recorded; the text says what to do.
    pub async fn delete(&self, asked: &Removal) -> Result<Standing, NotDeleted> {
        let name = asked.name.as_str();
        let ours = RoomName::parse(name).map(|(partition, session)| session.room(partition));
        let Some(ours) = ours.filter(|ours| ours.as_str() == name) else {
            return Err(NotDeleted::NoNameOfOurs);
        };
        let Call::Done(listed) = self
            .rooms
            .client()
            .list_rooms(std::slice::from_ref(&ours))
            .await
        else {
            return Err(NotDeleted::Platform);
        };
        let seen = listed.first();
        let missing = || match seen {
            Some(_) => NotDeleted::NotOurs,
            None => NotDeleted::NotFound,
        };
        let (ws, attempt, session) = self.whose(name, seen).await?.ok_or_else(missing)?;
        let (record, attempt) = self.read((&ws, &attempt, session)).await?;
        let facts = Facts {
            listed: seen,
            record: record.as_ref(),
            attempt: attempt.as_ref(),
        };
        let standing = judge(facts, self.ledger.deployment(), self.ledger.now());
        let standing = standing.ok_or_else(missing)?;
        let room = known(&standing, record, seen).ok_or(NotDeleted::NotFound)?;
        self.refuse(&standing, asked.force).await?;
        if standing.owned && standing.attempt_state.is_some_and(is_hung_up) {
            self.hangs_up(&standing, asked).await?;
        }
        match self.rooms.delete(&room).await {
            Deletion::Gone => self.gone(standing, &room).await,
            Deletion::Left | Deletion::Unknown => Err(NotDeleted::Platform),
        }
    }

    /// Says why it must not be deleted, if it must not.
    async fn refuse(&self, standing: &Standing, force: bool) -> Result<(), NotDeleted> {
        if standing.leak == Some(Leak::OtherHistory) {
            return Err(NotDeleted::NotOurs);
        }
        if standing.owned
            && let Some(state) = standing.attempt_state
            && (!force || matches!(state, State::Reserved | State::Dialing))
        {
            let attempt = standing.attempt.clone();
            return Err(NotDeleted::Owned { attempt, state });
        }
        if force {
            return Ok(());
        }
        match self.leg(&standing.name).await {
            Leg::None => Ok(()),
            Leg::Lives => Err(NotDeleted::LegLives),
            Leg::Unknown => Err(NotDeleted::Platform),
        }
    }

    /// Somebody talks in it, or may: recorded first as a stop that hangs up, since whatever tells
    /// of the end, a webhook or a look, would take a room that is merely gone for a natural one.
    /// If the deletion then fails, the next look carries the stop out.
    async fn hangs_up(&self, standing: &Standing, asked: &Removal) -> Result<(), Error> {
        let (ws, id) = (&standing.workspace, &standing.attempt);
        let mut why = "its room was deleted by hand".to_owned();
        if !asked.reason.is_empty() {
            why = format!("{why}: {}", asked.reason);
        }
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let now = self.ledger.now();
                let Some(mut attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                let before = attempt.cancel.as_ref().map(|cancel| cancel.mode);
                let of_this_room =
                    (attempt.placed.as_ref()).is_some_and(|p| p.session == standing.session);
                if !is_hung_up(attempt.state) || !of_this_room || before == Some(Mode::HangUp) {
                    return Ok(Decision::Keep(()));
                }
                attempt.record_stop(CancelRequest {
                    mode: Mode::HangUp,
                    by: asked.by.clone(),
                    why: why.clone(),
                    at: now,
                });
                let answer = attempt.placed.as_ref().and_then(|p| p.answer.as_ref());
                let talks = answer.filter(|_| attempt.state == State::Answered);
                if let (Some(answer), Some(stop)) = (talks, &mut attempt.stop) {
                    stop.met_talking.get_or_insert_with(|| answer.leg.clone());
                }
                let mut change = Change::default();
                change.attempt(&attempt, Cause::Canceled)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }

    async fn gone(&self, standing: Standing, room: &Room) -> Result<Standing, NotDeleted> {
        let open = standing.record.is_some() && !is_gone(standing.record);
        if open {
            self.rooms.gone(room, RoomCause::Operator).await?;
        } else {
            self.rooms.log_again(room, RoomCause::Operator);
        }
        Ok(Standing {
            record: if open {
                Some(RoomState::Gone)
            } else {
                standing.record
            },
            listed: false,
            leg: Leg::None,
            leak: None,
            ..standing
        })
    }
}

/// The room as its deletion knows it; `None` if there is nothing to delete. What was never
/// confirmed and is not listed may still appear: the reconciler waits for it.
fn known(standing: &Standing, record: Option<Room>, seen: Option<&RoomSeen>) -> Option<Room> {
    match (record, seen) {
        (Some(record), None) => {
            (record.sid.is_some() && !is_gone(Some(record.state))).then_some(record)
        }
        (Some(mut record), Some(seen)) => {
            record.sid = Some(seen.sid.clone());
            Some(record)
        }
        // Of a history that this store has lost: what its metadata says is all there is.
        (None, seen) => seen.and_then(|seen| stranger(standing, seen)),
    }
}

fn stranger(standing: &Standing, seen: &RoomSeen) -> Option<Room> {
    let Metadata::Ours(routing) = Metadata::read(&seen.metadata, &standing.deployment) else {
        return None;
    };
    let (partition, session) = RoomName::parse(&seen.name)?;
    // A name and metadata that contradict each other were not written by us.
    (session == routing.session).then(|| Room {
        workspace: routing.workspace,
        attempt: routing.attempt,
        session,
        name: session.room(partition),
        nonce: routing.nonce,
        state: RoomState::Created,
        planned_at: seen.created_at.unwrap_or(Time::ZERO),
        sid: Some(seen.sid.clone()),
        trunk: None,
        cause: None,
        horizon: None,
        due: None,
        setbacks: 0,
        leg_seen: false,
        rest: serde_json::Map::new(),
    })
}
