//! The store as the ledger holds it: queues to its threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{mpsc, oneshot};

use super::apply::{State, Tx};
use super::checkpoint::{self, Pressure};
use super::disk::Disk;
use super::fault::Fault;
use super::file::Lock;
use super::inspect;
use super::open::{self, Options};
use super::read;
use super::readers::{self, Read, Reads};
use super::unopened::OpenError;
use super::writer::{Ask, Work, Writer};
use crate::ledger::store::{
    Bounds, Commit, Committed, Epoch, Error, Failure, Info, Key, Logged, Page, Position, Queue,
    Record, Scan, Store, Trim, check,
};
use crate::model::id::Partition;
use crate::model::time::Time;
use crate::runtime::ids::Ids;

/// A store in one file. Dropping it ends its threads after what is queued;
/// [`Store::close`] also waits for them, and for the lock to be free.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    epoch: Epoch,
    disk: Disk,
    queues: Mutex<Option<Queues>>,
    // Ends when the last thread has.
    ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

struct Queues {
    work: mpsc::Sender<Box<dyn Work>>,
    reads: SyncSender<Read>,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

/// What a thread keeps until its connection is closed. The fields are dropped in this
/// order, so that whoever waits for the end finds the lock free.
struct Alive {
    _lock: Arc<Lock>,
    _end: mpsc::Sender<()>,
}

impl Sqlite {
    /// Opens the store at `path`, and makes it with its folder where it is missing. `now`
    /// and `ids` make the epoch of a new, copied or restored file. It blocks for some
    /// milliseconds.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; each says what to do about it.
    pub fn open(
        path: &Path,
        options: &Options,
        now: Time,
        ids: &dyn Ids,
    ) -> Result<Self, OpenError> {
        let opened = open::open(path, options, now, ids, true)?;
        let path = opened.path.as_path();
        let lock = Arc::new(opened.lock);
        let (end, ended) = mpsc::channel(1);
        let alive = || Alive {
            _lock: Arc::clone(&lock),
            _end: end.clone(),
        };
        let connect = |access| open::connect(path, access, options.cache_kib);

        let (reads, queue) = sync_channel(options.reads.max(1));
        let queue: Reads = Arc::new(Mutex::new(queue));
        for _ in 0..options.readers.max(1) {
            let conn = connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let queue = Arc::clone(&queue);
            start(path, "store-reader", alive(), conn, move |conn| {
                readers::run(&conn, &queue);
            })?;
        }

        let disk = Disk::new(path, options.spare_bytes);
        let (pressure, pokes) = Pressure::new(options.checkpoint_pages, disk.clone());
        let conn = connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        start(path, "store-checkpoint", alive(), conn, move |conn| {
            checkpoint::run(&conn, &pokes);
        })?;

        let (work, queue) = mpsc::channel(options.queue.max(1));
        let (file, identity, most) = (path.to_owned(), opened.identity, options.group.max(1));
        let state = State {
            epoch: opened.epoch,
            version: opened.version,
        };
        start(path, "store-writer", alive(), opened.conn, move |conn| {
            let writer = Writer {
                conn,
                path: file,
                identity,
                state,
                pressure,
                transactions: 0,
                broken: None,
            };
            writer.run(queue, most);
        })?;

        Ok(Self {
            path: path.to_owned(),
            epoch: opened.epoch,
            disk,
            queues: Mutex::new(Some(Queues { work, reads })),
            ended: tokio::sync::Mutex::new(ended),
        })
    }

    // A std mutex, since nothing is awaited while it is held.
    fn queues(&self) -> MutexGuard<'_, Option<Queues>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work to the writer. It is done even if the caller stops waiting.
    pub(super) async fn write<T, F>(&self, act: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (ask, answer) = Ask::new(act);
        match self.queues().as_ref() {
            None => return Err(Error::NotApplied(Failure::Closed)),
            Some(queues) => queues.work.try_send(Box::new(ask)).map_err(|full| {
                Error::NotApplied(match full {
                    mpsc::error::TrySendError::Full(_) => Failure::Busy,
                    mpsc::error::TrySendError::Closed(_) => Failure::Closed,
                })
            })?,
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unknown(Failure::Other(
                "the store's writer is gone".to_owned(),
            ))),
        }
    }

    /// As [`Self::write`], for what has no expectation of its own.
    async fn write_here<T, F>(&self, mut act: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let epoch = self.epoch;
        self.write(move |tx| {
            if tx.state.epoch != epoch {
                return Err(Failure::Epoch.into());
            }
            act(tx)
        })
        .await
    }

    async fn read<T, F>(&self, act: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |conn| {
            // A caller that no longer waits needs no answer.
            drop(reply.send(act(conn)));
        });
        let not = |failure| Err(Error::NotApplied(failure));
        match self.queues().as_ref() {
            None => return not(Failure::Closed),
            Some(queues) => match queues.reads.try_send(read) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => return not(Failure::Busy),
                Err(TrySendError::Disconnected(_)) => return not(Failure::Closed),
            },
        }
        match answer.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) => not(fault.into()),
            Err(_) => not(Failure::Other("a read of the store panicked".to_owned())),
        }
    }
}

/// Starts a thread that owns `conn`, and closes it before it lets go of `alive`.
fn start(
    path: &Path,
    name: &str,
    alive: Alive,
    conn: Connection,
    work: impl FnOnce(Connection) + Send + 'static,
) -> Result<(), OpenError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _alive = alive;
            work(conn);
        })
        .map(drop)
        .map_err(|why| OpenError::io(path, why))
}

#[async_trait]
impl Store for Sqlite {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn partitions(&self) -> u16 {
        1
    }

