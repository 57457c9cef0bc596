//! A recorded stop, carried out once: a look at the room, and the deletion that it allows.
//!
//! Somebody may talk already while the dial's answer is late, or was lost. A stop that reaches
//! ringing alone leaves them alone, so each deletion of it follows a look that saw nobody
//! answer. It is sent once: one that is repeated for seconds acts on what was seen long ago.
//! Who answers in the moment between the two is hung up on; the platform has no deletion that
//! asks for a state.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::rooms::Rooms;
use crate::model::attempt::{Attempt, Stop};
use crate::model::id::{RoomName, SessionId};
use crate::model::time::Time;
use crate::model::verdict::Leg;
use crate::provider::{Call, CallStatus, Gone, Kind, Participant};
use crate::runtime::mutant::{self, Mutant};

/// Whom the deletion of a room meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// A leg that is dialed or rings: the deletion cancels it.
    Ringing {
        /// Whether it is listed as ringing; what is listed as dialing may ring as well.
        listed: bool,
    },
    /// A leg that was answered: the deletion hangs up.
    Talking(Leg),
    /// Nobody was seen.
    Nobody,
}

impl Met {
    /// Takes down in `stop` whom a deletion met that was done at `at`.
    pub fn note(&self, stop: &mut Stop, at: Time) {
        match self {
            Self::Ringing { .. } => {
                stop.met_ringing.get_or_insert(at);
            }
            Self::Talking(leg) => {
                stop.met_talking.get_or_insert_with(|| leg.clone());
            }
            Self::Nobody => {}
        }
    }

    /// What a list of a room says of the callee of this session.
    #[must_use]
    pub fn of(there: &[Participant], session: SessionId) -> Self {
        let identity = session.identity();
        let leg = there
            .iter()
            .find(|p| p.kind == Kind::Sip && p.identity == identity);
        let Some(leg) = leg else {
            return Self::Nobody;
        };
        match leg.call_status {
            Some(CallStatus::Active | CallStatus::Automation | CallStatus::Hangup) => {
                Self::Talking(Leg {
                    call: leg.call_id.clone().unwrap_or_default(),
                    participant: leg.sid.clone(),
                })
            }
            status @ (Some(CallStatus::Ringing | CallStatus::Dialing | CallStatus::Other)
            | None) => Self::Ringing {
                listed: status == Some(CallStatus::Ringing),
            },
        }
    }
}

/// What the look before a deletion showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) met: Met,
    /// Whether an agent is there, whichever.
    pub(super) agent: bool,
}

impl Look {
    /// Whether the callee talks to nobody.
    pub(super) const fn is_alone(&self) -> bool {
        matches!(self.met, Met::Talking(_)) && !self.agent
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Who was there right before; `None`: no look was answered in time.
    pub met: Option<Met>,
    /// Whether the room was there and is deleted. If not, nothing was sent, or what it came to
    /// is not known.
    pub deleted: bool,
}

impl Rooms {
    /// Whom a deletion would meet now. A look that is older than `fresh` is none.
    pub async fn meets(&self, room: &RoomName, session: SessionId, fresh: Duration) -> Option<Met> {
        let look = self.look_to_stop(room, session, fresh).await;
        look.map(|look| look.met)
    }

    /// Carries out the stop that is recorded in `attempt`, once, right after the look that showed
    /// `met`.
    pub async fn stop(&self, attempt: &Attempt, room: &RoomName, met: Option<Met>) -> Stopped {
        let deleted = may_delete(attempt, met.as_ref())
            && self.client().delete_room_once(room).await == Gone::Deleted;
        Stopped { met, deleted }
    }

    /// Whom a deletion would meet now; `None`: no look was answered within `fresh`.
    pub(super) async fn look_to_stop(
        &self,
        room: &RoomName,
        session: SessionId,
        fresh: Duration,
    ) -> Option<Look> {
        let asked = Instant::now();
        match timeout(fresh, self.client().participants(room)).await {
            // A process that stood still after the answer has not looked now.
            Ok(Call::Done(there)) if asked.elapsed() <= fresh => Some(Look {
                met: Met::of(&there, session),
                agent: there.iter().any(|p| p.kind == Kind::Agent),
            }),
            Ok(Call::Done(_) | Call::Refused(_) | Call::Unclear(_)) | Err(_) => None,
        }
    }
}

/// Whether the stop that is recorded in `attempt` deletes a room in which it meets these. One
/// that hangs up does not depend on the look, which only names what it ends.
pub(super) fn may_delete(attempt: &Attempt, met: Option<&Met>) -> bool {
    let nobody_talks = match met {
        Some(Met::Ringing { .. } | Met::Nobody) => true,
        Some(Met::Talking(_)) | None => mutant::is(Mutant::StopUnlooked),
    };
    nobody_talks || attempt.hangs_up()
}
