//! Faults, thrown by name.

use std::time::Duration;

use livekit_protocol as lk;
use serde::Deserialize;

use super::answer::{Answer, Format, error};
use super::machine::Platform;

/// A fault to throw, as `POST /sandbox/faults` takes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// One of [`fault_names`].
    pub name: String,
    /// How many requests, or tries of webhooks, it strikes; one if absent, and 0 lifts it.
    pub times: Option<u32>,
    /// Strikes dials of this number only.
    pub to: Option<String>,
    /// Strikes this method only, as `CreateRoom`.
    pub method: Option<String>,
    /// For `slow` and `late`: how long; for `clock_skew`: how far, also backwards. In
    /// milliseconds.
    pub millis: Option<i64>,
    /// For `refuse`: the HTTP status.
    pub status: Option<u16>,
    /// For `refuse`: the Twirp code; without it the answer is the plain text `body`.
    pub code: Option<String>,
    /// For `refuse`: the Twirp message.
    pub msg: Option<String>,
    /// For `refuse`: the plain text.
    pub body: Option<String>,
}

impl Fault {
    /// A fault by its name alone.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The same, for one method.
    #[must_use]
    pub fn on(name: &str, method: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            ..Self::named(name)
        }
    }
}

/// No fault has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault has this name; there are: {}", fault_names().join(", "))]
pub struct FaultError;

/// The names of all faults.
#[must_use]
pub fn fault_names() -> Vec<&'static str> {
    NAMES.iter().map(|(name, _, _)| *name).collect()
}

/// What each fault does, in one sentence, by its name.
#[must_use]
pub fn faults() -> Vec<(&'static str, &'static str)> {
    NAMES
        .iter()
        .map(|(name, _, sentence)| (*name, *sentence))
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    TrunkFlush,
    RedisFlush,
    BridgeKilled,
    ServerCrash,
    ServerRestart,
    ClockSkew,
    Overload,
    NoBridge,
    LoseRequest,
    LoseReply,
    Slow,
    Late,
    Refuse,
    RoomCreate500,
    Dispatch503,
    Delete500,
    AgentAbsent,
    WebhookOutage,
    WebhookAnswerLost,
}

/// Each fault's name and what it does.
const NAMES: [(&str, Kind, &str); 19] = [
    (
        "trunk_flush",
        Kind::TrunkFlush,
        "the trunks are lost and made again under new ids",
    ),
    (
        "redis_flush",
        Kind::RedisFlush,
        "every record is lost while rooms live on and phones ring on",
    ),
    (
        "bridge_killed",
        Kind::BridgeKilled,
        "the bridge dies: phones ring on, dials are answered at their deadline",
    ),
    (
        "server_crash",
        Kind::ServerCrash,
        "the server dies and comes back: connections break, events come twice",
    ),
    (
        "server_restart",
        Kind::ServerRestart,
        "server and bridge die together: nothing lives, every record stays",
    ),
    (
        "clock_skew",
        Kind::ClockSkew,
        "the platform's clock is off by `millis`, also backwards",
    ),
    (
        "overload",
        Kind::Overload,
        "a dial is refused: cpu exhausted",
    ),
    (
        "no_bridge",
        Kind::NoBridge,
        "no bridge claims a dial: no response from servers",
    ),
    (
        "lose_request",
        Kind::LoseRequest,
        "the connection breaks and nothing is done",
    ),
    (
        "lose_reply",
        Kind::LoseReply,
        "it is done and the connection breaks",
    ),
    (
        "slow",
        Kind::Slow,
        "it is done at once and answered `millis` late",
    ),
    (
        "late",
        Kind::Late,
        "it is acted upon `millis` late, its token checked then",
    ),
    (
        "refuse",
        Kind::Refuse,
        "it is answered with `status`, `code` and `msg`, or with the text `body`",
    ),
    (
        "room_create_500",
        Kind::RoomCreate500,
        "CreateRoom finds no node",
    ),
    (
        "dispatch_503",
        Kind::Dispatch503,
        "CreateDispatch finds no server",
    ),
    (
        "delete_500",
        Kind::Delete500,
        "DeleteRoom does not find the room's node, and nothing is hung up",
    ),
    (
        "agent_absent",
        Kind::AgentAbsent,
        "no worker is there for a dispatch",
    ),
    (
        "webhook_outage",
        Kind::WebhookOutage,
        "a try of a webhook reaches nobody",
    ),
    (
        "webhook_answer_lost",
        Kind::WebhookAnswerLost,
        "a webhook arrives and its answer does not, so that it is sent again",
    ),
];

