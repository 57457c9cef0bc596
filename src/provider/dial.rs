//! The dial: `CreateSIPParticipant`, sent once.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use livekit_protocol as proto;
use prost::Message;
use secrecy::SecretString;
use tokio::time::Instant;

use super::client::Client;
use super::trunks::TrunkId;
use super::wire::{Answer, Method, NotSent, Reply, Request};
use crate::model::id::{AttemptId, RoomName, SessionId};

/// The SIP header that carries the session, so that a carrier's records can be joined with ours.
pub const SESSION_HEADER: &str = "X-Ringonce-Session";

/// A dial. The callee's number is in it, so `Debug` does not show it.
#[derive(Clone)]
pub struct Dial<'a> {
    /// The trunk.
    pub trunk: &'a TrunkId,
    /// The callee, E.164.
    pub to: &'a str,
    /// The number to call from, E.164; `None`: LiveKit picks one of the trunk's.
    pub from: Option<&'a str>,
    /// The room.
    pub room: &'a RoomName,
    /// The session; the callee's identity, an attribute and a SIP header carry it.
    pub session: SessionId,
    /// The attempt, for an attribute.
    pub attempt: &'a AttemptId,
    /// How long it may ring.
    pub ringing_timeout: Duration,
    /// How long the call may last once it was answered.
    pub max_call_duration: Duration,
    /// DTMF digits to send after the answer.
    pub digits: Option<&'a str>,
    /// Further SIP headers.
    pub headers: &'a BTreeMap<String, String>,
    /// Keeps the numbers out of attributes and webhooks.
    pub hide_phone_number: bool,
    /// The token that was minted for this try by [`Client::mint_dial`].
    pub token: SecretString,
    /// How long we wait for the answer; more than the server's deadline.
    pub timeout: Duration,
    /// The deadline that the server shall keep.
    pub server_deadline: Duration,
    /// The last monotonic moment at which it may be sent; `None` leaves it to the token.
    pub send_by: Option<Instant>,
}

impl fmt::Debug for Dial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("room", &self.room)
            .field("trunk", &self.trunk)
            .finish_non_exhaustive()
    }
}

/// The raw answer to a dial. What it proves depends on whether a stop was recorded, which the
/// caller knows: [`super::classify::verdict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialReply {
    /// The answer.
    pub answer: Answer,
    /// Monotonic time from the send to the answer.
    pub elapsed: Duration,
}

impl Client {
    /// Dials, once, and waits until the phone was answered or not.
    pub async fn dial(&self, dial: Dial<'_>) -> DialReply {
        let started = Instant::now();
        // A process that was paused between the marker and here must not ring. The token would
        // stop it too, a minute later by LiveKit's leeway.
        if dial.send_by.is_some_and(|latest| started > latest) {
            return DialReply {
                answer: Answer::NotSent(NotSent::TooLate),
                elapsed: Duration::ZERO,
            };
        }
        let body = dial.message().encode_to_vec();
        let Reply { answer, .. } = self
            .send(Request {
                method: Method::Dial,
                token: dial.token,
                body,
                timeout: dial.timeout,
                server_deadline: Some(dial.server_deadline),
            })
            .await;
        DialReply {
            answer,
            elapsed: started.elapsed(),
        }
    }
}

impl Dial<'_> {
    fn message(&self) -> proto::CreateSipParticipantRequest {
        let mut headers: std::collections::HashMap<_, _> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        headers.insert(SESSION_HEADER.to_owned(), self.session.to_string());
        proto::CreateSipParticipantRequest {
            sip_trunk_id: self.trunk.as_str().to_owned(),
            sip_call_to: self.to.to_owned(),
            sip_number: self.from.unwrap_or_default().to_owned(),
            room_name: self.room.as_str().to_owned(),
            participant_identity: self.session.identity(),
            participant_attributes: [
                ("ringonce.session".to_owned(), self.session.to_string()),
                ("ringonce.attempt".to_owned(), self.attempt.to_string()),
            ]
            .into(),
            dtmf: self.digits.unwrap_or_default().to_owned(),
            play_dialtone: true,
            hide_phone_number: self.hide_phone_number,
            headers,
            ringing_timeout: Some(duration(self.ringing_timeout)),
            max_call_duration: Some(duration(self.max_call_duration)),
            wait_until_answered: true,
            ..Default::default()
        }
    }
}

fn duration(span: Duration) -> pbjson_types::Duration {
    pbjson_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0),
    }
}