    /// Always: the lock proves it.
    fn exclusive(&self) -> bool {
        true
    }

    fn has_room(&self) -> bool {
        self.disk.has_room()
    }

    async fn load(&self, p: Partition, keys: &[Key]) -> Result<BTreeMap<Key, Record>, Error> {
        check::partition(p, 1)?;
        let keys = keys.to_vec();
        self.read(move |conn| read::load(conn, &keys)).await
    }

    async fn commit(&self, p: Partition, commit: &Commit) -> Result<Committed, Error> {
        check::partition(p, 1)?;
        check::commit(commit)?;
        let commit = commit.clone();
        self.write(move |tx| tx.commit(&commit)).await
    }

    async fn scan(&self, p: Partition, scan: &Scan) -> Result<Page, Error> {
        check::partition(p, 1)?;
        let scan = scan.clone();
        self.read(move |conn| read::scan(conn, &scan)).await
    }

    async fn claim_due(
        &self,
        p: Partition,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Record>, Error> {
        check::partition(p, 1)?;
        self.write_here(move |tx| tx.claim_due(queue, now, limit, lease))
            .await
    }

    async fn next_due(&self, p: Partition, queue: Queue) -> Result<Option<Time>, Error> {
        check::partition(p, 1)?;
        self.read(move |conn| read::next_due(conn, queue)).await
    }

    async fn changes_since(
        &self,
        p: Partition,
        position: Position,
        limit: usize,
    ) -> Result<Vec<Logged>, Error> {
        check::partition(p, 1)?;
        self.read(move |conn| read::changes_since(conn, position, limit))
            .await
    }

    async fn log_bounds(&self, p: Partition) -> Result<Option<Bounds>, Error> {
        check::partition(p, 1)?;
        self.read(read::log_bounds).await
    }

    async fn trim(
        &self,
        p: Partition,
        what: Trim,
        before: Time,
        limit: usize,
    ) -> Result<usize, Error> {
        check::partition(p, 1)?;
        self.write_here(move |tx| tx.trim(what, before, limit))
            .await
    }

    async fn info(&self) -> Result<Info, Error> {
        let path = self.path.clone();
        self.read(move |conn| inspect::info(&path, conn, None))
            .await
    }

    async fn begin_epoch(&self, epoch: Epoch) -> Result<(), Error> {
        self.write(move |tx| tx.begin_epoch(epoch)).await
    }

    async fn close(&self) {
        drop(self.queues().take());
        // Nothing is ever sent: it ends when every thread has dropped its end of it.
        let _nothing = self.ended.lock().await.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::ids::RandomIds;

    fn open(folder: &tempfile::TempDir, options: &Options) -> Sqlite {
        let ids = RandomIds::seeded(1);
        let path = folder.path().join("ringonce.db");
        Sqlite::open(&path, options, Time::from_secs(1), &ids).unwrap()
    }

    #[tokio::test]
    async fn a_panic_in_the_writer_is_an_answer_and_not_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder, &Options::default());
        let end: Result<(), Error> = store.write(|_| panic!("on purpose")).await;
        assert!(matches!(end, Err(Error::Unknown(_))), "{end:?}");
        let next = store.write(|tx| Ok(tx.state.version)).await;
        assert_eq!(next, Ok(0));
    }

    #[tokio::test]
    async fn a_panic_in_a_reader_is_an_answer_and_not_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            readers: 1,
            ..Options::default()
        };
        let store = open(&folder, &options);
        let end: Result<(), Error> = store.read(|_| panic!("on purpose")).await;
        assert!(matches!(end, Err(Error::NotApplied(_))), "{end:?}");
        assert_eq!(store.log_bounds(Partition(0)).await, Ok(None));
    }

    #[tokio::test]
    async fn a_full_queue_answers_busy_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            queue: 1,
            group: 1,
            ..Options::default()
        };
        let store = open(&folder, &options);
        let (entered, inside) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let first = store.write(move |_| {
            entered.send(()).unwrap();
            Ok(released.recv().is_ok())
        });
        let second = store.write(|_| Ok(()));
        let third = async {
            // The first is being worked on and the second fills the queue.
            let end = store.write(|_| Ok(())).await;
            release.send(()).unwrap();
            end
        };
        let second = async {
            inside.recv().unwrap();
            second.await
        };
        let (first, second, third) = tokio::join!(biased; first, second, third);
        assert_eq!((first, second), (Ok(true), Ok(())));
        assert_eq!(third, Err(Error::NotApplied(Failure::Busy)));
    }

    #[tokio::test]
    async fn work_that_fails_undoes_itself_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder, &Options::default());
        let epoch = |n| Epoch {
            id: uuid::Uuid::from_u128(n),
            since: Time::ZERO,
        };
        // The writer is held until the others wait for it, so that they are one group.
        let (entered, inside) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let hold = store.write(move |_| {
            entered.send(()).unwrap();
            Ok(released.recv().is_ok())
        });
        let ends = tokio::join!(biased;
            hold,
            async {
                inside.recv().unwrap();
                store.write(move |tx| tx.begin_epoch(epoch(1))).await
            },
            store.write(move |tx| {
                tx.begin_epoch(epoch(2))?;
                Err::<(), Fault>(Failure::Busy.into())
            }),
            store.write(|tx| Ok(tx.state.epoch)),
            async { release.send(()).unwrap() },
        );
        assert_eq!((ends.0, ends.1), (Ok(true), Ok(())));
        assert_eq!(ends.2, Err(Error::NotApplied(Failure::Busy)));
        assert_eq!(ends.3, Ok(epoch(1)));
    }
}
