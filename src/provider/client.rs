//! The client: every request to LiveKit goes through here.
//!
//! Requests that change nothing by being repeated (lists, looks, `DeleteRoom`) are sent
//! again, a few times, when no clear answer came. `CreateRoom`, `CreateDispatch` and the
//! dial are sent once. The methods stand beside their subject: [`super::rooms`],
//! [`super::participants`], [`super::dispatch`], [`super::trunks`], [`super::dial`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use secrecy::SecretString;
use tokio::time::Instant;

use super::call::no_response;
use super::health::{Health, Heard, Pulse};
use super::log::Log;
use super::skew::Skew;
use super::token::{Credentials, Grant};
use super::trunks::Trunks;
use super::wire::{Answer, Method, Reply, Request, Wire};
use crate::model::time::Time;
use crate::runtime::clock::Clock;

/// The limits of the client.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a request other than the dial may take, its answer included.
    pub timeout: Duration,
    /// How often a safe request is sent at most, the first time included; at least 1.
    pub sends: u32,
    /// The pause before a safe request is sent again; doubled each time.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How many room names go into one `ListRooms`, since its body is limited: LiveKit takes
    /// 10 MiB, and a name of ours is some 50 bytes.
    pub names_per_list: usize,
    /// How long the token of a request other than the dial is valid. It outlives its request by
    /// little, so that a leaked one is worth little.
    pub token_ttl: Duration,
    /// How long a trunk's id is kept before its name is looked up again, so that a trunk that
    /// was renamed or replaced is noticed although its old id still dials.
    pub trunk_cache: Duration,
    /// How far LiveKit's clock may be from this host's.
    pub clock_skew_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            sends: 3,
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(1),
            names_per_list: 500,
            token_ttl: Duration::from_mins(1),
            trunk_cache: Duration::from_mins(10),
            clock_skew_max: Duration::from_secs(5),
        }
    }
}

/// Asks LiveKit.
pub struct Client {
    wire: Arc<dyn Wire>,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
    pub(super) limits: Limits,
    pub(super) trunks: Trunks,
    pulse: Pulse,
    log: Log,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("wire", &self.wire)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that sends over `wire`.
    #[must_use]
    pub fn new(
        wire: Arc<dyn Wire>,
        credentials: Credentials,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        Self {
            wire,
            credentials,
            clock,
            limits,
            trunks: Trunks::new(limits.trunk_cache),
            pulse: Pulse::default(),
            log: Log::default(),
        }
    }

    /// Whether LiveKit answers and takes the key, by what it was asked so far.
    #[must_use]
    pub fn health(&self) -> Health {
        self.pulse.health()
    }

    /// Whether LiveKit's clock was seen to be further from this host's than is allowed, when it
    /// was seen last. Each answer shows it, so that this is seconds old before a dial.
    #[must_use]
    pub fn clocks_differ(&self) -> bool {
        self.health().clock.is_some_and(|skew| skew.is_too_far())
    }

    /// Mints the one token that a try's dial may use. It expires at `send_by`, to the second
    /// below, so that LiveKit's own clock refuses a process that was paused.
    #[must_use]
    pub fn mint_dial(&self, now: Time, send_by: Time) -> SecretString {
        self.credentials.mint(Grant::Dial, now, send_by)
    }

    /// Sends a request once.
    pub(super) async fn once(
        &self,
        method: Method,
        grant: Grant<'_>,
        body: &impl Message,
    ) -> Reply {
        self.send(self.request(method, grant, body.encode_to_vec()))
            .await
    }

    /// Sends a request that may be repeated, until a clear answer comes or the sends are used up.
    pub(super) async fn safe(
        &self,
        method: Method,
        grant: Grant<'_>,
        body: &impl Message,
    ) -> Reply {
        let body = body.encode_to_vec();
        let mut pause = self.limits.pause;
        let mut sends = 1;
        loop {
            let reply = self.send(self.request(method, grant, body.clone())).await;
            if sends >= self.limits.sends || !worth_repeating(&reply.answer) {
                return reply;
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(self.limits.longest_pause);
            sends += 1;
        }
    }

    /// Sends one request over the wire, notes what it says of LiveKit, and logs a failure by
    /// its class alone.
    pub(super) async fn send(&self, request: Request) -> Reply {
        let method = request.method;
        let (sent, started) = (self.clock.now(), Instant::now());
        let reply = self.wire.send(request).await;
        let now = self.clock.now();
        let heard = Heard::of(method, &reply.answer);
        let skew = (reply.date)
            .filter(|_| heard.is_livekits())
            .map(|date| Skew::of(date, sent, now, self.limits.clock_skew_max));
        self.pulse.note(heard, skew, now);
        self.log
            .answer(method, &reply.answer, heard, started.elapsed());
        if let Some(skew) = &skew {
            self.log.clock(skew);
        }
        reply
    }

    fn request(&self, method: Method, grant: Grant<'_>, body: Vec<u8>) -> Request {
        let now = self.clock.now();
        Request {
            method,
            token: self
                .credentials
                .mint(grant, now, now.plus(self.limits.token_ttl)),
            body,
            timeout: self.limits.timeout,
            server_deadline: None,
        }
    }
}

/// Whether another send may bring a clear answer.
fn worth_repeating(answer: &Answer) -> bool {
    match answer {
        Answer::NotSent(_) | Answer::Lost(_) => true,
        Answer::Done(_) => false,
        Answer::Refused(refusal) => refusal.status >= 500 && !no_response(answer),
        Answer::Strange(status) => *status >= 500,
    }
}
