//! What a decision sees: the records under its keys, present or absent.

use std::collections::BTreeMap;

use super::call::{CallRecord, Stray, call_key, stray_key};
use super::record::{
    Contact, FORMAT, Number, Room, Session, Stored, attempt_key, contact_key, number_key, room_key,
    session_key,
};
use super::store::{Commit, Failure, Key, Record, Version};
use super::{Error, store};
use crate::model::attempt::Attempt;
use crate::model::id::{AttemptId, ContactId, SessionId, Workspace};

/// The records under the keys of a decision. All of them are expected to be unchanged
/// when the decision is committed, the absent ones too.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub(super) records: BTreeMap<Key, Option<Record>>,
}

impl View {
    /// Whether `key` is among those loaded.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        self.records.contains_key(key)
    }

    /// Without the records of which `keep` says no.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Key) -> bool) -> Self {
        self.records.retain(|key, _| keep(key));
        self
    }

    /// The records as `commit` left them; `tell` hears which it wrote.
    pub(super) fn wrote(&mut self, commit: Commit, version: Version, tell: impl FnOnce(&[Key])) {
        let keys: Vec<Key> = commit.put.iter().map(|put| put.key.clone()).collect();
        tell(&keys);
        for key in commit.delete {
            self.records.insert(key, None);
        }
        for put in commit.put {
            let record = Record {
                key: put.key.clone(),
                format: put.format,
                version,
                commit: commit.id,
                due: put.due,
                body: put.body,
            };
            self.records.insert(put.key, Some(record));
        }
    }

    /// The version of each record, `None` for an absent one.
    pub(super) fn versions(&self) -> BTreeMap<Key, Option<Version>> {
        let version = |record: &Option<Record>| record.as_ref().map(|r| r.version);
        self.records
            .iter()
            .map(|(key, record)| (key.clone(), version(record)))
            .collect()
    }

    /// The version of the record under `key`.
    #[must_use]
    pub fn version(&self, key: &Key) -> Option<Version> {
        self.records.get(key)?.as_ref().map(|record| record.version)
    }

    /// The attempt, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or its key was not asked for.
    pub fn attempt(&self, ws: &Workspace, id: &AttemptId) -> Result<Option<Attempt>, Error> {
        self.get(&attempt_key(ws, id))
    }

    /// The contact's record; an empty one if there is none.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn contact(&self, ws: &Workspace, id: &ContactId) -> Result<Contact, Error> {
        let found = self.get(&contact_key(ws, id))?;
        Ok(found.unwrap_or_else(|| Contact {
            workspace: ws.clone(),
            contact: id.clone(),
            held: super::record::Held::default(),
        }))
    }

    /// The number's record; an empty one if there is none.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn number(&self, ws: &Workspace, number: &str) -> Result<Number, Error> {
        let found = self.get(&number_key(ws, number))?;
        Ok(found.unwrap_or_else(|| Number {
            workspace: ws.clone(),
            number: number.to_owned(),
            held: super::record::Held::default(),
        }))
    }

    /// The room of a session, if one was planned.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn room(&self, ws: &Workspace, session: SessionId) -> Result<Option<Room>, Error> {
        self.get(&room_key(ws, session))
    }

    /// The session's owner.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn session(&self, session: SessionId) -> Result<Option<Session>, Error> {
        self.get(&session_key(session))
    }

    /// What was seen of a session's call; `None` if nothing was.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn call(&self, ws: &Workspace, session: SessionId) -> Result<Option<CallRecord>, Error> {
        self.get(&call_key(ws, session))
    }

    /// Calls of an attempt that this store does not know; `None` if there are none.
    ///
    /// # Errors
    ///
    /// As [`View::attempt`].
    pub fn stray(&self, ws: &Workspace, id: &AttemptId) -> Result<Option<Stray>, Error> {
        self.get(&stray_key(ws, id))
    }

    fn get<T: Stored>(&self, key: &Key) -> Result<Option<T>, Error> {
        match self.records.get(key) {
            None => Err(Error::Fault(format!(
                "a decision read {key} without asking for it"
            ))),
            Some(None) => Ok(None),
            Some(Some(record)) => read(record).map(Some),
        }
    }
}

/// Reads a record's body.
pub(super) fn read<T: Stored>(record: &Record) -> Result<T, Error> {
    if record.format > FORMAT {
        let newer = Failure::Newer(record.key.to_string());
        return Err(Error::Store(store::Error::NotApplied(newer)));
    }
    // The error's text is not passed on: it may quote the body.
    serde_json::from_slice(&record.body).map_err(|_| {
        Error::Store(store::Error::NotApplied(Failure::Corrupt(format!(
            "the record {} cannot be read",
            record.key
        ))))
    })
}
