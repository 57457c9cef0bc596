//! The records that lie beside an attempt, and how each is kept.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::store::{Due, Entry, Key, Kind, Queue};
use crate::model::attempt::{Attempt, Hold, Placed, Reason, Rule, State};
use crate::model::id::{AttemptId, ContactId, Nonce, RoomName, SessionId, Workspace};
use crate::model::time::Time;

/// The format of every body written by this version.
pub const FORMAT: u32 = 1;

/// Index: attempts of a workspace by create time.
pub const BY_TIME: &str = "time";
/// Index: attempts of a workspace by contact, then create time.
pub const BY_CONTACT: &str = "contact";
/// Index: attempts of a workspace by campaign, then create time.
pub const BY_CAMPAIGN: &str = "campaign";
/// Index: attempts of a workspace by outreach, then create time.
pub const BY_OUTREACH: &str = "outreach";
/// Index: attempts in a passing state, by state.
pub const BY_STATE: &str = "state";
/// Index: attempts that wait, by what they wait for.
pub const WAITS_FOR: &str = "waits";
/// Index: rooms that are not gone, by state.
pub const ROOMS: &str = "rooms";

/// A kind of record: how it is named, when it is due, and how it is found.
pub trait Stored: Serialize + DeserializeOwned {
    /// Its name.
    fn key(&self) -> Key;
    /// When it is looked at again.
    fn due(&self) -> Option<Due>;
    /// Its index entries.
    fn index(&self) -> Vec<Entry>;
}

/// `a/{workspace}/{attempt}`.
#[must_use]
pub fn attempt_key(workspace: &Workspace, attempt: &AttemptId) -> Key {
    Key::new(Kind::Attempt, format!("{workspace}/{attempt}"))
}

/// `c/{workspace}/{contact}`.
#[must_use]
pub fn contact_key(workspace: &Workspace, contact: &ContactId) -> Key {
    Key::new(Kind::Contact, format!("{workspace}/{contact}"))
}

/// `n/{workspace}/{number key}`.
#[must_use]
pub fn number_key(workspace: &Workspace, number: &str) -> Key {
    Key::new(Kind::Number, format!("{workspace}/{number}"))
}

/// `r/{workspace}/{session}`.
#[must_use]
pub fn room_key(workspace: &Workspace, session: SessionId) -> Key {
    Key::new(Kind::Room, format!("{workspace}/{session}"))
}

/// `s/{session}`.
#[must_use]
pub fn session_key(session: SessionId) -> Key {
    Key::new(Kind::Session, session.to_string())
}

/// The keys that every commit of an attempt's try reads and writes.
#[must_use]
pub fn keys_of(attempt: &Attempt) -> Vec<Key> {
    let mut keys = vec![
        attempt_key(&attempt.workspace, &attempt.id),
        contact_key(&attempt.workspace, &attempt.spec.contact),
        number_key(&attempt.workspace, &attempt.number_key),
    ];
    keys.extend(
        attempt
            .placed
            .as_ref()
            .map(|p| room_key(&attempt.workspace, p.session)),
    );
    keys
}

/// A time as index text: it sorts as the time does.
#[must_use]
pub fn sortable(at: Time) -> String {
    format!("{:020}", at.as_micros().max(0))
}

impl Stored for Attempt {
    fn key(&self) -> Key {
        attempt_key(&self.workspace, &self.id)
    }

    fn due(&self) -> Option<Due> {
        let queue = match self.state {
            State::Queued => Queue::Waiting,
            State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => Queue::Attempts,
        };
        Attempt::due(self).map(|at| Due { queue, at })
    }