/// What strikes a request.
#[derive(Debug, Clone)]
pub(super) enum Strike {
    /// The connection breaks and nothing is done.
    LoseRequest,
    /// It is done and the connection breaks.
    LoseReply,
    /// It is done at once and answered late.
    Slow(Duration),
    /// It is acted upon late, as after a pause of the platform: tokens are checked then.
    Late(Duration),
    /// It is answered so, and nothing is done.
    Refuse(Answer),
}

/// What keeps the bridge from dialing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbridged {
    Overload,
    Absent,
}

#[derive(Debug)]
struct Armed {
    kind: Kind,
    left: u32,
    fault: Fault,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Armed>);

impl Faults {
    fn arm(&mut self, kind: Kind, fault: Fault) {
        let left = fault.times.unwrap_or(1);
        if left == 0 {
            self.0.retain(|armed| armed.kind != kind);
        } else {
            self.0.push(Armed { kind, left, fault });
        }
    }

    /// Uses up one of the first armed fault that `fits`.
    fn take(&mut self, fits: impl Fn(Kind, &Fault) -> bool) -> Option<(Kind, Fault)> {
        let at = self
            .0
            .iter()
            .position(|armed| fits(armed.kind, &armed.fault))?;
        let armed = self.0.get_mut(at)?;
        armed.left -= 1;
        let found = (armed.kind, armed.fault.clone());
        if armed.left == 0 {
            self.0.remove(at);
        }
        Some(found)
    }

    /// Whether no worker is there for the next dispatch of a named agent.
    pub(super) fn agent_absent(&mut self) -> bool {
        self.take(|kind, _| kind == Kind::AgentAbsent).is_some()
    }

    pub(super) fn webhook_outage(&mut self) -> bool {
        self.take(|kind, _| kind == Kind::WebhookOutage).is_some()
    }

    pub(super) fn webhook_answer_lost(&mut self) -> bool {
        self.take(|kind, _| kind == Kind::WebhookAnswerLost)
            .is_some()
    }

    /// What keeps the bridge from dialing `to`.
    pub(super) fn unbridged(&mut self, to: &str) -> Option<Unbridged> {
        let (kind, _) = self.take(|kind, fault| {
            (kind == Kind::Overload || kind == Kind::NoBridge) && hits(fault, to)
        })?;
        Some(if kind == Kind::Overload {
            Unbridged::Overload
        } else {
            Unbridged::Absent
        })
    }

    /// What strikes this request, if anything does.
    pub(super) fn strike(&mut self, method: &str, format: Format, body: &[u8]) -> Option<Strike> {
        if self.0.is_empty() {
            return None;
        }
        let to = (method == "CreateSIPParticipant")
            .then(|| format.read::<lk::CreateSipParticipantRequest>(body).ok())
            .flatten()
            .map(|dial| dial.sip_call_to)
            .unwrap_or_default();
        let (kind, fault) = self.take(|kind, fault| {
            let method_fits = kind
                .method()
                .or(fault.method.as_deref())
                .is_none_or(|wanted| wanted == method);
            kind.strikes_requests() && method_fits && hits(fault, &to)
        })?;
        kind.strike(&fault)
    }
}

