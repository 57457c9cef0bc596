//! What the observations of a call prove by themselves: one table, pure.
//!
//! | the callee's legs | what it proves |
//! |---|---|
//! | any ever `active`, `automation` or `hangup`, and the last has not left | [`Evidence::Answered`] |
//! | any ever `active`, `automation` or `hangup`, and the last left, or its room was finished | [`Evidence::Ended`] |
//! | the last left with `USER_UNAVAILABLE`, after the horizon | not connected: unreached |
//! | the last left with `USER_REJECTED`, after the horizon | not connected: rejected, by whom is not known |
//! | the last left with `ROOM_DELETED` or `PARTICIPANT_REMOVED`, after the horizon | not connected: stopped, by us only if our own delete is recorded |
//! | anything else | nothing |
//!
//! What counts as nothing, though it looks like an end: `CLIENT_INITIATED` without an answer (a
//! carrier's 5xx, but also a bridge that shut down and may leave the phone ringing),
//! `CONNECTION_TIMEOUT` (seen 20 s after the bridge was killed: no CANCEL was sent),
//! `DUPLICATE_IDENTITY` (another leg took its place), and silence. `dialing` proves nothing
//! either, since it is often what the platform says while the phone rings. All of this was seen
//! on livekit-server 1.13.5 with livekit-sip 1.11.0.
//!
//! That the leg is absent from the platform *now* is not read here: whoever acts on
//! [`Evidence::NotConnected`] or on the absence in [`Evidence::Ended`] looks first.

use super::observation::{Call, LeftReason, Leg};
use super::time::Time;
use super::verdict;

/// What is asked of the observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The wall clock's present moment.
    pub now: Time,
    /// When the platform can no longer start the call; `None`: no marker was written.
    pub horizon: Option<Time>,
    /// Whether the dial's RPC may still be pending: its answer knows more than any event, so
    /// until it is in nothing is drawn.
    pub pending: bool,
    /// Whether we deleted the room ourselves, by a recorded stop or a recorded deletion.
    pub deleted_by_us: bool,
}

/// What the observations prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The callee answered. Whether it still talks is not known.
    Answered {
        /// The leg.
        leg: verdict::Leg,
        /// What showed it.
        proof: String,
    },
    /// The callee answered, and the call is over.
    Ended {
        /// The leg.
        leg: verdict::Leg,
        /// What showed it.
        proof: String,
    },
    /// A call was started and ended without an answer.
    NotConnected {
        /// How.
        how: Unconnected,
        /// Whether the phone was seen to ring.
        rang: bool,
        /// What showed it.
        proof: String,
    },
    /// They prove nothing.
    Nothing,
}

/// How a call ended that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconnected {
    /// `USER_UNAVAILABLE`: it rang out, or the carrier said so, or was silent.
    Unreached,
    /// `USER_REJECTED`: by the callee or by the carrier is not known.
    Rejected,
    /// Room deleted or leg removed, by our own recorded stop.
    StoppedByUs,
    /// Room deleted or leg removed, by somebody else.
    StoppedOnPlatform,
}

impl Unconnected {
    /// What a leg's leaving says of a call that was not answered; `None`: nothing.
    #[must_use]
    pub const fn read(reason: LeftReason, deleted_by_us: bool) -> Option<Self> {
        match reason {
            LeftReason::UserUnavailable => Some(Self::Unreached),
            LeftReason::UserRejected => Some(Self::Rejected),
            LeftReason::RoomDeleted | LeftReason::ParticipantRemoved if deleted_by_us => {
                Some(Self::StoppedByUs)
            }
            LeftReason::RoomDeleted | LeftReason::ParticipantRemoved => {
                Some(Self::StoppedOnPlatform)
            }
            LeftReason::Unknown
            | LeftReason::Other
            | LeftReason::Aborted
            | LeftReason::ClientInitiated
            | LeftReason::DuplicateIdentity
            | LeftReason::ServerShutdown
            | LeftReason::StateMismatch
            | LeftReason::JoinFailure
            | LeftReason::Migration
            | LeftReason::SignalClose
            | LeftReason::RoomClosed
            | LeftReason::SipTrunkFailure
            | LeftReason::ConnectionTimeout
            | LeftReason::MediaFailure
            | LeftReason::AgentError => None,
        }
    }
}

