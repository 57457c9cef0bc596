//! LiveKit's API by bare requests: JSON over HTTP, as its documentation shows it.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::config::Credentials;
use crate::demo::script::{Call, WORKSPACE};
use crate::lab::platform::sign;
use crate::lab::stack::{Error, plain_http};
use crate::runtime::clock::Clock;

/// How long a token is valid: far longer than any request, as most have it.
const TOKEN: Duration = Duration::from_mins(10);
/// The timeout of what answers at once.
const QUICK: Duration = Duration::from_secs(5);
/// The dial's timeout is the ringing and this: an answer after the ringing is of no use.
const DIAL_SLACK: Duration = Duration::from_secs(2);

/// Why a request did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// The carrier's final status.
    Sip(u16),
    /// "sip request timed out": nobody answered.
    RangOut,
    /// Anything else, with LiveKit's code or what happened to the connection.
    Error(String),
}

/// A client of LiveKit.
#[derive(Debug)]
pub(super) struct LiveKit {
    http: reqwest::Client,
    url: String,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
    ringing: Duration,
}

impl LiveKit {
    pub(super) fn new(
        url: &str,
        credentials: Credentials,
        clock: Arc<dyn Clock>,
        ringing: Duration,
    ) -> Result<Self, Error> {
        Ok(Self {
            http: plain_http()?,
            url: url.to_owned(),
            credentials,
            clock,
            ringing,
        })
    }

    /// The first outbound trunk: what somebody copied into the environment.
    pub(super) async fn first_trunk(&self) -> Result<String, Error> {
        let all = json!({});
        let list = self.post("SIP/ListSIPOutboundTrunk", "", &all, QUICK);
        let listed = list.await.unwrap_or_default();
        listed["items"][0]["sip_trunk_id"]
            .as_str()
            .map(str::to_owned)
            .ok_or(Error::Unreadable("the list of trunks"))
    }

    /// The room knows whom it is for, so that the agent does.
    pub(super) async fn create_room(&self, room: &str, call: &Call) -> Result<(), Failed> {
        let metadata = json!({
            "workspace": WORKSPACE,
            "contact": call.contact,
            "attempt": call.id,
        });
        let body = json!({
            "name": room,
            "metadata": metadata.to_string(),
            // One second after the person has left; without anybody, after LiveKit's own five
            // minutes.
            "departure_timeout": 1,
        });
        let created = self.post("RoomService/CreateRoom", room, &body, QUICK);
        created.await.map(drop)
    }

    pub(super) async fn create_dispatch(&self, room: &str, agent: &str) -> Result<(), Failed> {
        let body = json!({"room": room, "agent_name": agent});
        let sent = self.post("AgentDispatchService/CreateDispatch", room, &body, QUICK);
        sent.await.map(drop)
    }

    pub(super) async fn create_sip_participant(
        &self,
        room: &str,
        trunk: &str,
        call: &Call,
    ) -> Result<(), Failed> {
        let body = json!({
            "sip_trunk_id": trunk,
            "sip_call_to": call.to,
            "room_name": room,
            "participant_identity": format!("callee-{}", call.contact),
            "wait_until_answered": true,
            "ringing_timeout": format!("{}s", self.ringing.as_secs_f64()),
        });
        let timeout = self.ringing + DIAL_SLACK;
        let dialed = self.post("SIP/CreateSIPParticipant", room, &body, timeout);
        dialed.await.map(drop)
    }

    pub(super) async fn delete_room(&self, room: &str) -> Result<(), Failed> {
        let body = json!({"room": room});
        let deleted = self.post("RoomService/DeleteRoom", room, &body, QUICK);
        deleted.await.map(drop)
    }

    async fn post(
        &self,
        method: &str,
        room: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<Value, Failed> {
        let asked = self
            .http
            .post(format!("{}/twirp/livekit.{method}", self.url))
            .bearer_auth(self.token(room))
            .header("content-type", "application/json")
            .timeout(timeout)
            .body(body.to_string());
        let lost = |_| Failed::Error("the connection was lost".to_owned());
        let answer = asked.send().await.map_err(lost)?;
        let done = answer.status().is_success();
        let body = answer.bytes().await.map_err(lost)?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if done { Ok(body) } else { Err(failed(&body)) }
    }
}

impl LiveKit {
    /// One token that may do everything with this room, as most have it.
    fn token(&self, room: &str) -> String {
        let now = self.clock.now();
        let claims = json!({
            "iss": self.credentials.api_key,
            "nbf": now.as_secs(),
            "exp": now.plus(TOKEN).as_secs(),
            "video": {"roomCreate": true, "roomAdmin": true, "room": room},
            "sip": {"admin": true, "call": true},
        });
        sign(self.credentials.api_secret.expose_secret(), &claims)
    }
}

/// A Twirp error, read as its documentation says.
fn failed(error: &Value) -> Failed {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = text(&error["meta"]["sip_status_code"]);
    if let Ok(status) = status.parse() {
        return Failed::Sip(status);
    }
    if text(&error["msg"]).contains("sip request timed out") {
        return Failed::RangOut;
    }
    Failed::Error(text(&error["code"]))
}
