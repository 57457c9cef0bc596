//! A store as one node sees it: cut off when that node's life ends.
//!
//! A crash has two sides. A call that had not yet reached the store never does; one that
//! had is done, and its answer never arrives. Both happen here, without a thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Bounds, Commit, Committed, Epoch, Error, Info, Key, Logged, Page, Position, Queue, Record,
    Scan, Store, Trim,
};
use crate::model::id::Partition;
use crate::model::time::Time;
use crate::runtime::life::Life;

/// `inner`, for as long as `life` lasts.
#[derive(Debug, Clone)]
pub struct Mortal {
    /// The life of the node.
    pub life: Life,
    /// The store that outlives it.
    pub inner: Arc<dyn Store>,
    /// Whether the node may take it that nobody else has the store open, as the lock on a
    /// file proves. Only a test says so of a store that several nodes can share.
    pub alone: bool,
}

impl Mortal {
    /// `inner`, for as long as `life` lasts.
    #[must_use]
    pub fn new(life: Life, inner: Arc<dyn Store>) -> Self {
        Self {
            life,
            inner,
            alone: false,
        }
    }

    /// The same, where opening the store proves that its last user is dead.
    #[must_use]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    async fn pass<T>(&self, call: impl Future<Output = T> + Send) -> T {
        self.life.pass().await;
        let answer = call.await;
        self.life.pass().await;
        answer
    }
}

#[async_trait]
impl Store for Mortal {
    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn partitions(&self) -> u16 {
        self.inner.partitions()
    }

    fn exclusive(&self) -> bool {
        self.alone || self.inner.exclusive()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    async fn load(&self, p: Partition, keys: &[Key]) -> Result<BTreeMap<Key, Record>, Error> {
        self.pass(self.inner.load(p, keys)).await
    }

    async fn commit(&self, p: Partition, commit: &Commit) -> Result<Committed, Error> {
        self.pass(self.inner.commit(p, commit)).await
    }

    async fn scan(&self, p: Partition, scan: &Scan) -> Result<Page, Error> {
        self.pass(self.inner.scan(p, scan)).await
    }

    async fn claim_due(
        &self,
        p: Partition,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Record>, Error> {
        self.pass(self.inner.claim_due(p, queue, now, limit, lease))
            .await
    }

    async fn next_due(&self, p: Partition, queue: Queue) -> Result<Option<Time>, Error> {
        self.pass(self.inner.next_due(p, queue)).await
    }

    async fn changes_since(
        &self,
        p: Partition,
        position: Position,
        limit: usize,
    ) -> Result<Vec<Logged>, Error> {
        self.pass(self.inner.changes_since(p, position, limit))
            .await
    }

    async fn log_bounds(&self, p: Partition) -> Result<Option<Bounds>, Error> {
        self.pass(self.inner.log_bounds(p)).await
    }

    async fn trim(
        &self,
        p: Partition,
        what: Trim,
        before: Time,
        limit: usize,
    ) -> Result<usize, Error> {
        self.pass(self.inner.trim(p, what, before, limit)).await
    }

    async fn info(&self) -> Result<Info, Error> {
        self.pass(self.inner.info()).await
    }

    async fn begin_epoch(&self, epoch: Epoch) -> Result<(), Error> {
        self.pass(self.inner.begin_epoch(epoch)).await
    }

    async fn close(&self) {
        self.pass(self.inner.close()).await;
    }
}