    fn index(&self) -> Vec<Entry> {
        let at = sortable(self.create_time);
        let ws = &self.workspace;
        if self.tombstone {
            return vec![Entry {
                name: BY_TIME,
                value: format!("{ws}/{at}"),
            }];
        }
        let mut entries = vec![
            Entry {
                name: BY_TIME,
                value: format!("{ws}/{at}"),
            },
            Entry {
                name: BY_CONTACT,
                value: format!("{ws}/{}/{at}", self.spec.contact),
            },
            Entry {
                name: BY_OUTREACH,
                value: format!("{ws}/{}/{at}", self.spec.outreach),
            },
        ];
        if let Some(campaign) = &self.spec.campaign {
            entries.push(Entry {
                name: BY_CAMPAIGN,
                value: format!("{ws}/{campaign}/{at}"),
            });
        }
        if !self.state.settled() || self.state == State::Answered {
            entries.push(Entry {
                name: BY_STATE,
                value: format!("{}/{at}", self.state.name()),
            });
        }
        if self.state == State::Queued
            && let Some(waiting) = &self.waiting
        {
            let order = format!("{}/{at}", 9_u8.saturating_sub(self.spec.priority));
            entries.extend(waits_for(self, &waiting.reason).map(|what| Entry {
                name: WAITS_FOR,
                value: format!("{what}/{order}"),
            }));
        }
        entries
    }
}

/// The text under which what waits for `reason` is found by what frees it.
#[must_use]
pub fn waits_for(attempt: &Attempt, reason: &Reason) -> Option<String> {
    match reason.rule {
        Rule::ContactReserved => {
            Some(contact_key(&attempt.workspace, &attempt.spec.contact).to_string())
        }
        Rule::NumberInUse => Some(number_key(&attempt.workspace, &attempt.number_key).to_string()),
        Rule::Pace => Some(pace_of(attempt)),
        Rule::HistoryLost | Rule::Expired | Rule::Number(_) | Rule::NextTry => None,
    }
}

/// The text under which attempts wait for the pace of their trunk.
#[must_use]
pub fn pace_of(attempt: &Attempt) -> String {
    format!("pace/{}", attempt.spec.trunk)
}

/// Who holds a contact, and its last dials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The tenant.
    pub workspace: Workspace,
    /// The contact.
    pub contact: ContactId,
    /// Who holds it, and its dials.
    #[serde(flatten)]
    pub held: Held,
}

/// Who holds a number, and its last dials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// The tenant.
    pub workspace: Workspace,
    /// The number's key.
    pub number: String,
    /// Who holds it, and its dials.
    #[serde(flatten)]
    pub held: Held,
}

/// What contacts and numbers have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The present hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The last attempt markers, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dials: Vec<Time>,
    /// The last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<Time>,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// The most dials that are remembered of one contact or number.
const DIALS_MAX: usize = 64;

impl Held {
    /// The hold that stands at `now` and is not `attempt`'s own.
    #[must_use]
    pub fn other(&self, attempt: &AttemptId, now: Time) -> Option<&Hold> {
        self.hold
            .as_ref()
            .filter(|hold| hold.attempt != *attempt && hold.stands(now))
    }

    /// Takes the hold for `attempt`, or renews it.
    pub fn take(&mut self, attempt: &AttemptId, now: Time, due: Time) {
        let since = self
            .hold
            .as_ref()
            .filter(|hold| hold.attempt == *attempt)
            .map_or(now, |hold| hold.since);
        self.hold = Some(Hold {
            attempt: attempt.clone(),
            since,
            due,
            until: None,
        });
    }

    /// Ends `attempt`'s hold: at once, or at `until`. Another attempt's hold is left alone.
    pub fn free(&mut self, attempt: &AttemptId, until: Option<Time>) {
        match (&mut self.hold, until) {
            (Some(hold), Some(until)) if hold.attempt == *attempt => {
                hold.until = Some(until);
                hold.due = until;
            }
            (Some(hold), None) if hold.attempt == *attempt => self.hold = None,
            (Some(_) | None, _) => {}
        }
    }

    /// Remembers a dial.
    pub fn dialed(&mut self, at: Time) {
        if self.dials.len() >= DIALS_MAX {
            self.dials.remove(0);
        }
        self.dials.push(at);
    }
}

impl Stored for Contact {
    fn key(&self) -> Key {
        contact_key(&self.workspace, &self.contact)
    }
    fn due(&self) -> Option<Due> {
        None
    }
    fn index(&self) -> Vec<Entry> {
        Vec::new()
    }
}

impl Stored for Number {
    fn key(&self) -> Key {
        number_key(&self.workspace, &self.number)
    }
    fn due(&self) -> Option<Due> {
        None
    }
    fn index(&self) -> Vec<Entry> {
        Vec::new()
    }
}

/// Which attempt and try a session belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The session.
    pub session: SessionId,
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// The number of the try.
    pub number: u32,
}

