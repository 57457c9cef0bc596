//! A platform with its clock, for tests: time passes only when told.

use std::collections::BTreeMap;
use std::time::Duration;

use ringonce::lab::platform::{
    CallTicket, Delivery, Fault, Output, Platform, Reply, Request, Response, Settings, sign,
};
use serde_json::{Value, json};

/// A callee who rings and never answers.
pub(super) const RINGS: &str = "+12025550108";
/// One who answers.
pub(super) const ANSWERS: &str = "+12025550100";

pub(super) const KEY: &str = "devkey";
pub(super) const SECRET: &str = "devsecret_that_is_at_least_32_chars_long";

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Answered(u16, Value),
    Cut,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    Done(usize),
    Waits(CallTicket),
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) platform: Platform,
    pub(super) now: Duration,
    pub(super) hooks: Vec<Value>,
    /// How the receiver of webhooks answers.
    pub(super) receiver: Option<Delivery>,
    /// How long the last request took that was waited for, in the platform's time.
    pub(super) took: Duration,
    done: Vec<Fate>,
    sent_at: BTreeMap<CallTicket, Duration>,
    fates: BTreeMap<CallTicket, Fate>,
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A token with every grant, and `roomAdmin` for one room.
pub(super) fn token(room: &str) -> String {
    let claims = json!({
        "iss": KEY, "nbf": 0, "exp": 9_000_000_000_i64,
        "video": {"roomCreate": true, "roomList": true, "roomAdmin": true, "room": room},
        "sip": {"call": true, "admin": true},
    });
    sign(SECRET, &claims)
}

