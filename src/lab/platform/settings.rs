//! What a platform is set up with: keys, trunks, workers and all its times.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The API key of the sandbox.
pub(crate) const DEV_KEY: &str = "devkey";
/// The API secret of the sandbox. Long enough that LiveKit does not complain of it.
pub(crate) const DEV_SECRET: &str = "devsecret_that_is_at_least_32_chars_long";

/// The API keys, each with its secret. `Debug` shows the keys alone.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<String, String>);

impl Keys {
    /// One key.
    #[must_use]
    pub fn one(key: &str, secret: &str) -> Self {
        Self(BTreeMap::from([(key.to_owned(), secret.to_owned())]))
    }

    /// The same with one key more.
    #[must_use]
    pub fn and(mut self, key: &str, secret: &str) -> Self {
        self.0.insert(key.to_owned(), secret.to_owned());
        self
    }

    pub(super) fn secret(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(super) fn first(&self) -> Option<(&str, &str)> {
        self.0
            .iter()
            .next()
            .map(|(key, secret)| (key.as_str(), secret.as_str()))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How an agent's worker takes its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// The agent joins this long after the dispatch.
    Joins {
        /// From the dispatch to the agent in the room.
        after: Duration,
    },
    /// The same, but far too late; apart so that a reader sees the intent.
    Late {
        /// From the dispatch to the agent in the room.
        after: Duration,
    },
    /// No such worker is registered: a dispatch is accepted and nobody comes, ever.
    Absent,
    /// The agent joins and goes away again.
    Leaves {
        /// From the dispatch to the agent in the room.
        join: Duration,
        /// From its join to its leaving.
        after: Duration,
    },
    /// Two workers take the same job: two agents of one name join.
    Doubled {
        /// From the dispatch to the agents in the room.
        after: Duration,
    },
}

/// A registered worker.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The agent's name; empty for an unnamed worker, which joins every room whose
    /// creator named no agents.
    pub agent_name: String,
    /// How it takes its jobs.
    pub behaviour: Behaviour,
}

impl Worker {
    /// A worker.
    #[must_use]
    pub fn new(agent_name: &str, behaviour: Behaviour) -> Self {
        Self {
            agent_name: agent_name.to_owned(),
            behaviour,
        }
    }
}

/// An outbound trunk that exists from the start and comes back after `trunk_flush`.
#[derive(Debug, Clone)]
pub struct Trunk {
    /// Its name. Names are not unique on the platform.
    pub name: String,
    /// The carrier's host and port.
    pub address: String,
    /// The numbers it calls from; at least one.
    pub numbers: Vec<String>,
}

/// How the platform is set up. Every field may be changed after [`Settings::default`].
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who may call, and whose key signs the webhooks (the first).
    pub keys: Keys,
    /// The wall clock at `now == 0`, in microseconds since the Unix epoch.
    pub wall_start_micros: i64,
    /// All ids and tokens come from it.
    pub seed: u64,
    /// How late after `exp`, and how early before `nbf`, a token is still taken. Seen on
    /// livekit-server 1.13.5: 60 s.
    pub token_leeway: Duration,
    /// Whether a dial or a dispatch makes a missing room (`room.auto_create`).
    pub auto_create: bool,
    /// Whether webhooks are sent at all.
    pub webhooks: bool,
    /// The workers, in the order in which they are asked.
    pub workers: Vec<Worker>,
    /// The trunks at the start.
    pub trunks: Vec<Trunk>,
    /// Dials a second above which the bridge says "cpu exhausted"; `None`: no limit.
    pub capacity: Option<u32>,
    /// Whether it is kept when calls began and ended and how long requests took: memory for
    /// each call, for whoever measures.
    pub timings: bool,
    /// All times.
    pub times: Times,
}

impl Default for Settings {
    /// The sandbox: key `devkey`, trunk `main`, agent `caller` that joins after 0.4 s.
    fn default() -> Self {
        Self {
            keys: Keys::one(DEV_KEY, DEV_SECRET),
            wall_start_micros: 1_800_000_000_000_000,
            seed: 0,
            token_leeway: Duration::from_mins(1),
            auto_create: true,
            webhooks: true,
            workers: vec![Worker::new(
                "caller",
                Behaviour::Joins {
                    after: Duration::from_millis(400),
                },
            )],
            trunks: vec![Trunk {
                name: "main".to_owned(),
                address: "127.0.0.1:5080".to_owned(),
                numbers: vec!["+12025550000".to_owned()],
            }],
            capacity: None,
            timings: false,
            times: Times::default(),
        }
    }
}

