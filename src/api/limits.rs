//! The limits of the API: plain values, filled from the configuration.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::model::id::{AgentName, TrunkName};

const KIB: usize = 1024;

/// The limits of the API as a whole.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Those of a request to place a call.
    pub request: RequestLimits,
    /// Attempts on a page, if the caller does not say.
    pub page_default: usize,
    /// Attempts on a page at most.
    pub page_max: usize,
    /// Bytes of a message, in either direction. A request is at most some 100 KB; a page of
    /// attempts with whole histories is the largest answer.
    pub message_in_max: usize,
    /// Bytes of an answer: what a page of the largest attempts needs.
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
    /// When a REFUSED for lost history is asked again.
    pub lost_again: Duration,
    /// When a caller shall come again who was turned away for a passing reason.
    pub retry_after: Duration,
    /// How long connections may take to close once the server stops. A peer that does not
    /// react would otherwise hold it for ever (hyper issue 4170).
    pub close_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: RequestLimits::default(),
            page_default: 50,
            page_max: 1_000,
            message_in_max: 1024 * KIB,
            message_out_max: 32 * 1024 * KIB,
            streams_max: 2_048,
            keepalive_interval: Duration::from_secs(20),
            keepalive_timeout: Duration::from_secs(20),
            deadline_max: Duration::from_mins(15),
            wait_margin: Duration::from_millis(250),
            wait_without_deadline: Duration::from_secs(35 + 10 + 80),
            cancel_wait: Duration::from_secs(10),
            bookmark_every: Duration::from_secs(15),
            watch_batch: 256,
            lost_again: Duration::from_mins(5),
            retry_after: Duration::from_secs(2),
            close_within: Duration::from_secs(5),
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
    /// Characters of a label's key.
    pub label_key_max: usize,
    /// Characters of a label's value.
    pub label_value_max: usize,
    /// Headers of the INVITE: it should fit one datagram with its body.
    pub headers_max: usize,
    /// Characters of a header's name.
    pub header_name_max: usize,
    /// Characters of a header's value.
    pub header_value_max: usize,
    /// Tones after the answer; each lengthens the dial.
    pub digits_max: usize,
    /// Characters of a reason in words.
    pub reason_max: usize,
    /// The trunk, if the caller names none.
    pub trunk_default: Option<TrunkName>,
    /// The trunks that may be named; empty: any, LiveKit knows.
    pub trunks: BTreeSet<TrunkName>,
    /// The agent, if the caller names none.
    pub agent_default: Option<AgentName>,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            ringing_default: Duration::from_secs(45),
            ringing_min: Duration::from_secs(5),
            ringing_max: Duration::from_secs(80),
            max_call_default: Duration::from_hours(1),
            max_call_max: Duration::from_hours(24),
            max_call_margin: Duration::from_secs(10),
            expiry_default: Duration::from_hours(1),
            expiry_max: Duration::from_hours(7 * 24),
            intend_ahead: Duration::from_secs(30),
            join_default: Duration::from_secs(10),
            join_max: Duration::from_mins(2),
            metadata_max: 60_000,
            labels_max: 32,
            label_key_max: 64,
            label_value_max: 256,
            headers_max: 16,
            header_name_max: 64,
            header_value_max: 256,
            digits_max: 64,
            reason_max: 256,
            trunk_default: None,
            trunks: BTreeSet::new(),
            agent_default: None,
        }
    }
}
