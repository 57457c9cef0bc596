//! One partition in memory: the port's rules, without a lock, an await or a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ledger::store::{
    Bounds, Commit, Committed, Cursor, Entry, Error, Failure, Key, Kind, Logged, Page, Position,
    Queue, Record, Scan, Trim, Version,
};
use crate::model::time::Time;
use crate::runtime::mutant::{self, Mutant};

/// The records, indexes, wake-ups and the log of one partition.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    version: u64,
    records: BTreeMap<Key, Kept>,
    // By index, value and the key's text, which is the order of a scan.
    index: BTreeMap<(&'static str, String, String), Key>,
    wakes: BTreeSet<(Queue, Time, Key)>,
    log: BTreeMap<Position, Logged>,
}

#[derive(Debug)]
struct Kept {
    record: Record,
    entries: Vec<Entry>,
    written: Time,
    // The record's due time, or later while somebody has claimed it.
    wake: Option<Time>,
}

impl Shelf {
    /// The number of its last commit.
    pub(super) const fn version(&self) -> Version {
        Version(self.version)
    }

    pub(super) fn load(&self, keys: &[Key]) -> BTreeMap<Key, Record> {
        keys.iter()
            .filter_map(|key| Some((key.clone(), self.records.get(key)?.record.clone())))
            .collect()
    }

    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Committed, Error> {
        if let Some(version) = self.repeated(commit) {
            return Ok(Committed::Applied(version));
        }
        let holds = |(key, expected): (&Key, &Option<Version>)| {
            self.records.get(key).map(|kept| kept.record.version) == *expected
                || mutant::is(Mutant::ExpectWithoutContact) && key.kind() == Kind::Contact
        };
        if !commit.expect.iter().all(holds) {
            return Ok(self.conflict(commit));
        }
        for put in &commit.put {
            if (self.records.get(&put.key)).is_some_and(|kept| kept.record.format > put.format) {
                return Err(Error::NotApplied(Failure::Newer(put.key.to_string())));
            }
        }
        self.version += 1;
        let version = Version(self.version);
        for key in &commit.delete {
            self.remove(key);
        }
        for put in &commit.put {
            self.remove(&put.key);
            let record = Record {
                key: put.key.clone(),
                format: put.format,
                version,
                commit: commit.id,
                due: put.due.clone(),
                body: put.body.clone(),
            };
            self.insert(record, put.index.clone(), commit.at);
        }
        for (ordinal, event) in (0..).zip(&commit.events) {
            let position = Position { version, ordinal };
            let logged = Logged {
                position,
                at: commit.at,
                event: event.clone(),
            };
            self.log.insert(position, logged);
        }
        Ok(Committed::Applied(version))
    }

    /// The present state of every key that `commit` expects.
    pub(super) fn conflict(&self, commit: &Commit) -> Committed {
        let present = |key: &Key| self.records.get(key).map(|kept| kept.record.clone());
        Committed::Conflict(
            commit
                .expect
                .keys()
                .map(|key| (key.clone(), present(key)))
                .collect(),
        )
    }

    fn repeated(&self, commit: &Commit) -> Option<Version> {
        let mut version = None;
        for put in &commit.put {
            let record = &self.records.get(&put.key)?.record;
            if record.commit != commit.id {
                return None;
            }
            version = Some(record.version);
        }
        version
    }

    fn insert(&mut self, record: Record, entries: Vec<Entry>, written: Time) {
        let key = record.key.clone();
        for entry in &entries {
            let place = (entry.name, entry.value.clone(), key.to_string());
            self.index.insert(place, key.clone());
        }
        if let Some(due) = &record.due {
            self.wakes.insert((due.queue, due.at, key.clone()));
        }
        let wake = record.due.as_ref().map(|due| due.at);
        let kept = Kept {
            record,
            entries,
            written,
            wake,
        };
        self.records.insert(key, kept);
    }

    fn remove(&mut self, key: &Key) {
        let Some(kept) = self.records.remove(key) else {
            return;
        };
        for entry in kept.entries {
            self.index
                .remove(&(entry.name, entry.value, key.to_string()));
        }
        if let (Some(due), Some(wake)) = (kept.record.due, kept.wake) {
            self.wakes.remove(&(due.queue, wake, key.clone()));
        }
    }