/// What `call` proves.
#[must_use]
pub fn read(call: &Call, asked: &Asked) -> Evidence {
    if asked.pending {
        return Evidence::Nothing;
    }
    if let Some((leg, proof)) = answered(call) {
        // A platform that restarts joins its leg again under another sid: only the last join's
        // leaving is an end.
        return if call.ended().is_some() {
            Evidence::Ended { leg, proof }
        } else {
            Evidence::Answered { leg, proof }
        };
    }
    not_connected(call, asked)
}

/// The leg of the callee that was ever seen answered, and what showed it.
#[must_use]
pub fn answered(call: &Call) -> Option<(verdict::Leg, String)> {
    let (sid, answered) = call.answered()?;
    let leg = verdict::Leg {
        call: answered.call.clone().unwrap_or_default(),
        participant: sid.to_owned(),
    };
    Some((leg, describe(sid, answered)))
}

fn not_connected(call: &Call, asked: &Asked) -> Evidence {
    // Before the horizon a leg that left may join again: a bridge outlives its server.
    let settled = asked.horizon.is_some_and(|horizon| asked.now >= horizon);
    let ended = call.leg().and_then(|(sid, leg)| {
        let how = Unconnected::read(leg.left?.reason, asked.deleted_by_us)?;
        Some((how, describe(sid, leg)))
    });
    match ended {
        Some((how, proof)) if settled => Evidence::NotConnected {
            how,
            rang: call.rang(),
            proof,
        },
        Some(_) | None => Evidence::Nothing,
    }
}

