//! The limits of the API: plain values, filled from the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::config::{self, AgentSettings, Config};
use crate::model::attempt::Gate;
use crate::model::id::{AgentName, TrunkName};

const MIB: usize = 1024 * 1024;
/// Below the 4 MiB that gRPC clients refuse unless told otherwise.
const PAGE_BYTES: usize = 3 * MIB;
/// A page of [`PAGE_BYTES`], or one attempt with everything at its limit.
const MESSAGE_OUT_MAX: usize = 8 * MIB;
/// One batch is held for each watch; more would not be sent faster.
const WATCH_BATCH_MAX: usize = 256;
/// A refusal for lost history waits for a person, who is not there within seconds.
const LOST_AGAIN: Duration = Duration::from_mins(5);
/// A restart, or a busy store, is over within seconds; clients add a jitter of their own.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Bytes of a reason in words: a sentence or two.
const REASON_MAX: usize = 256;

/// The limits of the API as a whole.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Those of a request to place a call.
    pub request: RequestLimits,
    /// Attempts on a page, if the caller does not say.
    pub page_default: usize,
    /// Attempts on a page at most.
    pub page_max: usize,
    /// Bytes of a page: below the 4 MiB that clients refuse by default. A page that would be
    /// larger has fewer attempts.
    pub page_bytes: usize,
    /// Bytes of a request.
    pub message_in_max: usize,
    /// Bytes of an answer: one attempt, or a page of `page_bytes`.
    pub message_out_max: usize,
    /// Streams at once on a connection. Below 1,024 clients queue silently.
    pub streams_max: u32,
    /// How often an idle connection is asked whether it lives: below the 30 s after which
    /// load balancers drop it.
    pub keepalive_interval: Duration,
    /// How long that answer may take.
    pub keepalive_timeout: Duration,
    /// How long an unary call may take, whatever its caller says.
    pub deadline_max: Duration,
    /// How long before its caller's deadline a wait answers with the present state.
    pub wait_margin: Duration,
    /// How long a wait lasts whose caller set no deadline: RESERVED's deadline and the window.
    pub wait_without_deadline: Duration,
    /// How long a cancel waits for a stop to settle.
    pub cancel_wait: Duration,
    /// How often a watch sends a bookmark.
    pub bookmark_every: Duration,
    /// Changes that a watch reads at once.
    pub watch_batch: usize,
    /// Watches at once.
    pub watches_max: usize,
    /// Whether the service describes itself to tools.
    pub reflection: bool,
    /// When a REFUSED for lost history is asked again.
    pub lost_again: Duration,
    /// How long a review waits for a person before it closes itself.
    pub review_hold: Duration,
    /// When a caller shall come again who was turned away for a passing reason.
    pub retry_after: Duration,
    /// How long connections may take to close once the server stops. A peer that does not
    /// react would otherwise hold it for ever (hyper issue 4170).
    pub close_within: Duration,
}

impl Default for Limits {
    /// Those of the default configuration.
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

impl From<&Config> for Limits {
    fn from(config: &Config) -> Self {
        let (grpc, dial) = (&config.grpc, &config.dial);
        // RESERVED's deadline and the window, as a request without wishes has them.
        let wait_without_deadline = config.attempt.reserved_for
            + config.agent.join_timeout
            + dial.ringing_timeout
            + dial
                .acknowledgement
                .max(dial.server_slack + dial.client_slack + dial.window_slack);
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            request: RequestLimits::from(config),
            page_default: count(grpc.page_default),
            page_max: count(grpc.page_max),
            page_bytes: PAGE_BYTES,
            message_in_max: grpc.message_max_bytes,
            message_out_max: MESSAGE_OUT_MAX,
            streams_max: grpc.concurrent_streams_max,
            keepalive_interval: grpc.keepalive_interval,
            keepalive_timeout: grpc.keepalive_timeout,
            deadline_max: grpc.wait_max + grpc.wait_margin,
            wait_margin: grpc.wait_margin,
            wait_without_deadline,
            cancel_wait: grpc.cancel_wait,
            bookmark_every: grpc.watch_bookmark,
            watch_batch: grpc.watch_buffer.min(WATCH_BATCH_MAX),
            watches_max: grpc.watches_max,
            reflection: grpc.reflection,
            lost_again: LOST_AGAIN,
            review_hold: config.attempt.review_hold,
            retry_after: RETRY_AFTER,
            close_within: config.lifecycle.abort_slack,
        }
    }
}

