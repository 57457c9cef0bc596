//! Webhooks: one queue for each room, in order, one event in flight; LiveKit's retries
//! and drops (livekit/protocol `webhook/resource_url_notifier.go`).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol as lk;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::agenda::Event;
use super::machine::Platform;
use super::message::Output;
use super::state::WebhookCounts;
use super::token::sign;

/// How many events of one room wait at most; LiveKit's own number.
const QUEUE: usize = 200;
/// How often one event is sent at most; the default of go-retryablehttp.
const TRIES: u32 = 5;
/// How long a webhook's token is valid; LiveKit's own number, in seconds.
const TOKEN_SECS: i64 = 300;

/// Names one try of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookTicket(u64);

/// An event to send by POST. `Debug` leaves the body and the token out.
#[derive(Clone, PartialEq, Eq)]
pub struct Hook {
    /// To report its fate with.
    pub ticket: HookTicket,
    /// As `participant_left`.
    pub event: &'static str,
    /// The `Authorization` header: a bare token, without "Bearer ". Retries carry the same.
    pub authorization: String,
    /// The `Content-Type` header.
    pub content_type: &'static str,
    /// The body: camel case, defaults left out.
    pub body: Vec<u8>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("ticket", &self.ticket)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

/// What became of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver answered. 429 and 5xx except 501 are tried again; anything else,
    /// 4xx included, counts as delivered.
    Status {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, which LiveKit honours.
        retry_after: Option<Duration>,
    },
    /// No answer came.
    Lost,
}

#[derive(Debug)]
struct Queued {
    event: &'static str,
    authorization: String,
    body: Vec<u8>,
    at: Duration,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Queued>,
    /// Failed tries of the first event.
    tries: u32,
    /// A send is scheduled or in flight.
    busy: bool,
}

#[derive(Debug, Default)]
pub(super) struct Hooks {
    queues: BTreeMap<String, Queue>,
    flying: BTreeMap<HookTicket, String>,
    next: u64,
    pub(super) counts: WebhookCounts,
}

impl Hooks {
    /// A server that dies takes its queues along.
    pub(super) fn forget(&mut self) {
        self.queues.clear();
        self.flying.clear();
    }
}

impl Platform {
    /// Queues an event of a room; what it says is fixed now.
    pub(super) fn tell(&mut self, room: &str, event: &'static str, mut body: lk::WebhookEvent) {
        if !self.settings.webhooks {
            return;
        }
        let Some((key, secret)) = self.settings.keys.first() else {
            return;
        };
        let (key, secret) = (key.to_owned(), secret.to_owned());
        let seconds = self.wall_micros().div_euclid(1_000_000);
        event.clone_into(&mut body.event);
        body.id = self.sid("EV_");
        body.created_at = seconds;
        // Through a `Value`, whose keys are in order, so that the same seed gives the
        // same bytes although attributes are hash maps.
        let Ok(value) = serde_json::to_value(&body) else {
            return;
        };
        let body = value.to_string().into_bytes();
        let claims = json!({
            "iss": key,
            "nbf": seconds,
            "iat": seconds,
            "exp": seconds + TOKEN_SECS,
            "sha256": STANDARD.encode(Sha256::digest(&body)),
        });
        let queued = Queued {
            event,
            authorization: sign(&secret, &claims),
            body,
            at: self.now,
        };
        let queue = self.hooks.queues.entry(room.to_owned()).or_default();
        if queue.events.len() >= QUEUE {
            self.hooks.counts.dropped += 1;
            return;
        }
        queue.events.push_back(queued);
        if !queue.busy {
            queue.busy = true;
            let at = self.now + self.settings.times.webhook_delay;
            self.agenda.put(at, Event::Hook(room.to_owned()));
        }
    }

    /// Sends the first event of a room's queue.
    pub(super) fn send_hook(&mut self, room: &str) {
        self.drop_stale(room);
        let Some(queue) = self.hooks.queues.get(room) else {
            return;
        };
        let Some(first) = queue.events.front() else {
            self.hooks.queues.remove(room);
            return;
        };
        let (event, authorization, body) =
            (first.event, first.authorization.clone(), first.body.clone());
        if self.faults.webhook_outage() {
            self.settle(room, false, None);
            return;
        }
        self.hooks.next += 1;
        let ticket = HookTicket(self.hooks.next);
        self.hooks.flying.insert(ticket, room.to_owned());
        self.outbox.push(Output::Webhook(Hook {
            ticket,
            event,
            authorization,
            content_type: "application/webhook+json",
            body,
        }));
    }

    fn drop_stale(&mut self, room: &str) {
        let limit = self.settings.times.webhook_stale;
        let now = self.now;
        let Some(queue) = self.hooks.queues.get_mut(room) else {
            return;
        };
        while queue.tries == 0
            && queue
                .events
                .front()
                .is_some_and(|first| now.saturating_sub(first.at) > limit)
        {
            queue.events.pop_front();
            self.hooks.counts.dropped += 1;
        }
    }

    pub(super) fn hook_delivered(&mut self, ticket: HookTicket, delivery: Delivery) {
        let Some(room) = self.hooks.flying.remove(&ticket) else {
            return;
        };
        match delivery {
            Delivery::Status {
                status,
                retry_after,
            } => {
                let lost = self.faults.webhook_answer_lost();
                let again = lost || status == 429 || (status >= 500 && status != 501);
                self.settle(&room, !again, retry_after);
            }
            Delivery::Lost => self.settle(&room, false, None),
        }
    }

    fn settle(&mut self, room: &str, delivered: bool, retry_after: Option<Duration>) {
        let Some(queue) = self.hooks.queues.get_mut(room) else {
            return;
        };
        let mut at = self.now;
        if delivered {
            self.hooks.counts.sent += 1;
            queue.events.pop_front();
            queue.tries = 0;
        } else {
            queue.tries += 1;
            if queue.tries < TRIES {
                self.hooks.counts.retried += 1;
                let doubled = self.settings.times.webhook_wait * 2_u32.pow(queue.tries - 1);
                at += retry_after.unwrap_or(doubled);
            } else {
                self.hooks.counts.dropped += 1;
                queue.events.pop_front();
                queue.tries = 0;
            }
        }
        if queue.events.is_empty() {
            self.hooks.queues.remove(room);
        } else {
            self.agenda.put(at, Event::Hook(room.to_owned()));
        }
    }
}
