//! When calls began and ended, and how long requests took, for whoever measures what stands
//! around the platform. Kept only if [`Settings::timings`](super::Settings::timings) says so.

use std::collections::BTreeMap;
use std::time::Duration;

use livekit_protocol as lk;
use prost::Message;
use serde::{Deserialize, Serialize};

use super::machine::Platform;
use super::message::Request;
use super::state::Leg;

/// When an INVITE left and when its leg was over, by the platform's wall clock, in
/// microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimes {
    /// When the last INVITE of the session left.
    pub invite: i64,
    /// When its leg was over.
    pub end: Option<i64>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// By session.
    pub calls: BTreeMap<String, CallTimes>,
    /// By room and method, in microseconds: how long requests took from their last byte in
    /// to their answer, the ringing included. Those of one method are added up.
    pub answers: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Counts that stay small however many calls there were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests by method.
    pub requests: BTreeMap<String, u64>,
    /// Rooms that live.
    pub rooms: usize,
    /// Phones that ring or talk.
    pub legs: usize,
}

impl Platform {
    /// The times that were kept.
    #[must_use]
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The counts as they are now.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            requests: self.counts.requests(),
            rooms: self.rooms.len(),
            legs: (self.calls.values())
                .filter(|call| call.leg.is_some())
                .count(),
        }
    }

    /// What a request is about, if times are kept and it is about one room.
    #[must_use]
    pub fn subject(&self, request: &Request) -> Option<Subject> {
        if self.settings.timings {
            Subject::of(request)
        } else {
            None
        }
    }

    /// A request about `subject` took so long.
    pub fn took(&mut self, subject: Subject, time: Duration) {
        let methods = self.timings.answers.entry(subject.room).or_default();
        let micros = methods.entry(subject.method).or_default();
        *micros += u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    }

    pub(super) fn leg_began(&mut self, leg: &Leg) {
        if self.settings.timings {
            let times = CallTimes {
                invite: self.wall_micros(),
                end: None,
            };
            (self.timings.calls).insert(leg.session().to_owned(), times);
        }
    }

    pub(super) fn leg_ends(&mut self, leg: &Leg, put_out: bool) {
        self.counts.leg_ends(leg, put_out);
        let now = self.wall_micros();
        if let Some(times) = self.timings.calls.get_mut(leg.session()) {
            times.end = Some(now);
        }
    }
}

/// The room and the method of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    room: String,
    method: String,
}

impl Subject {
    /// Of a request in protobuf.
    fn of(request: &Request) -> Option<Self> {
        let (_, method) = request.path.rsplit_once('/')?;
        let body = request.body.as_slice();
        let room = match method {
            "CreateRoom" => lk::CreateRoomRequest::decode(body).ok()?.name,
            "DeleteRoom" => lk::DeleteRoomRequest::decode(body).ok()?.room,
            "CreateDispatch" => lk::CreateAgentDispatchRequest::decode(body).ok()?.room,
            "CreateSIPParticipant" => {
                let dial = lk::CreateSipParticipantRequest::decode(body).ok()?;
                dial.room_name
            }
            _ => return None,
        };
        let method = method.to_owned();
        Some(Self { room, method })
    }
}
