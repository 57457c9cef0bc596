//! The record of what was seen of a session's call: observations, never a marker.

use serde::{Deserialize, Serialize};

use super::record::Stored;
use super::store::{Due, Entry, Key, Kind};
use crate::model::id::{AttemptId, SessionId, Workspace};
use crate::model::observation::Call;

/// `k/{workspace}/{session}`.
#[must_use]
pub fn call_key(workspace: &Workspace, session: SessionId) -> Key {
    Key::new(Kind::Call, format!("{workspace}/{session}"))
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
