//! The stores against their one suite, and what each can do beyond it.

mod disk;
mod faults;
mod log;
mod paths;
mod speed;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use ringonce::ledger::store::memory::Memory;
use ringonce::ledger::store::sqlite::{Options, Sqlite};
use ringonce::ledger::store::suite::Harness;
use ringonce::ledger::store::{Commit, CommitId, Epoch, Event, Key, Kind, Put, Store};
use ringonce::model::id::Partition;
use ringonce::model::time::Time;
use ringonce::runtime::ids::RandomIds;
use tempfile::TempDir;
use uuid::Uuid;

const P: Partition = Partition(0);

fn key(name: &str) -> Key {
    Key::new(Kind::Attempt, format!("w/{name}"))
}

/// A new record `name` with a body of `bytes`, and an event about it.
fn commit_of(store: &dyn Store, id: u128, name: &str, bytes: usize) -> Commit {
    let put = Put {
        key: key(name),
        format: 1,
        due: None,
        index: Vec::new(),
        body: vec![b'x'; bytes],
    };
    Commit {
        id: CommitId(Uuid::from_u128(id)),
        epoch: store.epoch(),
        at: Time::from_secs(1),
        expect: [(key(name), None)].into(),
        put: vec![put],
        delete: Vec::new(),
        events: vec![Event {
            key: key(name),
            body: b"made".to_vec(),
        }],
    }
}

/// Whether a harness restarts its store before every call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Restart {
    Asked,
    Always,
}

struct InMemory(Memory);

impl InMemory {
    fn new() -> Self {
        let epoch = Epoch {
            id: Uuid::from_u128(1),
            since: Time::from_secs(1),
        };
        Self(Memory::new(3, epoch))
    }
}

#[async_trait]
impl Harness for InMemory {
    async fn store(&mut self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn restart(&mut self) -> Arc<dyn Store> {
        self.0.close().await;
        self.0 = self.0.reopen();
        self.store().await
    }
}

struct OnDisk {
    folder: TempDir,
    ids: RandomIds,
    store: Option<Arc<Sqlite>>,
    restart: Restart,
}

impl OnDisk {
    fn new(restart: Restart) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            ids: RandomIds::seeded(1),
            store: None,
            restart,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("deep/er/ringonce.db")
    }
}

#[async_trait]
impl Harness for OnDisk {
    async fn store(&mut self) -> Arc<dyn Store> {
        match &self.store {
            Some(store) if self.restart == Restart::Asked => Arc::clone(store) as Arc<dyn Store>,
            Some(_) | None => self.restart().await,
        }
    }

    async fn restart(&mut self) -> Arc<dyn Store> {
        if let Some(store) = self.store.take() {
            store.close().await;
        }
        let now = Time::from_secs(1);
        let opened = Sqlite::open(&self.path(), &Options::default(), now, &self.ids);
        let store = Arc::new(opened.expect("a store"));
        self.store = Some(Arc::clone(&store));
        store
    }
}

ringonce::store_suite!(memory, crate::store::InMemory::new());
ringonce::store_suite!(
    sqlite,
    crate::store::OnDisk::new(crate::store::Restart::Asked)
);
ringonce::store_suite!(
    sqlite_restarted_before_every_call,
    crate::store::OnDisk::new(crate::store::Restart::Always)
);
