//! The machine itself: what it holds, and how time passes in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use livekit_protocol as lk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::agenda::{Agenda, Event};
use super::answer::Answer;
use super::calls::Call;
use super::faults::{Fault, FaultError, Faults};
use super::hooks::{Delivery, HookTicket, Hooks};
use super::message::{CallTicket, Output, Reply, Request, Response};
use super::records::Stale;
use super::rooms::Room;
use super::settings::Settings;
use super::state::{Counts, Phone, State};
use super::timings::Timings;

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A LiveKit that rings nobody. See the [module](super).
///
/// Whoever drives it calls [`due`](Self::due) whenever [`next_due`](Self::next_due) has
/// come, and after each [`handle`](Self::handle), [`fault`](Self::fault) and
/// [`delivered`](Self::delivered), which may have made something due at once.
pub struct Platform {
    pub(super) settings: Settings,
    pub(super) now: Duration,
    pub(super) rng: StdRng,
    pub(super) agenda: Agenda,
    pub(super) outbox: Vec<Output>,
    /// Requests that wait for their answer.
    pub(super) waiting: BTreeSet<CallTicket>,
    /// Those of them whose answer will be lost.
    pub(super) lost: BTreeSet<CallTicket>,
    /// Those of them whose answer will come late, and by how much.
    pub(super) slowed: BTreeMap<CallTicket, Duration>,
    /// A dial that was held up: its own ticket, and that of the request.
    pub(super) aliases: BTreeMap<CallTicket, CallTicket>,
    next_ticket: u64,
    pub(super) rooms: BTreeMap<String, Room>,
    pub(super) stale: BTreeMap<String, Stale>,
    pub(super) trunks: BTreeMap<String, lk::SipOutboundTrunkInfo>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) next_call: u64,
    pub(super) hooks: Hooks,
    pub(super) faults: Faults,
    pub(super) counts: Counts,
    pub(super) timings: Timings,
    /// How far the platform's clock is off.
    pub(super) skew_micros: i64,
    /// Until when the records know no node.
    pub(super) nodes_back: Duration,
    /// Until when nobody listens.
    pub(super) down_until: Duration,
    /// The current second, and the dials in it.
    pub(super) dials_in_second: (u64, u32),
}

