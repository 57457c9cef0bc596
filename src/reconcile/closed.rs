//! Legs of closed sessions: a late join, or an answer after the end. The person behind it
//! is talked to, or called, now: contact and number are held again until it is gone.

use super::Reconciler;
use crate::ledger::record::{Held, Room, attempt_key, keys_of};
use crate::ledger::{Change, Decision, Error};
use crate::model::attempt::Cause;
use crate::model::id::AttemptId;
use crate::model::time::Time;
use crate::model::verdict::{After, Leg};
use crate::placement::settle::Try;

impl Reconciler {
    /// The leg was seen: hold again, for a time that ends by itself if nobody looks any more.
    /// One that is answered contradicts an end without an answer: kept as evidence, once.
    pub(super) async fn leg_lives(&self, room: &Room, talks: Option<&Leg>) -> Result<(), Error> {
        let until = self.config.dial.hold_after_silence;
        self.hold(room, |held, id, now| {
            held.take(id, now, now.plus(until));
            held.free(id, Some(now.plus(until)));
        })
        .await?;
        let Some(leg) = talks else {
            return Ok(());
        };
        let of = Try {
            workspace: room.workspace.clone(),
            attempt: room.attempt.clone(),
            session: room.session,
        };
        let told = "a leg of it was seen answered after its end";
        self.settler.contradict(&of, leg, Cause::Looked, told).await
    }

    /// It is gone: the hold ends, or a little later where a CANCEL is under way.
    pub(super) async fn leg_gone(&self, room: &Room, after: After) -> Result<(), Error> {
        let dial = &self.config.dial;
        let more = match after {
            After::Over => None,
            After::Canceled => Some(dial.hold_after_cancel),
            After::Silent => Some(dial.hold_after_silence),
        };
        self.hold(room, |held, id, now| {
            let ours = held.hold.as_ref().is_some_and(|hold| hold.attempt == *id);
            // Only what was held again ends here; another attempt's hold is its own.
            if ours {
                held.free(id, more.map(|more| now.plus(more)));
            }
        })
        .await
    }

    /// Changes the holds of a closed attempt. One that is open holds by its own state, and
    /// what another attempt holds is not touched.
    async fn hold(
        &self,
        room: &Room,
        with: impl Fn(&mut Held, &AttemptId, Time) + Send + Sync,
    ) -> Result<(), Error> {
        let (ws, id) = (&room.workspace, &room.attempt);
        self.ledger
            .decide(ws, vec![attempt_key(ws, id)], |view| {
                let Some(attempt) = view.attempt(ws, id)? else {
                    return Ok(Decision::Keep(()));
                };
                let keys = keys_of(&attempt);
                if keys.iter().any(|key| !view.has(key)) {
                    return Ok(Decision::More(keys));
                }
                if attempt.state.holds() || attempt.tombstone {
                    return Ok(Decision::Keep(()));
                }
                let now = self.ledger.now();
                let mut contact = view.contact(ws, &attempt.spec.contact)?;
                let mut number = view.number(ws, &attempt.number_key)?;
                let before = (contact.clone(), number.clone());
                for held in [&mut contact.held, &mut number.held] {
                    if held.other(id, now).is_none() {
                        with(held, id, now);
                    }
                }
                if (&contact, &number) == (&before.0, &before.1) {
                    return Ok(Decision::Keep(()));
                }
                let mut change = Change::default();
                change.put(&contact)?;
                change.put(&number)?;
                Ok(Decision::Write(change, ()))
            })
            .await?;
        Ok(())
    }
}