impl World {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            platform: Platform::new(settings),
            now: Duration::ZERO,
            hooks: Vec::new(),
            receiver: Some(Delivery::Status {
                status: 200,
                retry_after: None,
            }),
            took: Duration::ZERO,
            done: Vec::new(),
            sent_at: BTreeMap::new(),
            fates: BTreeMap::new(),
        }
    }

    pub(super) fn send(
        &mut self,
        method: &str,
        token: &str,
        timeout_ms: Option<u64>,
        body: &Value,
    ) -> Sent {
        let service = match method {
            "CreateDispatch" | "ListDispatch" | "DeleteDispatch" => "AgentDispatchService",
            _ if method.contains("SIP") => "SIP",
            _ => "RoomService",
        };
        let request = Request {
            path: format!("/twirp/livekit.{service}/{method}"),
            authorization: Some(format!("Bearer {token}")),
            content_type: "application/json".to_owned(),
            timeout_ms,
            body: body.to_string().into_bytes(),
        };
        match self.platform.handle(self.now, request) {
            Reply::Now(response) => {
                self.done.push(fate(&response));
                Sent::Done(self.done.len() - 1)
            }
            Reply::Later(ticket) => {
                self.sent_at.insert(ticket, self.now);
                Sent::Waits(ticket)
            }
        }
    }

    /// Sends and waits, in the platform's time.
    pub(super) fn ask(&mut self, method: &str, room: &str, body: &Value) -> Fate {
        let sent = self.send(method, &token(room), None, body);
        self.wait(sent)
    }

    pub(super) fn wait(&mut self, sent: Sent) -> Fate {
        let ticket = match sent {
            Sent::Done(at) => {
                self.took = Duration::ZERO;
                return self.done[at].clone();
            }
            Sent::Waits(ticket) => ticket,
        };
        while !self.fates.contains_key(&ticket) {
            let next = self
                .platform
                .next_due()
                .expect("a request is answered some time");
            self.now = self.now.max(next);
            self.settle();
        }
        self.took = self.now.saturating_sub(self.sent_at[&ticket]);
        self.fates[&ticket].clone()
    }

    pub(super) fn fate_of(&self, sent: Sent) -> Option<Fate> {
        match sent {
            Sent::Done(at) => self.done.get(at).cloned(),
            Sent::Waits(ticket) => self.fates.get(&ticket).cloned(),
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(next) = self.platform.next_due().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = until;
    }

    fn settle(&mut self) {
        for output in self.platform.due(self.now) {
            match output {
                Output::Answer(ticket, response) => {
                    self.fates.insert(ticket, fate(&response));
                }
                Output::Cut(ticket) => {
                    self.fates.insert(ticket, Fate::Cut);
                }
                Output::Webhook(hook) => {
                    let body = serde_json::from_slice(&hook.body).expect("events are JSON");
                    self.hooks.push(body);
                    if let Some(delivery) = self.receiver {
                        self.platform.delivered(self.now, hook.ticket, delivery);
                    }
                }
            }
        }
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        self.platform
            .fault(self.now, fault)
            .expect("the fault has a known name");
    }

    /// The id of the first trunk.
    pub(super) fn trunk(&mut self) -> String {
        let Fate::Answered(200, body) = self.ask("ListSIPOutboundTrunk", "", &json!({})) else {
            panic!("the trunks are listed");
        };
        body["items"][0]["sip_trunk_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The body of a dial that waits for the answer, ringing 6 s.
    pub(super) fn dial_body(&mut self, room: &str, to: &str) -> Value {
        json!({
            "sip_trunk_id": self.trunk(),
            "sip_call_to": to,
            "room_name": room,
            "participant_identity": format!("sip-{room}"),
            "participant_attributes": {"ringonce.session": "S1"},
            "wait_until_answered": true,
            "ringing_timeout": "6s",
        })
    }

    pub(super) fn dial(&mut self, room: &str, to: &str) -> Sent {
        let body = self.dial_body(room, to);
        self.send("CreateSIPParticipant", &token(room), None, &body)
    }

    /// The events sent so far, by name.
    pub(super) fn told(&self) -> Vec<&str> {
        self.hooks
            .iter()
            .map(|hook| hook["event"].as_str().unwrap_or_default())
            .collect()
    }
}

fn fate(response: &Response) -> Fate {
    let body = if response.content_type.starts_with("application/json") {
        serde_json::from_slice(&response.body).expect("an answer is JSON")
    } else {
        Value::String(String::from_utf8_lossy(&response.body).into_owned())
    };
    Fate::Answered(response.status, body)
}

/// Hides what differs from run to run: ids, times, counters and the callee's number.
pub(super) fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), masked_field(key, value)))
            .collect(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) => Value::String(masked_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn masked_field(key: &str, value: &Value) -> Value {
    let hidden = [
        "creation_time",
        "creation_time_ms",
        "creationTime",
        "creationTimeMs",
        "joined_at",
        "joined_at_ms",
        "joinedAt",
        "joinedAtMs",
        "created_at",
        "createdAt",
        "unixMicro",
        "turn_password",
        "turnPassword",
        "sip.callIDFull",
        "sip.phoneNumber",
        "mid",
    ];
    if value.is_string() && hidden.contains(&key) {
        return Value::String(format!("<{key}>"));
    }
    if key == "version" && value.is_number() {
        return Value::String("<counter>".to_owned());
    }
    masked(value)
}

/// An id keeps its prefix and its length.
fn masked_text(text: &str) -> String {
    let prefixes = [
        "RM_",
        "PA_",
        "SCL_",
        "ST_",
        "AD_",
        "EV_",
        "TR_AM",
        "agent-AJ_",
    ];
    for prefix in prefixes {
        if let Some(rest) = text.strip_prefix(prefix)
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return format!("{prefix}<{}>", rest.len());
        }
    }
    text.to_owned()
}

/// The lines of a recording.
pub(super) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of the recording is JSON"))
        .collect()
}

/// A platform with the sandbox's own settings.
pub(super) fn world() -> World {
    World::new(Settings::default())
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn status(fate: &Fate) -> u16 {
    match fate {
        Fate::Answered(status, _) => *status,
        Fate::Cut => panic!("the connection was cut"),
    }
}

pub(super) fn body(fate: Fate) -> Value {
    match fate {
        Fate::Answered(_, body) => body,
        Fate::Cut => panic!("the connection was cut"),
    }
}

pub(super) fn room(name: &str) -> Value {
    json!({"room": name})
}

pub(super) fn create(world: &mut World, name: &str) -> Value {
    let metadata = json!({"workspace": "w", "attempt": "a1", "contact": "c1"}).to_string();
    let asked = json!({"name": name, "metadata": metadata});
    body(world.ask("CreateRoom", "", &asked))
}

pub(super) fn sip_calls(world: &World) -> u32 {
    world
        .platform
        .state()
        .sip_calls
        .iter()
        .map(|call| call.count)
        .sum()
}

pub(super) fn participants(world: &mut World, name: &str) -> usize {
    let listed = body(world.ask("ListParticipants", name, &room(name)));
    listed["participants"].as_array().map_or(0, Vec::len)
}