    pub(super) fn scan(&self, scan: &Scan) -> Page {
        if scan.from >= scan.to {
            return Page::default();
        }
        let begin = (scan.index, scan.from.clone(), String::new());
        let end = (scan.index, scan.to.clone(), String::new());
        let range = self.index.range(begin..end);
        let beyond = |value: &str, key: &str| match &scan.after {
            Some(after) if scan.descending => {
                (value, key) < (after.value.as_str(), after.key.as_str())
            }
            Some(after) => (value, key) > (after.value.as_str(), after.key.as_str()),
            None => true,
        };
        let places: Box<dyn Iterator<Item = _>> = if scan.descending {
            Box::new(range.rev())
        } else {
            Box::new(range)
        };
        let mut rest = places
            .filter(|((_, value, text), _)| beyond(value, text))
            .peekable();
        let mut page = Page::default();
        while let Some(((_, value, text), key)) = rest.next_if(|_| page.records.len() < scan.limit)
        {
            page.records
                .extend(self.records.get(key).map(|kept| kept.record.clone()));
            page.next = Some(Cursor {
                value: value.clone(),
                key: text.clone(),
            });
        }
        if rest.peek().is_none() {
            page.next = None;
        }
        page
    }

    pub(super) fn claim_due(
        &mut self,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Vec<Record> {
        let due: Vec<(Queue, Time, Key)> = self
            .wakes_of(queue)
            .take_while(|(_, at, _)| *at <= now)
            .take(limit)
            .cloned()
            .collect();
        let mut claimed = Vec::with_capacity(due.len());
        for wake in due {
            if let Some(kept) = self.records.get_mut(&wake.2) {
                let until = now.plus(lease);
                kept.wake = Some(until);
                claimed.push(kept.record.clone());
                self.wakes.remove(&wake);
                self.wakes.insert((queue, until, wake.2));
            }
        }
        claimed
    }

    pub(super) fn next_due(&self, queue: Queue) -> Option<Time> {
        self.wakes_of(queue).next().map(|(_, at, _)| *at)
    }

    /// The wake-ups of one queue, earliest first.
    fn wakes_of(&self, queue: Queue) -> impl Iterator<Item = &(Queue, Time, Key)> {
        // No record has this key, which comes before every other.
        let first = Key::new(Kind::Attempt, "");
        self.wakes
            .range((queue, Time::from_micros(i64::MIN), first)..)
            .take_while(move |(of, _, _)| *of == queue)
    }

    pub(super) fn changes_since(&self, position: Position, limit: usize) -> Vec<Logged> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.log
            .range((Excluded(position), Unbounded))
            .take(limit)
            .map(|(_, logged)| logged.clone())
            .collect()
    }

    pub(super) fn log_bounds(&self) -> Option<Bounds> {
        Some(Bounds {
            first: *self.log.first_key_value()?.0,
            last: *self.log.last_key_value()?.0,
        })
    }

    pub(super) fn trim(&mut self, what: Trim, before: Time, limit: usize) -> usize {
        match what {
            Trim::Events => {
                let keep = self.log.len().saturating_sub(1);
                let old: Vec<Position> = self
                    .log
                    .values()
                    .take(keep.min(limit))
                    .take_while(|logged| logged.at < before)
                    .map(|logged| logged.position)
                    .collect();
                for position in &old {
                    self.log.remove(position);
                }
                old.len()
            }
            Trim::Records(kind) => {
                let mut old: Vec<(Time, Key)> = self
                    .records
                    .iter()
                    .filter(|(key, kept)| {
                        key.kind() == kind && kept.record.due.is_none() && kept.written < before
                    })
                    .map(|(key, kept)| (kept.written, key.clone()))
                    .collect();
                old.sort();
                old.truncate(limit);
                for (_, key) in &old {
                    self.remove(key);
                }
                old.len()
            }
        }
    }

    /// The number of the last commit.
    pub(super) const fn commits(&self) -> u64 {
        self.version
    }

    pub(super) fn count(&self, records: &mut BTreeMap<Kind, u64>) -> u64 {
        for key in self.records.keys() {
            *records.entry(key.kind()).or_default() += 1;
        }
        self.log.len() as u64
    }
}
