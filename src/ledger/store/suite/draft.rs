//! Short words for the cases.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Harness;
use crate::ledger::store::{
    Commit, CommitId, Committed, Due, Entry, Error, Event, Key, Kind, Put, Queue, Record, Version,
};
use crate::model::id::Partition;
use crate::model::time::Time;

/// The one partition that every store has.
pub(super) const P: Partition = Partition(0);

/// When commits are written unless a case says otherwise.
pub(super) const AT: Time = Time::from_secs(1_000);

pub(super) fn attempt(name: &str) -> Key {
    Key::new(Kind::Attempt, format!("w/{name}"))
}

pub(super) fn contact(name: &str) -> Key {
    Key::new(Kind::Contact, format!("w/{name}"))
}

/// A record with `body` and nothing else.
pub(super) fn put(key: &Key, body: &str) -> Put {
    Put {
        key: key.clone(),
        format: 1,
        due: None,
        index: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

/// A record that is due in `queue` at `at`.
pub(super) fn due(key: &Key, queue: Queue, at: Time) -> Put {
    Put {
        due: Some(Due { queue, at }),
        ..put(key, "due")
    }
}

/// A record with entries of the index `name`.
pub(super) fn indexed(key: &Key, name: &'static str, values: &[&str]) -> Put {
    let entry = |value: &&str| Entry {
        name,
        value: (*value).to_owned(),
    };
    Put {
        index: values.iter().map(entry).collect(),
        ..put(key, "indexed")
    }
}

pub(super) fn event(key: &Key, body: &str) -> Event {
    Event {
        key: key.clone(),
        body: body.as_bytes().to_vec(),
    }
}

/// An empty commit with number `id` of the present epoch.
pub(super) async fn draft(h: &mut dyn Harness, id: u128) -> Commit {
    Commit {
        id: CommitId(Uuid::from_u128(id)),
        epoch: h.store().await.epoch(),
        at: AT,
        expect: BTreeMap::new(),
        put: Vec::new(),
        delete: Vec::new(),
        events: Vec::new(),
    }
}

/// Building a commit word by word.
pub(super) trait Words: Sized {
    fn reads(self, key: &Key, version: Option<Version>) -> Self;
    fn writes(self, put: Put, version: Option<Version>) -> Self;
    fn deletes(self, key: &Key, version: Version) -> Self;
    fn says(self, event: Event) -> Self;
}

impl Words for Commit {
    fn reads(mut self, key: &Key, version: Option<Version>) -> Self {
        self.expect.insert(key.clone(), version);
        self
    }

    fn writes(mut self, put: Put, version: Option<Version>) -> Self {
        self.expect.insert(put.key.clone(), version);
        self.put.push(put);
        self
    }

    fn deletes(mut self, key: &Key, version: Version) -> Self {
        self.expect.insert(key.clone(), Some(version));
        self.delete.push(key.clone());
        self
    }

    fn says(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
}

pub(super) async fn send(h: &mut dyn Harness, commit: &Commit) -> Result<Committed, Error> {
    h.store().await.commit(P, commit).await
}

pub(super) async fn applied(h: &mut dyn Harness, commit: &Commit) -> Version {
    let answer = send(h, commit).await;
    let Ok(Committed::Applied(version)) = answer else {
        panic!("not applied: {answer:?}");
    };
    version
}

pub(super) async fn conflict(
    h: &mut dyn Harness,
    commit: &Commit,
) -> BTreeMap<Key, Option<Record>> {
    let answer = send(h, commit).await;
    let Ok(Committed::Conflict(present)) = answer else {
        panic!("no conflict: {answer:?}");
    };
    present
}

/// Writes one new record.
pub(super) async fn write(h: &mut dyn Harness, id: u128, put: Put) -> Version {
    let commit = draft(h, id).await.writes(put, None);
    applied(h, &commit).await
}

/// The record under `key`.
pub(super) async fn get(h: &mut dyn Harness, key: &Key) -> Option<Record> {
    let keys = std::slice::from_ref(key);
    let loaded = h.store().await.load(P, keys).await;
    loaded.expect("a load").remove(key)
}

/// The body under `key`, as text.
pub(super) async fn body(h: &mut dyn Harness, key: &Key) -> Option<String> {
    let record = get(h, key).await?;
    Some(String::from_utf8(record.body).expect("a body that a case wrote as text"))
}

/// The paths of `records`, in their order.
pub(super) fn paths(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.key.path()).collect()
}
