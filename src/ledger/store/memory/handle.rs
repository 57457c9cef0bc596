//! A handle on the memory store: the lock, the script and the awaits around a shelf.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::script::{Call, Faithful, Fate, Outcome, Script};
use super::shelf::Shelf;
use crate::ledger::store::{
    Bounds, Commit, Committed, Epoch, Error, Failure, Info, Key, Kind, Logged, Page, Position,
    Queue, Record, Scan, Store, Trim, Version, check,
};
use crate::model::id::Partition;
use crate::model::time::Time;

/// A handle on a store in memory. Clones are the same handle; [`Memory::reopen`] makes
/// another one on the same records, as a second node or a restarted one has.
#[derive(Debug, Clone)]
pub struct Memory {
    room: Arc<Mutex<Room>>,
    script: Arc<dyn Script>,
    closed: Arc<AtomicBool>,
    epoch: Epoch,
    partitions: u16,
}

/// All that the handles share.
#[derive(Debug)]
struct Room {
    epoch: Epoch,
    shelves: Vec<Shelf>,
    late: BTreeMap<(Instant, u64), (usize, Commit)>,
    order: u64,
    /// Whether there is no room for anything new.
    narrow: bool,
    witness: Option<Arc<dyn Witness>>,
}

/// Hears of every commit at the moment at which it is applied, in order, whoever sent it and
/// whether or not that one was ever answered.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// It was applied to this partition, under this number.
    fn applied(&self, p: Partition, commit: &Commit, version: Version);
}

impl Room {
    fn commit(&mut self, p: usize, commit: &Commit) -> Result<Committed, Error> {
        if commit.epoch != self.epoch {
            return Err(Error::NotApplied(Failure::Epoch));
        }
        let partition = &mut self.shelves[p];
        let before = partition.version();
        let committed = partition.commit(commit)?;
        if let (Some(witness), Committed::Applied(version)) = (&self.witness, &committed)
            && *version > before
        {
            let p = u16::try_from(p).unwrap_or(u16::MAX);
            witness.applied(Partition(p), commit, *version);
        }
        Ok(committed)
    }

    /// Does what was to be done by `now`. Its answer was given long ago: `Unknown`.
    fn land(&mut self, now: Instant) {
        while let Some(first) = self.late.first_entry() {
            if first.key().0 > now {
                return;
            }
            let (p, commit) = first.remove();
            drop(self.commit(p, &commit));
        }
    }
}

impl Memory {
    /// An empty store of `partitions` partitions.
    #[must_use]
    pub fn new(partitions: u16, epoch: Epoch) -> Self {
        let room = Room {
            epoch,
            shelves: (0..partitions).map(|_| Shelf::default()).collect(),
            late: BTreeMap::new(),
            order: 0,
            narrow: false,
            witness: None,
        };
        Self {
            room: Arc::new(Mutex::new(room)),
            script: Arc::new(Faithful),
            closed: Arc::default(),
            epoch,
            partitions,
        }
    }

    /// This handle, with `script` deciding the fate of its calls from now on. Other
    /// handles keep theirs.
    #[must_use]
    pub fn scripted(mut self, script: Arc<dyn Script>) -> Self {
        self.script = script;
        self
    }

    /// Whether there is room for nothing new from now on, as on a disk that is nearly full.
    pub fn narrow(&self, narrow: bool) {
        self.lock().narrow = narrow;
    }

    /// From now on `witness` hears of every commit, through whichever handle it comes.
    pub fn witnessed(&self, witness: Arc<dyn Witness>) {
        self.lock().witness = Some(witness);
    }

    /// Another handle on the same records, faithful and open, which finds the present epoch.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let epoch = self.lock().epoch;
        Self {
            room: Arc::clone(&self.room),
            script: Arc::new(Faithful),
            closed: Arc::default(),
            epoch,
            partitions: self.partitions,
        }
    }

    /// Does now what a script has put off; how many commits that were.
    #[expect(clippy::must_use_candidate, reason = "called for what it does")]
    pub fn land(&self) -> usize {
        let mut room = self.lock();
        let late = std::mem::take(&mut room.late);
        let count = late.len();
        for (p, commit) in late.into_values() {
            drop(room.commit(p, &commit));
        }
        count
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::NotApplied(Failure::Closed));
        }
        Ok(())
    }

    /// The way to the store: at least one await, and what the script decides.
    async fn arrive(&self, call: Call<'_>) -> Result<Fate, Error> {
        self.open()?;
        let fate = self.script.fate(call);
        tokio::task::yield_now().await;
        pause(fate.delay).await;
        self.open()?;
        self.lock().land(Instant::now());
        Ok(fate)
    }

    async fn read<T>(
        &self,
        p: Partition,
        call: Call<'_>,
        act: impl FnOnce(&Shelf) -> T + Send,
    ) -> Result<T, Error> {
        check::partition(p, self.partitions)?;
        let fate = self.arrive(call).await?;
        let answer = match fate.outcome {
            Outcome::Done | Outcome::Conflict => Ok(act(&self.lock().shelves[usize::from(p.0)])),
            Outcome::NotApplied(why) | Outcome::Lost(why) | Outcome::Late(why, _) => {
                Err(Error::NotApplied(why))
            }
        };
        pause(fate.reply).await;
        answer
    }

    async fn write<T>(
        &self,
        call: Call<'_>,
        act: impl FnOnce(&mut Room) -> Result<T, Error> + Send,
    ) -> Result<T, Error>
    where
        T: Send,
    {
        let fate = self.arrive(call).await?;
        let answer = match fate.outcome {
            Outcome::Done | Outcome::Conflict => act(&mut self.lock()),
            Outcome::NotApplied(why) => Err(Error::NotApplied(why)),
            Outcome::Lost(why) => {
                drop(act(&mut self.lock()));
                Err(Error::Unknown(why))
            }
            Outcome::Late(why, _) => Err(Error::Unknown(why)),
        };
        pause(fate.reply).await;
        answer
    }

    /// As a commit's expectations, for the writes that have none.
    fn same_epoch(&self, room: &Room) -> Result<(), Error> {
        if room.epoch == self.epoch {
            return Ok(());
        }
        Err(Error::NotApplied(Failure::Epoch))
    }
}