impl Stored for Session {
    fn key(&self) -> Key {
        session_key(self.session)
    }
    fn due(&self) -> Option<Due> {
        None
    }
    fn index(&self) -> Vec<Entry> {
        Vec::new()
    }
}

/// A room: the undo is recorded before the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt that owns it.
    pub attempt: AttemptId,
    /// Its session.
    pub session: SessionId,
    /// Its name.
    pub name: RoomName,
    /// The nonce in its metadata.
    pub nonce: Nonce,
    /// What is known of it.
    pub state: RoomState,
    /// When it was planned.
    pub planned_at: Time,
    /// The platform's id of it, once it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<String>,
    /// The trunk id that the dial used: an absence counts only while it is still listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<String>,
    /// Why it goes or went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<RoomCause>,
    /// When the platform can no longer make it anew by a late join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Time>,
    /// When it is looked at or deleted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// How often deleting it failed, for the back-off.
    #[serde(default)]
    pub setbacks: u32,
    /// A leg was seen in it after its end: contact and number are held again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leg_seen: bool,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// What is known of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomState {
    /// It is about to be made, or was made and nobody has confirmed it.
    Planned,
    /// The platform confirmed it.
    Created,
    /// Its attempt is closed: it is to be deleted.
    Closing,
    /// Deleted or seen finished; looked at once more after the horizon.
    Gone,
    /// Nothing of it can come back.
    Tombstone,
}

/// Why a room went: the `cause` of `room.deleted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomCause {
    /// It was never made: the create was refused or not sent.
    NeverCreated,
    /// The try failed before a call was started.
    TryFailed,
    /// The call was not answered.
    NotConnected,
    /// The attempt was canceled.
    Canceled,
    /// The answered call ended.
    Ended,
    /// Its agent went away.
    AgentLost,
    /// It lasted as long as it may.
    Maximum,
    /// It was seen to be gone by itself.
    Finished,
    /// Found again after the horizon.
    Late,
    /// A person had it deleted.
    Operator,
    /// The platform does not list it and did not say whether a node runs it, until no call
    /// could be in it any more.
    Outlived,
}

impl RoomCause {
    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverCreated => "never_created",
            Self::TryFailed => "try_failed",
            Self::NotConnected => "not_connected",
            Self::Canceled => "canceled",
            Self::Ended => "ended",
            Self::AgentLost => "agent_lost",
            Self::Maximum => "maximum",
            Self::Finished => "finished",
            Self::Late => "late",
            Self::Operator => "operator",
            Self::Outlived => "outlived",
        }
    }
}

impl Room {
    /// The room of a try that was just reserved: recorded before it is made, so that whoever
    /// finds the record can undo it.
    #[must_use]
    pub fn planned(attempt: &Attempt, placed: &Placed) -> Self {
        Self {
            workspace: attempt.workspace.clone(),
            attempt: attempt.id.clone(),
            session: placed.session,
            name: placed.room.clone(),
            nonce: placed.nonce,
            state: RoomState::Planned,
            planned_at: placed.reserved_at,
            sid: None,
            trunk: None,
            cause: None,
            horizon: None,
            due: None,
            setbacks: 0,
            leg_seen: false,
            rest: serde_json::Map::new(),
        }
    }

    /// Marks it for deletion at `due`.
    pub fn close(&mut self, cause: RoomCause, due: Time) {
        match self.state {
            RoomState::Planned | RoomState::Created => {
                self.state = RoomState::Closing;
                self.cause = Some(cause);
                self.due = Some(due);
            }
            RoomState::Closing | RoomState::Gone | RoomState::Tombstone => {}
        }
    }
}

impl Stored for Room {
    fn key(&self) -> Key {
        room_key(&self.workspace, self.session)
    }

    fn due(&self) -> Option<Due> {
        self.due.map(|at| Due {
            queue: Queue::Rooms,
            at,
        })
    }

    fn index(&self) -> Vec<Entry> {
        let name = match self.state {
            RoomState::Planned => "planned",
            RoomState::Created => "created",
            RoomState::Closing => "closing",
            RoomState::Gone | RoomState::Tombstone => return Vec::new(),
        };
        vec![Entry {
            name: ROOMS,
            value: format!("{name}/{}", sortable(self.planned_at)),
        }]
    }
}
