//! Attempts, looks and histories of looking, for the tests of what is pure here.

use std::time::Duration;

use super::sight::{Callee, Sight};
use super::watched::Watched;
use crate::model::attempt::{
    Attempt, CancelRequest, Keyed, Mode, Placed, Spec, State, Stop, StopWhy,
};
use crate::model::id::{Nonce, Partition, SessionId};
use crate::model::observation::{
    Call, CallStatus, Left, LeftReason, Observation, Person, Role, Source,
};
use crate::model::time::Time;
use crate::model::verdict::Leg;

pub(super) const NOW: Time = Time::from_secs(10_000);

pub(super) fn attempt(state: State) -> Attempt {
    let spec = Spec {
        expire_time: NOW,
        ..Spec::sample(NOW)
    };
    let (ws, id) = ("w".parse().unwrap(), "a".parse().unwrap());
    let session = SessionId::of(&"d".parse().unwrap(), &ws, &id, 1);
    let epoch = uuid::Uuid::from_u128(7);
    let mut attempt = Attempt::new(ws, id, spec, Keyed::default(), epoch, NOW);
    let room = session.room(Partition(0));
    let mut placed = Placed::reserved(session, room, Nonce(epoch), NOW, NOW);
    placed.horizon = Some(NOW);
    attempt.placed = Some(placed);
    attempt.state = state;
    attempt.since = NOW;
    attempt
}

pub(super) fn stopped(state: State, mode: Mode) -> Attempt {
    let mut attempt = attempt(state);
    attempt.cancel = Some(CancelRequest {
        mode,
        by: String::new(),
        why: String::new(),
        at: NOW,
    });
    attempt.stop = Some(Stop::new(StopWhy::Cancel, NOW));
    attempt
}

pub(super) fn leg() -> Leg {
    Leg {
        call: "SCL_1".to_owned(),
        participant: "PA_1".to_owned(),
    }
}

/// The room is listed, with the callee's leg and the agent in it.
pub(super) fn present(status: CallStatus) -> Sight {
    Sight {
        room: Some("RM_1".to_owned()),
        callee: Callee::Present {
            leg: leg(),
            status: Some(status),
        },
        agent: Some(true),
        ..Sight::of_no_room()
    }
}

pub(super) fn watched(past_horizon: bool) -> Watched {
    Watched {
        past_horizon,
        long_past: false,
        overdue: false,
        early: true,
        gapless: true,
        seen: false,
        looks: 70,
        since: Some(NOW),
        gap: Duration::from_secs(2),
        callee_missing: None,
        agent_missing: None,
        node_silent: None,
    }
}

/// A leg that was seen like this, and left for that reason.
pub(super) fn seen(status: CallStatus, left: Option<LeftReason>) -> Call {
    let mut call = Call::default();
    call.merge(&Observation {
        at: NOW,
        source: Source::Webhook,
        room: None,
        people: vec![Person {
            sid: "PA_1".to_owned(),
            identity: "callee".to_owned(),
            role: Role::Leg {
                ours: true,
                call: Some("SCL_1".to_owned()),
                status: Some(status),
            },
            joined: Some(NOW),
            left: left.map(|reason| Left { at: NOW, reason }),
        }],
    });
    call
}