// By hand: the calls hold numbers and the agenda holds tokens.
impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platform")
            .field("now", &self.now)
            .field("rooms", &self.rooms.len())
            .field("calls", &self.calls.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Platform {
    /// A platform at `now == 0`, with its trunks made.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut platform = Self {
            rng: StdRng::seed_from_u64(settings.seed),
            settings,
            now: Duration::ZERO,
            agenda: Agenda::default(),
            outbox: Vec::new(),
            waiting: BTreeSet::new(),
            lost: BTreeSet::new(),
            slowed: BTreeMap::new(),
            aliases: BTreeMap::new(),
            next_ticket: 0,
            rooms: BTreeMap::new(),
            stale: BTreeMap::new(),
            trunks: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            hooks: Hooks::default(),
            faults: Faults::default(),
            counts: Counts::default(),
            timings: Timings::default(),
            skew_micros: 0,
            nodes_back: Duration::ZERO,
            down_until: Duration::ZERO,
            dials_in_second: (0, 0),
        };
        platform.make_trunks();
        platform
    }

    /// Takes a request. `now` is the time since the start; it never goes backwards, an
    /// earlier one counts as the latest seen.
    pub fn handle(&mut self, now: Duration, request: Request) -> Reply {
        self.advance(now);
        self.serve(request)
    }

    /// What has become due up to `now`, in order.
    pub fn due(&mut self, now: Duration) -> Vec<Output> {
        self.advance(now);
        std::mem::take(&mut self.outbox)
    }

    /// When to call [`due`](Self::due) next; a moment that has passed means at once.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        if self.outbox.is_empty() {
            self.agenda.next_at()
        } else {
            Some(self.now)
        }
    }

    /// The client of a waiting request went away. Nothing is told to the bridge: the
    /// phone rings on, and an answered call stays up. Seen on livekit-server 1.13.5.
    pub fn gone(&mut self, now: Duration, ticket: CallTicket) {
        self.advance(now);
        self.waiting.remove(&ticket);
        self.lost.remove(&ticket);
        self.slowed.remove(&ticket);
    }

    /// What became of a webhook that came out of [`due`](Self::due).
    pub fn delivered(&mut self, now: Duration, ticket: HookTicket, delivery: Delivery) {
        self.advance(now);
        self.hook_delivered(ticket, delivery);
    }

    /// Throws a fault.
    ///
    /// # Errors
    /// No fault has this name.
    pub fn fault(&mut self, now: Duration, fault: Fault) -> Result<(), FaultError> {
        self.advance(now);
        self.throw(fault)
    }

    /// What has happened and what lives, for tests and for `GET /sandbox/state`.
    #[must_use]
    pub fn state(&self) -> State {
        State::of(self)
    }

    /// From now on what happens to phones is kept for [`phones`](Self::phones).
    pub fn keep_phones(&mut self) {
        self.counts.phones.get_or_insert_default();
    }

    /// What happened to phones since the last time, in order.
    pub fn phones(&mut self) -> Vec<Phone> {
        self.counts
            .phones
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The names of the rooms that live.
    #[must_use]
    pub fn living(&self) -> Vec<String> {
        self.rooms.keys().cloned().collect()
    }

    /// The platform's wall clock, in microseconds since the Unix epoch.
    #[must_use]
    pub fn wall_micros(&self) -> i64 {
        let since = i64::try_from(self.now.as_micros()).unwrap_or(i64::MAX);
        self.settings
            .wall_start_micros
            .saturating_add(since)
            .saturating_add(self.skew_micros)
    }

    /// Lets everything happen that is due, each at its own time.
    fn advance(&mut self, now: Duration) {
        let now = now.max(self.now);
        while let Some((at, event)) = self.agenda.take(now) {
            self.now = at.max(self.now);
            self.happen(event);
        }
        self.now = now;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Answer(ticket, response) => self.respond(ticket, response),
            Event::Cut(ticket) => self.cut(ticket),
            Event::Late(ticket, request) => self.serve_late(ticket, &request),
            Event::Call(id, step) => self.step(id, step),
            Event::AgentJoins(job) => self.agent_joins(job),
            Event::AgentLeaves(job) => self.agent_leaves(&job),
            Event::Idle(place) => self.idle(&place),
            Event::Hook(room) => self.send_hook(&room),
            Event::Listed => self.list_again(),
            Event::TrunksBack => self.make_trunks(),
            Event::ServerBack => self.server_back(),
        }
    }

    pub(super) fn ticket(&mut self) -> CallTicket {
        self.next_ticket += 1;
        let ticket = CallTicket(self.next_ticket);
        self.waiting.insert(ticket);
        ticket
    }

    pub(super) fn answer(&mut self, ticket: CallTicket, answer: Answer) {
        let response = answer.at(self.wall_micros());
        self.respond(ticket, response);
    }

    /// Answers a request, if its client still waits.
    pub(super) fn respond(&mut self, ticket: CallTicket, response: Response) {
        if let Some(outer) = self.aliases.remove(&ticket) {
            self.waiting.remove(&ticket);
            return self.respond(outer, response);
        }
        if self.lost.remove(&ticket) {
            return self.cut(ticket);
        }
        if let Some(held) = self.slowed.remove(&ticket) {
            let at = self.now + held;
            self.agenda.put(at, Event::Answer(ticket, response));
            return;
        }
        if self.waiting.remove(&ticket) {
            self.outbox.push(Output::Answer(ticket, response));
        }
    }

    pub(super) fn cut(&mut self, ticket: CallTicket) {
        if let Some(outer) = self.aliases.remove(&ticket) {
            self.waiting.remove(&ticket);
            return self.cut(outer);
        }
        self.lost.remove(&ticket);
        self.slowed.remove(&ticket);
        if self.waiting.remove(&ticket) {
            self.outbox.push(Output::Cut(ticket));
        }
    }

    /// A new id of LiveKit's shape: a prefix and twelve letters or digits.
    pub(super) fn sid(&mut self, prefix: &str) -> String {
        let word = self.word(12);
        format!("{prefix}{word}")
    }

    pub(super) fn word(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| {
                let at = self.rng.random_range(0..LETTERS.len());
                char::from(LETTERS.get(at).copied().unwrap_or(b'A'))
            })
            .collect()
    }
}
