//! `[agent]` and `[agents.NAME]`: how long we wait for the voice.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::reader::{Reader, Section};
use super::units::{HOUR, MILLISECOND, MINUTE};

/// What must be seen of the agent before the phone may ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// It is active in the room.
    Joined,
    /// Its dispatch was accepted by the platform; it joins while the phone rings.
    Dispatched,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joined => "JOINED",
            Self::Dispatched => "DISPATCHED",
        })
    }
}

impl FromStr for Gate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "JOINED" => Ok(Self::Joined),
            "DISPATCHED" => Ok(Self::Dispatched),
            _ => Err("there are JOINED and DISPATCHED"),
        }
    }
}

/// How long we wait for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// How long it may take to join when the request does not say.
    pub join_timeout: Duration,
    /// The longest that a request may ask for.
    pub join_timeout_max: Duration,
    /// When the room is looked at, each counted from the look before; the last one repeats.
    pub looks: Vec<Duration>,
    /// How long an answered call goes on without its agent.
    pub lost_grace: Duration,
    /// How long the room of an ended call stays for the agent, if LiveKit does not close it.
    pub linger: Duration,
    /// What must be seen of it before the phone may ring, when the request does not say.
    pub gate: Gate,
}

impl Agent {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("agent");
        Self {
            join_timeout: s.duration("join_timeout", MILLISECOND..=HOUR),
            join_timeout_max: s.duration("join_timeout_max", MILLISECOND..=HOUR),
            looks: s.durations("looks", MILLISECOND..=MINUTE),
            lost_grace: s.duration("lost_grace", MILLISECOND..=HOUR),
            linger: s.duration("linger", Duration::ZERO..=HOUR),
            gate: s.parsed("gate", "JOINED"),
        }
    }
}

/// What differs for one agent: `[agents.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSettings {
    /// Instead of `agent.join_timeout`.
    pub join_timeout: Option<Duration>,
    /// Instead of `agent.gate`.
    pub gate: Option<Gate>,
}

impl AgentSettings {
    pub(super) fn read(s: &mut Section<'_>) -> Self {
        Self {
            join_timeout: s.optional_duration("join_timeout", MILLISECOND..=HOUR),
            gate: s.optional_parsed("gate", "JOINED"),
        }
    }
}
