//! `[listen]` and `[grpc]`: what others connect to, and the limits of what they may ask.

use std::net::SocketAddr;
use std::time::Duration;

use super::reader::Reader;
use super::units::{HOUR, MILLISECOND, MINUTE, SECOND};

/// What others connect to. Port 0 picks one; the ready line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where schedulers call.
    pub grpc: SocketAddr,
    /// Where LiveKit sends its webhooks.
    pub webhook: SocketAddr,
    /// Health, metrics and the operator page.
    pub admin: SocketAddr,
    /// Whether addresses beyond this host may be open without authentication.
    pub allow_unauthenticated: bool,
}

impl Listen {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("listen");
        Self {
            grpc: s.parsed("grpc", "127.0.0.1:7081"),
            webhook: s.parsed("webhook", "127.0.0.1:7082"),
            admin: s.parsed("admin", "127.0.0.1:7083"),
            allow_unauthenticated: s.flag("allow_unauthenticated"),
        }
    }
}

/// The limits of the gRPC interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grpc {
    /// The longest request, in bytes.
    pub message_max_bytes: usize,
    /// Streams that one connection may have open.
    pub concurrent_streams_max: u32,
    /// The pause between two keepalive pings.
    pub keepalive_interval: Duration,
    /// How long a ping may stay unanswered.
    pub keepalive_timeout: Duration,
    /// The items of a page when the caller names no number.
    pub page_default: u32,
    /// The items of a page at most; a greater wish gets this many.
    pub page_max: u32,
    /// How long before the caller's deadline a wait answers with what there is.
    pub wait_margin: Duration,
    /// The longest wait of a read that waits for a change.
    pub wait_max: Duration,
    /// How long `CancelAttempt` waits for its result before it says PENDING.
    pub cancel_wait: Duration,
    /// How often a quiet watch gets a bookmark.
    pub watch_bookmark: Duration,
    /// Changes that may wait for a slow watcher; beyond it the watch ends and is resumed.
    pub watch_buffer: usize,
    /// Watches that may be open in this process.
    pub watches_max: usize,
    /// Whether the service describes itself to tools.
    pub reflection: bool,
}

impl Grpc {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("grpc");
        Self {
            message_max_bytes: s.number("message_max_bytes", 65_536..=67_108_864),
            concurrent_streams_max: s.number("concurrent_streams_max", 1..=1_000_000),
            keepalive_interval: s
                .duration("keepalive_interval", MILLISECOND..=Duration::from_secs(29)),
            keepalive_timeout: s.duration("keepalive_timeout", MILLISECOND..=MINUTE),
            page_default: s.number("page_default", 1..=100_000),
            page_max: s.number("page_max", 1..=100_000),
            wait_margin: s.duration("wait_margin", MILLISECOND..=SECOND * 10),
            wait_max: s.duration("wait_max", MILLISECOND..=HOUR),
            cancel_wait: s.duration("cancel_wait", MILLISECOND..=MINUTE * 5),
            watch_bookmark: s.duration("watch_bookmark", MILLISECOND..=HOUR),
            watch_buffer: s.number("watch_buffer", 1..=1_000_000),
            watches_max: s.number("watches_max", 1..=100_000),
            reflection: s.flag("reflection"),
        }
    }
}