/// All times of the platform. The defaults are those of LiveKit, or what was seen of it;
/// those of the callees are chosen.
#[derive(Debug, Clone)]
pub struct Times {
    /// From the request to the bridge in the room: the INVITE leaves then.
    pub join: Duration,
    /// From the join to the bridge's published track.
    pub publish: Duration,
    /// From the INVITE to the first ring (180).
    pub ring_after: Duration,
    /// From the first ring to a prompt callee's answer.
    pub answer_after: Duration,
    /// From the first ring to a slow callee's answer.
    pub slow_answer: Duration,
    /// From the first ring, or the INVITE where none rings, to a refusal.
    pub refuse_after: Duration,
    /// From the first ring to the broken connection of callee 99.
    pub cut_after: Duration,
    /// How long a callee talks who talks until told.
    pub talk: Duration,
    /// How long a callee talks who hangs up soon.
    pub short_talk: Duration,
    /// When a silent carrier is given up (64 times T1, seen as 32.5 s).
    pub transaction: Duration,
    /// How long it rings when the request names no `ringing_timeout`.
    pub ringing: Duration,
    /// The longest call when the request names no `max_call_duration`.
    pub max_call: Duration,
    /// The server's deadline of a dial that waits for the answer, without the header.
    pub deadline_waiting: Duration,
    /// The server's deadline of a dial that does not wait, without the header.
    pub deadline: Duration,
    /// After which no bridge having claimed the call is an error.
    pub no_bridge: Duration,
    /// After which an RPC to a room that lives on no node is an error.
    pub no_room: Duration,
    /// How long the resolution of a trunk's unknown host takes.
    pub resolve: Duration,
    /// Empty timeout of a room whose creator named none.
    pub empty: Duration,
    /// Departure timeout of a room whose creator named none.
    pub departure: Duration,
    /// How often a room's counts of participants are refreshed.
    pub counts: Duration,
    /// How long the server keeps the participant of a killed bridge.
    pub bridge_lost: Duration,
    /// How long a phone rings beyond its ringing timeout when the bridge that would cancel
    /// it was killed, until the carrier gives up.
    pub rings_on: Duration,
    /// How long a killed server stays away.
    pub restart: Duration,
    /// How long after a flush of Redis no node is known.
    pub nodes_back: Duration,
    /// The first wait between two tries of a webhook; it doubles.
    pub webhook_wait: Duration,
    /// An event that waited longer than this for its first send is dropped.
    pub webhook_stale: Duration,
    /// From an event to its first send.
    pub webhook_delay: Duration,
}

impl Times {
    /// With callees and a bridge that take no time of their own: what is left is what stands
    /// around them.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self {
            join: Duration::ZERO,
            publish: Duration::ZERO,
            ring_after: Duration::ZERO,
            answer_after: Duration::ZERO,
            refuse_after: Duration::ZERO,
            ..self
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        let ms = Duration::from_millis;
        let s = Duration::from_secs;
        Self {
            join: ms(30),
            publish: ms(40),
            ring_after: ms(100),
            answer_after: s(1),
            slow_answer: s(8),
            refuse_after: ms(500),
            cut_after: ms(500),
            talk: s(20),
            short_talk: s(2),
            transaction: ms(32_500),
            ringing: s(180),
            max_call: Duration::from_hours(24),
            deadline_waiting: s(80),
            deadline: s(30),
            no_bridge: s(1),
            no_room: ms(3_400),
            resolve: ms(5_400),
            empty: s(300),
            departure: s(20),
            counts: s(5),
            bridge_lost: s(20),
            rings_on: s(100),
            restart: s(7),
            nodes_back: s(5),
            webhook_wait: s(1),
            webhook_stale: s(30),
            webhook_delay: Duration::ZERO,
        }
    }
}