/// The limits and defaults of a request to place a call.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// How long it may ring, if the caller does not say.
    pub ringing_default: Duration,
    /// At least.
    pub ringing_min: Duration,
    /// At most: LiveKit refuses more than 80 s.
    pub ringing_max: Duration,
    /// How long the call may last, if the caller does not say.
    pub max_call_default: Duration,
    /// At most.
    pub max_call_max: Duration,
    /// How much longer than the ring it must be.
    pub max_call_margin: Duration,
    /// When it expires after `intend_time`, if the caller does not say.
    pub expiry_default: Duration,
    /// At most.
    pub expiry_max: Duration,
    /// How far ahead of our clock `intend_time` may be: the clocks of two hosts differ.
    pub intend_ahead: Duration,
    /// How long the agent may take to join, if the caller does not say.
    pub join_default: Duration,
    /// At most.
    pub join_max: Duration,
    /// Bytes of the agent's metadata: LiveKit carries it in a job of at most 64 KiB.
    pub metadata_max: usize,
    /// Labels of an attempt.
    pub labels_max: usize,
    /// Bytes of a label's key or value.
    pub label_max: usize,
    /// Headers of the INVITE: it should fit one datagram with its body.
    pub headers_max: usize,
    /// Bytes of a header's name or value.
    pub header_max: usize,
    /// Tones after the answer; each lengthens the dial.
    pub digits_max: usize,
    /// Bytes of a reason in words.
    pub reason_max: usize,
    /// The trunk, if the caller names none.
    pub trunk_default: Option<TrunkName>,
    /// The trunks that may be named; empty: any, LiveKit knows.
    pub trunks: BTreeSet<TrunkName>,
    /// The agent, if the caller names none.
    pub agent_default: Option<AgentName>,
    /// What must be true of an agent, if the caller does not say.
    pub gate_default: Gate,
    /// What differs for one agent.
    pub agents: BTreeMap<AgentName, AgentSettings>,
}

impl Default for RequestLimits {
    /// Those of the default configuration.
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

impl From<&Config> for RequestLimits {
    fn from(config: &Config) -> Self {
        let (dial, attempt, agent) = (&config.dial, &config.attempt, &config.agent);
        Self {
            ringing_default: dial.ringing_timeout,
            ringing_min: dial.ringing_timeout_min,
            ringing_max: dial.ringing_timeout_max,
            max_call_default: dial.max_call_duration,
            max_call_max: dial.max_call_duration_max,
            max_call_margin: dial.max_call_duration_margin,
            expiry_default: attempt.expiry,
            expiry_max: attempt.expiry_max,
            intend_ahead: attempt.intend_ahead,
            join_default: agent.join_timeout,
            join_max: agent.join_timeout_max,
            metadata_max: attempt.metadata_max_bytes,
            labels_max: attempt.labels_max,
            label_max: attempt.label_max_bytes,
            headers_max: attempt.headers_max,
            header_max: attempt.header_max_bytes,
            digits_max: dial.digits_max,
            reason_max: REASON_MAX,
            trunk_default: Some(dial.trunk.clone()),
            trunks: config.trunks.keys().cloned().collect(),
            agent_default: dial.agent.clone(),
            gate_default: gate(agent.gate),
            agents: config.agents.clone(),
        }
    }
}

/// The gate of the configuration, in the domain's words.
pub(super) const fn gate(gate: config::Gate) -> Gate {
    match gate {
        config::Gate::Joined => Gate::Joined,
        config::Gate::Dispatched => Gate::Dispatched,
    }
}