/// A leg in words, for the proof that is kept: no number is in it.
#[must_use]
pub fn describe(sid: &str, leg: &Leg) -> String {
    let status = match (leg.hangup, leg.answered, leg.ringing, leg.dialing) {
        (true, _, _, _) => "hangup",
        (_, true, _, _) => "active",
        (_, _, true, _) => "ringing",
        (_, _, _, true) => "dialing",
        (false, false, false, false) => "no call status",
    };
    match leg.left {
        Some(left) => format!("leg {sid} was seen {status} and left: {}", left.reason),
        None => format!("leg {sid} was seen {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::observation::{
        CallStatus, Left, Observation, Person, Role, RoomSight, Source,
    };

    const HORIZON: Time = Time::from_secs(100);

    const AFTER: Asked = Asked {
        now: Time::from_secs(101),
        horizon: Some(HORIZON),
        pending: false,
        deleted_by_us: false,
    };

    fn seen(sid: &str, at: i64, status: CallStatus, left: Option<LeftReason>) -> Observation {
        Observation {
            at: Time::from_secs(at),
            source: Source::Webhook,
            room: Some(RoomSight {
                sid: "RM_1".to_owned(),
                ..RoomSight::default()
            }),
            people: vec![Person {
                sid: sid.to_owned(),
                identity: "callee".to_owned(),
                role: Role::Leg {
                    ours: true,
                    call: Some("SCL_1".to_owned()),
                    status: Some(status),
                },
                joined: Some(Time::from_secs(at)),
                left: left.map(|reason| Left {
                    at: Time::from_secs(at),
                    reason,
                }),
            }],
        }
    }

    fn call(of: &[Observation]) -> Call {
        let mut call = Call::default();
        for observation in of {
            call.merge(observation);
        }
        call
    }

    fn left(status: CallStatus, reason: LeftReason) -> Call {
        call(&[
            seen("PA_1", 1, CallStatus::Dialing, None),
            seen("PA_1", 1, status, Some(reason)),
        ])
    }

    /// In short: what the evidence is.
    fn short(evidence: &Evidence) -> String {
        match evidence {
            Evidence::Answered { .. } => "answered".to_owned(),
            Evidence::Ended { .. } => "ended".to_owned(),
            Evidence::NotConnected { how, rang, .. } => {
                format!("{how:?}{}", if *rang { ", rang" } else { "" })
            }
            Evidence::Nothing => "nothing".to_owned(),
        }
    }

    /// What happened on the running stack, how the leg left, and its last call status.
    #[test]
    fn every_pair_that_was_recorded() {
        use CallStatus::{Active, Dialing, Hangup, Ringing};
        use LeftReason::{
            ClientInitiated, ConnectionTimeout, DuplicateIdentity, ParticipantRemoved, RoomDeleted,
            UserRejected, UserUnavailable,
        };
        let recorded = [
            (
                "ring timeout, rang",
                UserUnavailable,
                Ringing,
                "Unreached, rang",
            ),
            ("100 Trying only", UserUnavailable, Dialing, "Unreached"),
            ("486 after 180", UserRejected, Ringing, "Rejected, rang"),
            ("401", UserRejected, Dialing, "Rejected"),
            ("503 of the carrier", ClientInitiated, Dialing, "nothing"),
            ("no common codec", UserRejected, Ringing, "Rejected, rang"),
            ("the callee hung up", ClientInitiated, Hangup, "ended"),
            ("DeleteRoom after the answer", RoomDeleted, Active, "ended"),
            (
                "DeleteRoom while ringing",
                RoomDeleted,
                Ringing,
                "StoppedOnPlatform, rang",
            ),
            (
                "RemoveParticipant",
                ParticipantRemoved,
                Ringing,
                "StoppedOnPlatform, rang",
            ),
            ("a second dial", DuplicateIdentity, Ringing, "nothing"),
            (
                "the bridge was killed",
                ConnectionTimeout,
                Ringing,
                "nothing",
            ),
        ];
        for (what, reason, status, expected) in recorded {
            let call = left(status, reason);
            assert_eq!(short(&read(&call, &AFTER)), expected, "{what}");
            let pending = Asked {
                pending: true,
                ..AFTER
            };
            assert_eq!(short(&read(&call, &pending)), "nothing", "{what}, pending");
            let early = Asked {
                now: Time::from_secs(99),
                ..AFTER
            };
            let early = short(&read(&call, &early));
            let expected = if expected == "ended" {
                "ended"
            } else {
                "nothing"
            };
            assert_eq!(early, expected, "{what}, before the horizon");
        }
    }

    #[test]
    fn a_deletion_is_ours_only_if_it_is_recorded() {
        let ours = Asked {
            deleted_by_us: true,
            ..AFTER
        };
        for reason in [LeftReason::RoomDeleted, LeftReason::ParticipantRemoved] {
            let call = left(CallStatus::Dialing, reason);
            assert_eq!(short(&read(&call, &ours)), "StoppedByUs");
            assert_eq!(short(&read(&call, &AFTER)), "StoppedOnPlatform");
        }
    }

    #[test]
    fn without_a_marker_or_a_leg_nothing_is_drawn() {
        let call = left(CallStatus::Ringing, LeftReason::UserUnavailable);
        let unmarked = Asked {
            horizon: None,
            ..AFTER
        };
        assert_eq!(read(&call, &unmarked), Evidence::Nothing);
        assert_eq!(read(&Call::default(), &AFTER), Evidence::Nothing);
    }

    #[test]
    fn a_leg_that_joined_again_is_not_over() {
        let again = call(&[
            seen("PA_1", 1, CallStatus::Active, None),
            seen("PA_2", 9, CallStatus::Dialing, None),
        ]);
        assert_eq!(short(&read(&again, &AFTER)), "answered");
        let over = call(&[
            seen(
                "PA_1",
                1,
                CallStatus::Ringing,
                Some(LeftReason::DuplicateIdentity),
            ),
            seen(
                "PA_2",
                9,
                CallStatus::Dialing,
                Some(LeftReason::UserUnavailable),
            ),
        ]);
        assert_eq!(short(&read(&over, &AFTER)), "Unreached, rang");
    }

    #[test]
    fn a_finished_room_ends_what_was_answered_and_settles_nothing_else() {
        let finished = Observation {
            at: Time::from_secs(50),
            source: Source::Webhook,
            room: Some(RoomSight {
                sid: "RM_1".to_owned(),
                created: None,
                finished: Some(Time::from_secs(50)),
            }),
            people: Vec::new(),
        };
        let answered = call(&[finished.clone(), seen("PA_1", 1, CallStatus::Active, None)]);
        assert_eq!(short(&read(&answered, &AFTER)), "ended");
        let rang = call(&[finished, seen("PA_1", 1, CallStatus::Ringing, None)]);
        assert_eq!(short(&read(&rang, &AFTER)), "nothing");
    }

    #[test]
    fn a_leg_that_is_not_ours_proves_nothing() {
        let mut foreign = seen("PA_1", 1, CallStatus::Active, None);
        for person in &mut foreign.people {
            if let Role::Leg { ours, .. } = &mut person.role {
                *ours = false;
            }
        }
        assert_eq!(read(&call(&[foreign]), &AFTER), Evidence::Nothing);
    }
}
