//! What will happen, and when. Most entries of things that are over are ignored when they
//! come due, which is simpler than finding them; a room's are taken back, since they
//! would be kept for minutes after it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::message::{CallTicket, Request, Response};

/// Something that happens at its time.
#[derive(Debug)]
pub(super) enum Event {
    /// A request that waits gets its answer.
    Answer(CallTicket, Response),
    /// A request that waits loses its connection.
    Cut(CallTicket),
    /// A request that was held up is acted upon.
    Late(CallTicket, Request),
    /// A step of a call.
    Call(u64, Step),
    /// An agent joins the room of this sid for this dispatch.
    AgentJoins(AgentJob),
    /// An agent leaves.
    AgentLeaves(AgentJob),
    /// A room may have become empty for too long.
    Idle(Place),
    /// The room of this name has a webhook to send.
    Hook(String),
    /// Rooms that live are listed again after a flush of the records.
    Listed,
    /// The trunks are made again.
    TrunksBack,
    /// A killed server is back: the bridges join again.
    ServerBack,
}

/// A room at one time of its life: a name may come again with another sid.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) sid: String,
}

/// An agent on its way to a room, or out of it.
#[derive(Debug, Clone)]
pub(super) struct AgentJob {
    pub(super) place: Place,
    pub(super) dispatch: String,
    pub(super) agent_name: String,
    pub(super) identity: String,
    /// How long it stays, if not until it is told.
    pub(super) stays: Option<Duration>,
}

/// The steps of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The bridge is in the room, the INVITE leaves.
    Join,
    /// The bridge's track is published.
    Publish,
    /// 180: the phone rings.
    Ring,
    /// The callee, or the carrier, decides.
    Decide,
    /// The digits were sent after the answer.
    Answered,
    /// The callee hangs up, or the longest duration is over.
    HangUp,
    /// `ringing_timeout`.
    RingTimeout,
    /// The carrier gives up a phone that nobody cancels.
    CarrierTimeout,
    /// The server's deadline of the request.
    Deadline,
    /// The client's connection breaks while it rings on.
    Cut,
    /// The server gives up the participant of a killed bridge.
    BridgeLost,
}

/// Names an entry, to take it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(Duration, u64);

#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<Entry, Event>,
    next: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Duration, event: Event) -> Entry {
        self.next += 1;
        let entry = Entry(at, self.next);
        self.entries.insert(entry, event);
        entry
    }

    /// Takes an entry back; that it has come due already is no matter.
    pub(super) fn take_back(&mut self, entry: Entry) {
        self.entries.remove(&entry);
    }

    /// The earliest entry that is due at `now`.
    pub(super) fn take(&mut self, now: Duration) -> Option<(Duration, Event)> {
        let entry = self.entries.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let (Entry(at, _), event) = entry.remove_entry();
        Some((at, event))
    }

    pub(super) fn next_at(&self) -> Option<Duration> {
        self.entries.first_key_value().map(|(Entry(at, _), _)| *at)
    }
}