async fn pause(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}

#[async_trait]
impl Store for Memory {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn partitions(&self) -> u16 {
        self.partitions
    }

    /// Never: several nodes share one.
    fn exclusive(&self) -> bool {
        false
    }

    fn has_room(&self) -> bool {
        !self.lock().narrow
    }

    async fn load(&self, p: Partition, keys: &[Key]) -> Result<BTreeMap<Key, Record>, Error> {
        self.read(p, Call::Load(p, keys), |shelf| shelf.load(keys))
            .await
    }

    async fn commit(&self, p: Partition, commit: &Commit) -> Result<Committed, Error> {
        check::partition(p, self.partitions)?;
        check::commit(commit)?;
        let at = usize::from(p.0);
        let fate = self.arrive(Call::Commit(p, commit)).await?;
        let answer = {
            let mut room = self.lock();
            match fate.outcome {
                Outcome::Done => room.commit(at, commit),
                Outcome::Conflict => Ok(room.shelves[at].conflict(commit)),
                Outcome::NotApplied(why) => Err(Error::NotApplied(why)),
                Outcome::Lost(why) => {
                    drop(room.commit(at, commit));
                    Err(Error::Unknown(why))
                }
                Outcome::Late(why, later) => {
                    room.order += 1;
                    let place = (Instant::now() + later, room.order);
                    room.late.insert(place, (at, commit.clone()));
                    Err(Error::Unknown(why))
                }
            }
        };
        pause(fate.reply).await;
        answer
    }

    async fn scan(&self, p: Partition, scan: &Scan) -> Result<Page, Error> {
        self.read(p, Call::Scan(p, scan), |shelf| shelf.scan(scan))
            .await
    }

    async fn claim_due(
        &self,
        p: Partition,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Record>, Error> {
        check::partition(p, self.partitions)?;
        self.write(Call::ClaimDue(p, queue), |room| {
            self.same_epoch(room)?;
            Ok(room.shelves[usize::from(p.0)].claim_due(queue, now, limit, lease))
        })
        .await
    }

    async fn next_due(&self, p: Partition, queue: Queue) -> Result<Option<Time>, Error> {
        self.read(p, Call::NextDue(p, queue), |shelf| shelf.next_due(queue))
            .await
    }

    async fn changes_since(
        &self,
        p: Partition,
        position: Position,
        limit: usize,
    ) -> Result<Vec<Logged>, Error> {
        self.read(p, Call::ChangesSince(p), |shelf| {
            shelf.changes_since(position, limit)
        })
        .await
    }

    async fn log_bounds(&self, p: Partition) -> Result<Option<Bounds>, Error> {
        self.read(p, Call::LogBounds(p), Shelf::log_bounds).await
    }

    async fn trim(
        &self,
        p: Partition,
        what: Trim,
        before: Time,
        limit: usize,
    ) -> Result<usize, Error> {
        check::partition(p, self.partitions)?;
        self.write(Call::Trim(p, what), |room| {
            self.same_epoch(room)?;
            Ok(room.shelves[usize::from(p.0)].trim(what, before, limit))
        })
        .await
    }

    async fn info(&self) -> Result<Info, Error> {
        self.write(Call::Info, |room| {
            let mut records: BTreeMap<Kind, u64> = BTreeMap::new();
            let events = (room.shelves.iter())
                .map(|shelf| shelf.count(&mut records))
                .sum();
            let commits = room.shelves.iter().map(Shelf::commits).sum();
            Ok(Info {
                location: "memory".to_owned(),
                epoch: room.epoch,
                partitions: self.partitions,
                format: 1,
                records,
                events,
                commits,
                bytes: None,
                exclusive: false,
            })
        })
        .await
    }

    async fn begin_epoch(&self, epoch: Epoch) -> Result<(), Error> {
        self.write(Call::BeginEpoch(epoch), |room| {
            room.epoch = epoch;
            Ok(())
        })
        .await
    }

    /// Closes this handle and its clones; others on the same records stay open.
    async fn close(&self) {
        tokio::task::yield_now().await;
        self.closed.store(true, Ordering::SeqCst);
    }
}
