//! What writes: one piece of work inside the writer's transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::fault::Fault;
use super::{read, schema};
use crate::ledger::store::{
    Commit, Committed, Entry, Epoch, Failure, Key, Position, Put, Queue, Record, Trim, Version,
};
use crate::model::time::Time;

/// What changes with a transaction, and is taken back with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) epoch: Epoch,
    /// The number of the last commit.
    pub(super) version: i64,
}

/// The writer's transaction, as a piece of work sees it.
#[derive(Debug)]
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) state: State,
}

/// A present record, as far as a commit must know it.
struct Present {
    id: i64,
    version: Version,
    format: u32,
    commit: Uuid,
    entries: String,
}

impl Tx<'_> {
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Committed, Fault> {
        if commit.epoch != self.state.epoch {
            return Err(Failure::Epoch.into());
        }
        let mut present = BTreeMap::new();
        for key in commit.expect.keys() {
            if let Some(found) = self.present(key)? {
                present.insert(key, found);
            }
        }
        if let Some(version) = repeated(commit, &present) {
            return Ok(Committed::Applied(version));
        }
        let holds = |(key, expected): (&Key, &Option<Version>)| {
            present.get(key).map(|found| found.version) == *expected
        };
        if !commit.expect.iter().all(holds) {
            return self.conflict(commit);
        }
        for put in &commit.put {
            if (present.get(&put.key)).is_some_and(|found| found.format > put.format) {
                return Err(Failure::Newer(put.key.to_string()).into());
            }
        }
        self.state.version += 1;
        for key in &commit.delete {
            if let Some(found) = present.get(key) {
                self.remove(&key.text(), found.id, &found.entries)?;
            }
        }
        for put in &commit.put {
            self.put(commit, put, present.get(&put.key))?;
        }
        self.append(commit)?;
        Ok(Committed::Applied(self.version()))
    }

    fn version(&self) -> Version {
        Version(self.state.version.cast_unsigned())
    }

    fn present(&self, key: &Key) -> Result<Option<Present>, Fault> {
        let row = self
            .conn
            .prepare_cached(
                "SELECT id, version, format, commit_id, entries FROM record WHERE key = ?1",
            )?
            .query_row([key.text()], |row| {
                let commit = row.get_ref(3)?.as_blob()?;
                Ok(Present {
                    id: row.get(0)?,
                    version: Version(row.get::<_, i64>(1)?.cast_unsigned()),
                    format: row.get(2)?,
                    commit: Uuid::from_slice(commit).unwrap_or_default(),
                    entries: row.get(4)?,
                })
            });
        Ok(row.optional()?)
    }

    fn conflict(&self, commit: &Commit) -> Result<Committed, Fault> {
        let mut present: BTreeMap<Key, Option<Record>> = BTreeMap::new();
        for key in commit.expect.keys() {
            present.insert(key.clone(), read::one(self.conn, key)?);
        }
        Ok(Committed::Conflict(present))
    }

    fn put(&self, commit: &Commit, put: &Put, present: Option<&Present>) -> Result<(), Fault> {
        let key = put.key.text();
        let kind = put.key.kind().letter().to_string();
        let entries = pack(&put.index)?;
        let queue = put.due.as_ref().map(|due| due.queue.name());
        let due = put.due.as_ref().map(|due| due.at.as_micros());
        let commit_id = commit.id.0.as_bytes().as_slice();
        let version = self.state.version;
        let written = commit.at.as_micros();
        let Some(found) = present else {
            self.conn
                .prepare_cached(
                    "INSERT INTO record (key, kind, format, version, commit_id, queue, due, wake,
                        written, entries, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10)",
                )?
                .execute(params![
                    key, kind, put.format, version, commit_id, queue, due, written, entries,
                    put.body
                ])?;
            let id = self.conn.last_insert_rowid();
            return self.add(&key, id, put.index.iter().map(plain));
        };
        self.conn
            .prepare_cached(
                "UPDATE record SET format = ?2, version = ?3, commit_id = ?4, queue = ?5, due = ?6,
                    wake = ?6, written = ?7, entries = ?8, body = ?9
                 WHERE id = ?1",
            )?
            .execute(params![
                found.id, put.format, version, commit_id, queue, due, written, entries, put.body
            ])?;
        if found.entries == entries {
            return Ok(());
        }
        // Only what differs: most rewrites leave most of their entries alone.
        let old = unpack(&found.entries)?;
        let kept = |entry: &Entry| old.iter().any(|old| plain(entry) == (&old.0, &old.1));
        let gone = |old: &&(String, String)| {
            !(put.index.iter()).any(|entry| plain(entry) == (&old.0, &old.1))
        };
        self.take(&key, old.iter().filter(gone))?;
        let new = put.index.iter().filter(|entry| !kept(entry));
        self.add(&key, found.id, new.map(plain))
    }

    fn append(&self, commit: &Commit) -> Result<(), Fault> {
        if commit.events.is_empty() {
            return Ok(());
        }
        let mut statement = self
            .conn
            .prepare_cached("INSERT INTO log (position, at, key, body) VALUES (?1, ?2, ?3, ?4)")?;
        for (ordinal, event) in (0..).zip(&commit.events) {
            let position = read::pack(Position {
                version: self.version(),
                ordinal,
            });
            let key = event.key.text();
            statement.execute(params![position, commit.at.as_micros(), key, event.body])?;
        }
        Ok(())
    }

    fn remove(&self, key: &str, id: i64, entries: &str) -> Result<(), Fault> {
        self.take(key, unpack(entries)?.iter())?;
        self.conn
            .prepare_cached("DELETE FROM record WHERE id = ?1")?
            .execute([id])?;
        Ok(())
    }

    fn add<'a>(
        &self,
        key: &str,
        id: i64,
        entries: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), Fault> {
        let mut entries = entries.peekable();
        if entries.peek().is_none() {
            return Ok(());
        }
        // "or ignore": the same entry given twice is one.
        let mut statement = self.conn.prepare_cached(
            "INSERT OR IGNORE INTO entry (name, value, key, record) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (name, value) in entries {
            statement.execute(params![name, value, key, id])?;
        }
        Ok(())
    }

    fn take<'a>(
        &self,
        key: &str,
        entries: impl Iterator<Item = &'a (String, String)>,
    ) -> Result<(), Fault> {
        for (name, value) in entries {
            self.conn
                .prepare_cached("DELETE FROM entry WHERE name = ?1 AND value = ?2 AND key = ?3")?
                .execute(params![name, value, key])?;
        }
        Ok(())
    }

    pub(super) fn claim_due(
        &mut self,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Record>, Fault> {
        let mut claimed = Vec::new();
        let mut ids: Vec<i64> = Vec::new();
        {
            let mut statement = self.conn.prepare_cached(
                "SELECT key, format, version, commit_id, queue, due, body, id FROM record
                 WHERE queue = ?1 AND wake <= ?2 ORDER BY wake, key LIMIT ?3",
            )?;
            let mut rows =
                statement.query(params![queue.name(), now.as_micros(), read::rows(limit)])?;
            while let Some(row) = rows.next()? {
                claimed.push(read::record(row)?);
                ids.push(row.get(7)?);
            }
        }
        let until = now.plus(lease).as_micros();
        let mut statement = self
            .conn
            .prepare_cached("UPDATE record SET wake = ?2 WHERE id = ?1")?;
        for id in ids {
            statement.execute([id, until])?;
        }
        Ok(claimed)
    }

    pub(super) fn trim(&mut self, what: Trim, before: Time, limit: usize) -> Result<usize, Fault> {
        match what {
            Trim::Events => self.trim_events(before, limit),
            Trim::Records(kind) => {
                let mut old: Vec<(i64, String, String)> = Vec::new();
                {
                    let mut statement = self.conn.prepare_cached(
                        "SELECT id, key, entries FROM record
                         WHERE kind = ?1 AND due IS NULL AND written < ?2
                         ORDER BY written LIMIT ?3",
                    )?;
                    let mut rows = statement.query(params![
                        kind.letter().to_string(),
                        before.as_micros(),
                        read::rows(limit)
                    ])?;
                    while let Some(row) = rows.next()? {
                        old.push((row.get(0)?, row.get(1)?, row.get(2)?));
                    }
                }
                for (id, key, entries) in &old {
                    self.remove(key, *id, entries)?;
                }
                Ok(old.len())
            }
        }
    }

    /// From the beginning, up to the first event that is not older; never the last one.
    fn trim_events(&self, before: Time, limit: usize) -> Result<usize, Fault> {
        let mut statement = self.conn.prepare_cached(
            "SELECT position, at FROM log
             WHERE position < (SELECT max(position) FROM log) ORDER BY position LIMIT ?1",
        )?;
        let mut rows = statement.query([read::rows(limit)])?;
        let mut through: Option<i64> = None;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? >= before.as_micros() {
                break;
            }
            through = Some(row.get(0)?);
        }
        drop(rows);
        Ok(self
            .conn
            .prepare_cached("DELETE FROM log WHERE position <= ?1")?
            .execute([through])?)
    }

    pub(super) fn begin_epoch(&mut self, epoch: Epoch) -> Result<(), Fault> {
        schema::set_epoch(self.conn, epoch)?;
        self.state.epoch = epoch;
        Ok(())
    }
}

fn repeated(commit: &Commit, present: &BTreeMap<&Key, Present>) -> Option<Version> {
    let mut version = None;
    for put in &commit.put {
        let found = present.get(&put.key)?;
        if found.commit != commit.id.0 {
            return None;
        }
        version = Some(found.version);
    }
    version
}

fn plain(entry: &Entry) -> (&str, &str) {
    (entry.name, &entry.value)
}

fn pack(index: &[Entry]) -> Result<String, Fault> {
    if index.is_empty() {
        return Ok("[]".to_owned());
    }
    let entries: Vec<(&str, &str)> = index.iter().map(plain).collect();
    Ok(serde_json::to_string(&entries).map_err(|error| Failure::Other(error.to_string()))?)
}

fn unpack(entries: &str) -> Result<Vec<(String, String)>, Fault> {
    Ok(serde_json::from_str(entries)
        .map_err(|_| Failure::Corrupt("a record's index entries cannot be read".to_owned()))?)
}