fn hits(fault: &Fault, to: &str) -> bool {
    fault.to.as_deref().is_none_or(|wanted| wanted == to)
}

impl Kind {
    fn strikes_requests(self) -> bool {
        match self {
            Self::LoseRequest
            | Self::LoseReply
            | Self::Slow
            | Self::Late
            | Self::Refuse
            | Self::RoomCreate500
            | Self::Dispatch503
            | Self::Delete500 => true,
            Self::TrunkFlush
            | Self::RedisFlush
            | Self::BridgeKilled
            | Self::ServerCrash
            | Self::ServerRestart
            | Self::ClockSkew
            | Self::Overload
            | Self::NoBridge
            | Self::AgentAbsent
            | Self::WebhookOutage
            | Self::WebhookAnswerLost => false,
        }
    }

    /// The method that a fault is about by its name.
    fn method(self) -> Option<&'static str> {
        if self == Self::RoomCreate500 {
            Some("CreateRoom")
        } else if self == Self::Dispatch503 {
            Some("CreateDispatch")
        } else if self == Self::Delete500 {
            Some("DeleteRoom")
        } else {
            None
        }
    }

    fn strike(self, fault: &Fault) -> Option<Strike> {
        let none = std::collections::BTreeMap::new();
        let held = Duration::from_millis(
            fault
                .millis
                .and_then(|millis| u64::try_from(millis).ok())
                .unwrap_or(1_000),
        );
        let refuse = |status, code, msg| Some(Strike::Refuse(error(status, code, msg, &none)));
        match self {
            Self::LoseRequest => Some(Strike::LoseRequest),
            Self::LoseReply => Some(Strike::LoseReply),
            Self::Slow => Some(Strike::Slow(held)),
            Self::Late => Some(Strike::Late(held)),
            Self::Refuse => {
                let status = fault.status.unwrap_or(500);
                Some(Strike::Refuse(match &fault.code {
                    Some(code) => error(
                        status,
                        code,
                        fault.msg.as_deref().unwrap_or_default(),
                        &none,
                    ),
                    None => Answer::text(status, fault.body.as_deref().unwrap_or_default()),
                }))
            }
            Self::RoomCreate500 => refuse(500, "unknown", "could not find any available nodes"),
            Self::Dispatch503 => refuse(
                503,
                "unavailable",
                "twirp error unknown: no response from servers",
            ),
            Self::Delete500 => refuse(500, "unknown", "could not find object"),
            Self::TrunkFlush
            | Self::RedisFlush
            | Self::BridgeKilled
            | Self::ServerCrash
            | Self::ServerRestart
            | Self::ClockSkew
            | Self::Overload
            | Self::NoBridge
            | Self::AgentAbsent
            | Self::WebhookOutage
            | Self::WebhookAnswerLost => None,
        }
    }
}

impl Platform {
    pub(super) fn throw(&mut self, fault: Fault) -> Result<(), FaultError> {
        let Some((_, kind, _)) = NAMES.iter().find(|(name, _, _)| *name == fault.name) else {
            return Err(FaultError);
        };
        match *kind {
            Kind::TrunkFlush => self.flush_trunks(),
            Kind::RedisFlush => self.flush_records(),
            Kind::BridgeKilled => self.kill_bridge(),
            Kind::ServerCrash => self.crash_server(),
            Kind::ServerRestart => self.restart_all(),
            Kind::ClockSkew => self.skew_micros = fault.millis.unwrap_or(0).saturating_mul(1_000),
            Kind::Overload
            | Kind::NoBridge
            | Kind::LoseRequest
            | Kind::LoseReply
            | Kind::Slow
            | Kind::Late
            | Kind::Refuse
            | Kind::RoomCreate500
            | Kind::Dispatch503
            | Kind::Delete500
            | Kind::AgentAbsent
            | Kind::WebhookOutage
            | Kind::WebhookAnswerLost => self.faults.arm(*kind, fault),
        }
        Ok(())
    }
}
