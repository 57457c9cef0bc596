//! What one look at the platform showed, and what it says as an observation.

use crate::model::id::SessionId;
use crate::model::observation::{CallStatus, Observation, Person, Role, RoomSight, Source};
use crate::model::time::Time;
use crate::model::verdict::Leg;
use crate::provider::{Kind, Participant};

/// What a look showed. What was not asked is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    /// The sid of the room, if it is listed.
    pub room: Option<String>,
    /// The callee's leg.
    pub callee: Callee,
    /// Whether an agent is in the room.
    pub agent: Option<bool>,
    /// Everyone who is listed in it.
    pub people: Vec<Person>,
    /// Whether the trunk that the dial used is still listed: a platform that lost its records
    /// lost that too, and its id never comes back.
    pub trunk: Option<bool>,
    /// Whether a node answers for the room.
    pub lives: Option<bool>,
}

/// The callee's leg, as the platform lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// Not listed.
    Absent,
    /// Listed.
    Present {
        /// Its ids.
        leg: Leg,
        /// Where it stands.
        status: Option<CallStatus>,
    },
}

impl Sight {
    /// The room is not listed, and so is nobody in it.
    pub(super) const fn of_no_room() -> Self {
        Self {
            room: None,
            callee: Callee::Absent,
            agent: None,
            people: Vec::new(),
            trunk: None,
            lives: None,
        }
    }

    /// A listed room, with those who are listed in it.
    pub(super) fn of_room(sid: &str, there: &[Participant], session: SessionId) -> Self {
        let identity = session.identity();
        let leg = there
            .iter()
            .find(|p| p.kind == Kind::Sip && p.identity == identity);
        let callee = leg.map_or(Callee::Absent, |leg| Callee::Present {
            leg: Leg {
                call: leg.call_id.clone().unwrap_or_default(),
                participant: leg.sid.clone(),
            },
            status: leg.call_status,
        });
        Self {
            room: Some(sid.to_owned()),
            callee,
            agent: Some(there.iter().any(|p| p.kind == Kind::Agent)),
            people: there.iter().map(|p| person(p, &identity)).collect(),
            trunk: None,
            lives: None,
        }
    }

    /// Whether another look showed the same people in the same room.
    pub(super) fn shows_same(&self, other: &Self) -> bool {
        self.room == other.room && self.people == other.people
    }

    /// Whether it shows anything that is worth keeping: an absence is not.
    pub(super) fn shows_anything(&self) -> bool {
        self.room.is_some()
    }

    /// As an observation of that moment.
    pub(super) fn observation(&self, at: Time) -> Observation {
        Observation {
            at,
            source: Source::Look,
            room: self.room.as_ref().map(|sid| RoomSight {
                sid: sid.clone(),
                ..RoomSight::default()
            }),
            people: self.people.clone(),
        }
    }

    /// In words, for the proof.
    pub(super) fn describe(&self) -> String {
        let callee = match &self.callee {
            Callee::Absent => "no leg of the callee".to_owned(),
            Callee::Present { leg, status } => {
                format!("the callee's leg {} {}", leg.participant, name(*status))
            }
        };
        let room = match &self.room {
            Some(sid) => format!("room {sid} listed"),
            None => "room not listed".to_owned(),
        };
        let trunk = match self.trunk {
            None => "",
            Some(true) => ", the dial's trunk still listed",
            Some(false) => ", the dial's trunk not listed any more",
        };
        let lives = match self.lives {
            None => "",
            Some(true) => ", a node answers for the room",
            Some(false) => ", no node answers for the room",
        };
        format!("{room}, {callee}{trunk}{lives}")
    }
}

fn person(p: &Participant, identity: &str) -> Person {
    let role = match p.kind {
        Kind::Sip => Role::Leg {
            ours: p.identity == identity,
            call: p.call_id.clone(),
            status: p.call_status,
        },
        Kind::Agent => Role::Agent(p.agent_name.clone()),
        Kind::Other => Role::Other,
    };
    Person {
        sid: p.sid.clone(),
        identity: p.identity.clone(),
        role,
        joined: None,
        left: None,
    }
}

const fn name(status: Option<CallStatus>) -> &'static str {
    match status {
        Some(CallStatus::Dialing) => "dialing",
        Some(CallStatus::Ringing) => "ringing",
        Some(CallStatus::Automation) => "automation",
        Some(CallStatus::Active) => "active",
        Some(CallStatus::Hangup) => "hangup",
        Some(CallStatus::Other) | None => "without a known status",
    }
}

/// Whether this status says that the callee answered.
pub(super) const fn answered(status: Option<CallStatus>) -> bool {
    match status {
        Some(CallStatus::Active | CallStatus::Automation | CallStatus::Hangup) => true,
        Some(CallStatus::Dialing | CallStatus::Ringing | CallStatus::Other) | None => false,
    }
}
