//! The record of what was seen of a session's call: observations, never a marker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Stored;
use super::store::{Due, Entry, Key, Kind};
use crate::model::id::{AttemptId, Nonce, SessionId, Workspace};
use crate::model::observation::Call;

/// `k/{workspace}/{session}`.
#[must_use]
pub fn call_key(workspace: &Workspace, session: SessionId) -> Key {
    Key::new(Kind::Call, format!("{workspace}/{session}"))
}

/// `k/{workspace}/@{attempt}`: no id has an `@`, so it is no session's.
#[must_use]
pub fn stray_key(workspace: &Workspace, attempt: &AttemptId) -> Key {
    Key::new(Kind::Call, format!("{workspace}/@{attempt}"))
}

/// The most strays that are kept of one attempt: one is reason enough not to dial.
const STRAYS_MAX: usize = 8;

/// Calls of an attempt that this store does not know, told by rooms of ours: it has lost
/// history, and the attempt must not be dialed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt, by the room's metadata.
    pub attempt: AttemptId,
    /// The sessions, each with the nonce in its room's metadata.
    pub sessions: BTreeMap<SessionId, Nonce>,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

impl Stray {
    /// Of an attempt without any yet.
    #[must_use]
    pub fn new(workspace: Workspace, attempt: AttemptId) -> Self {
        Self {
            workspace,
            attempt,
            sessions: BTreeMap::new(),
            rest: serde_json::Map::new(),
        }
    }

    /// Remembers a session; whether that is news.
    pub fn add(&mut self, session: SessionId, nonce: Nonce) -> bool {
        let room = self.sessions.len() < STRAYS_MAX;
        if !room || self.sessions.contains_key(&session) {
            return false;
        }
        self.sessions.insert(session, nonce);
        true
    }
}

impl Stored for Stray {
    fn key(&self) -> Key {
        stray_key(&self.workspace, &self.attempt)
    }

    fn due(&self) -> Option<Due> {
        None
    }

    fn index(&self) -> Vec<Entry> {
        Vec::new()
    }
}

/// What was seen of a session's call, by whomever.
///
/// It may be there before the attempt is: a store that lost its history is told of a call by a
/// webhook, and then that attempt is not dialed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt, by our records or by the room's metadata.
    pub attempt: AttemptId,
    /// The try.
    pub session: SessionId,
    /// What was seen.
    #[serde(flatten)]
    pub seen: Call,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

impl CallRecord {
    /// One of which nothing was seen yet.
    #[must_use]
    pub fn new(workspace: Workspace, attempt: AttemptId, session: SessionId) -> Self {
        Self {
            workspace,
            attempt,
            session,
            seen: Call::default(),
            rest: serde_json::Map::new(),
        }
    }
}

impl Stored for CallRecord {
    fn key(&self) -> Key {
        call_key(&self.workspace, self.session)
    }

    fn due(&self) -> Option<Due> {
        None
    }

    fn index(&self) -> Vec<Entry> {
        Vec::new()
    }
}
