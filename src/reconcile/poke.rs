//! Pokes: the inbox says of which attempts something new was told
//! ([`News::told`](crate::ledger::News::told)), and they are looked at, at once. A lost poke
//! costs time and nothing else.

use super::Reconciler;
use super::sight::{Callee, Sight, answered};
use crate::ledger::Error;
use crate::ledger::record::RoomState;
use crate::model::attempt::{Attempt, Gate, State, StopWhy};
use crate::model::id::{AttemptId, Workspace};
use crate::model::observation::Call as Seen;
use crate::provider::Call;

impl Reconciler {
    /// Looks at those of whom something was told.
    pub(super) async fn poked_all(&self) {
        let told = self.ledger.news().take_told();
        self.concurrently(told, |who| self.poked(who)).await;
    }

    async fn poked(&self, who: (Workspace, AttemptId)) -> Result<(), Error> {
        let (ws, id) = who;
        let Some((attempt, _)) = self.ledger.attempt(&ws, &id).await? else {
            return Ok(());
        };
        let Some(placed) = &attempt.placed else {
            return Ok(());
        };
        let record = self.ledger.call(&ws, placed.session).await?;
        let call = record.map(|record| record.seen).unwrap_or_default();
        match attempt.state {
            State::Dialing => self.rings_alone(&attempt, &call).await,
            State::Answered => {
                let over = call.leg().is_some_and(|(_, leg)| call.is_over(leg));
                if over || alone(&call) {
                    self.watches.hurry(&attempt);
                }
                Ok(())
            }
            State::Uncertain | State::NeedsReview => {
                self.watches.hurry(&attempt);
                Ok(())
            }
            State::Ended | State::NotConnected | State::NotDialed | State::Canceled => {
                self.closed_poked(&attempt, &call).await
            }
            State::Queued | State::Deferred | State::Refused | State::Reserved => Ok(()),
        }
    }

    /// A leg of a closed session is told: its room is looked at now.
    async fn closed_poked(&self, attempt: &Attempt, call: &Seen) -> Result<(), Error> {
        let lives = call.leg().is_some_and(|(_, leg)| !call.is_over(leg));
        let Some(room) = self.room_of(attempt).await? else {
            return Ok(());
        };
        match room.state {
            RoomState::Gone | RoomState::Tombstone if lives && !room.leg_seen => {
                let now = self.ledger.now();
                self.rewrite(&room, |record| {
                    record.state = RoomState::Gone;
                    record.due = Some(now);
                })
                .await
            }
            RoomState::Planned
            | RoomState::Created
            | RoomState::Closing
            | RoomState::Gone
            | RoomState::Tombstone => Ok(()),
        }
    }

    /// The agent left while the phone rings. An event said so; a look confirms it, since
    /// another may have told that it came back.
    async fn rings_alone(&self, attempt: &Attempt, call: &Seen) -> Result<(), Error> {
        let Some(placed) = &attempt.placed else {
            return Ok(());
        };
        if !alone(call) || attempt.stop.is_some() || attempt.spec.agent.gate != Gate::Joined {
            return Ok(());
        }
        self.budget.spend(1.0).await;
        let Call::Done(there) = self.rooms.client().participants(&placed.room).await else {
            return Ok(());
        };
        let sight = Sight::of_room("", &there, placed.session);
        let rings = matches!(sight.callee, Callee::Present { status, .. } if !answered(status));
        if rings && sight.agent == Some(false) {
            let why = "the agent left while the phone rings: an event told it, and a look shows it";
            return self
                .record_stop(attempt, call, StopWhy::AgentLost, why)
                .await;
        }
        Ok(())
    }
}

/// Whether agents were there and all of them left.
fn alone(call: &Seen) -> bool {
    !call.agents.is_empty() && call.agents_in().next().is_none()
}
