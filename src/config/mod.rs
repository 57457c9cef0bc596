//! The configuration: every time, slack and limit, with its place and its reason.
//!
//! Layers, each above the last: `config/default.toml` (embedded, so that documentation
//! and defaults cannot drift), the files that were named, the environment
//! (`RINGONCE__SECTION__KEY`, and `LIVEKIT_URL`, `LIVEKIT_API_KEY`, `LIVEKIT_API_SECRET`),
//! flags. A list is replaced as a whole, a table key by key.
//!
//! All faults are found at once and each names its place, its key and a remedy. A
//! configuration with a fault is never used, not even in part. The meaning, unit and
//! reason of every key are in `config/default.toml`.

mod agent;
mod attempt;
mod content;
mod deployment;
mod dial;
mod fault;
mod layer;
mod listen;
mod livekit;
mod load;
mod log;
mod pace;
mod reader;
mod reconcile;
mod remarks;
mod room;
mod rules;
mod store;
mod typed;
mod units;
mod webhooks;

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

pub use agent::{Agent, AgentSettings, Gate};
pub use attempt::{Attempt, Queue};
pub use deployment::Deployment;
pub use dial::Dial;
pub use fault::{Fault, Faults};
pub use layer::{KeyPath, Origin};
pub use listen::{Grpc, Listen};
pub use livekit::{Credentials, LiveKit};
pub use load::{Loaded, Override, Sources, load};
pub use log::{Format, Log};
pub use pace::{Numbers, Pace, Trunk};
pub use reader::Shown;
pub use reconcile::{Lifecycle, Reconcile};
pub use room::{Janitor, Room};
pub use store::{Location, Store};
pub use webhooks::Webhooks;

use crate::model::id::{AgentName, TrunkName};

/// The defaults: `config/default.toml`, which is also their documentation.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The process's exit code for a bad configuration (`EX_CONFIG` of `sysexits.h`).
pub const EXIT_CONFIG: u8 = 78;

/// The whole configuration; one field a section.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which installation this is.
    pub deployment: Deployment,
    /// What remembers, and for how long.
    pub store: Store,
    /// What others connect to.
    pub listen: Listen,
    /// The limits of the gRPC interface.
    pub grpc: Grpc,
    /// The platform, and how it is spoken to.
    pub livekit: LiveKit,
    /// What the platform tells us, and the limits of it.
    pub webhooks: Webhooks,
    /// The keys beside LiveKit's own that may sign webhooks: key name to secret.
    pub webhook_keys: BTreeMap<String, SecretString>,
    /// The request that rings a phone, and every time that follows from it.
    pub dial: Dial,
    /// How rooms are made and stopped.
    pub room: Room,
    /// How surely rooms go that nobody needs any more.
    pub janitor: Janitor,
    /// How long we wait for an agent.
    pub agent: Agent,
    /// What differs for one agent.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// How long an attempt is ours, and what it may carry.
    pub attempt: Attempt,
    /// How attempts wait.
    pub queue: Queue,
    /// The adaptive limit.
    pub pace: Pace,
    /// The trunks that a request may name.
    pub trunks: BTreeMap<TrunkName, Trunk>,
    /// Which numbers may be called.
    pub numbers: Numbers,
    /// How what is open gets settled.
    pub reconcile: Reconcile,
    /// How a process ends.
    pub lifecycle: Lifecycle,
    /// What is written to stderr.
    pub log: Log,
}

impl Config {
    /// From these sources, over the defaults.
    ///
    /// # Errors
    ///
    /// Every fault of every source.
    pub fn load(sources: &Sources) -> Result<Self, Faults> {
        load(sources).map(|loaded| loaded.config)
    }

    /// From a TOML text over the defaults, for tests and for programs that embed this
    /// library: no file of configuration and no environment are read. A store without a
    /// path is in the working folder.
    ///
    /// # Errors
    ///
    /// Every fault of the text; its lines are those of a file named `text`.
    pub fn from_toml(text: &str) -> Result<Self, Faults> {
        load::from_text(text)
    }

    /// How long from now on the platform may start a call that anybody has dialed up to now.
    #[must_use]
    pub fn longest_horizon(&self) -> Duration {
        let dial = &self.dial;
        dial.send_by
            + self.livekit.token_leeway
            + dial.ringing_timeout_max
            + dial.server_slack
            + dial.no_answer_slack
    }
}

impl Default for Config {
    /// `config/default.toml` alone.
    fn default() -> Self {
        Self::from_toml("").expect("config/default.toml is sound; a test loads it")
    }
}
