//! The thread that writes: a group of commits, one transaction, one `fsync`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::apply::{State, Tx};
use super::checkpoint::{self, Pressure};
use super::fault::{Fault, Trouble, failure, trouble};
use super::file::Identity;
use super::schema;
use crate::ledger::store::{Error, Failure};

/// A piece of work for the writer. It answers exactly once, after its group's end.
pub(super) trait Work: Send {
    /// Does it, inside a transaction. It is done again after a transaction that failed, so
    /// it may not use itself up.
    fn act(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault>;
    /// Answers the caller; an error is what became of its group, or of itself.
    fn answer(self: Box<Self>, end: Result<(), Error>);
}

/// Work that is a function, and where its answer goes.
pub(super) struct Ask<T, F> {
    act: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Ask<T, F> {
    pub(super) fn new(act: F) -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (reply, answer) = oneshot::channel();
        let ask = Self {
            act,
            value: None,
            reply,
        };
        (ask, answer)
    }
}

impl<T, F> Work for Ask<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T, Fault> + Send,
{
    fn act(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault> {
        self.value = None;
        self.value = Some((self.act)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, end: Result<(), Error>) {
        let Self { value, reply, .. } = *self;
        // A caller that no longer waits is answered by the record.
        drop(reply.send(end.and_then(|()| value.ok_or_else(never_done))));
    }
}

/// The connection that writes, and what it knows.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) state: State,
    pub(super) pressure: Pressure,
    /// How many transactions were written, an `fsync` each.
    pub(super) transactions: u64,
    /// Why nothing is written any more.
    pub(super) broken: Option<Failure>,
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Work>>, most: usize) {
        let mut group = Vec::with_capacity(most);
        while queue.blocking_recv_many(&mut group, most) > 0 {
            // A panic is a bug of ours, and must neither hang the callers nor end the writer:
            // what was not committed is rolled back, and every caller is told "unknown".
            let end = catch_unwind(AssertUnwindSafe(|| self.group(&mut group)));
            let left = if end.is_err() {
                tracing::error!("the store's writer panicked; its group is rolled back");
                self.roll_back();
                Error::Unknown(Failure::Other("the store's writer panicked".to_owned()))
            } else {
                never_done()
            };
            for work in group.drain(..) {
                work.answer(Err(left.clone()));
            }
        }
        checkpoint::finish(&self.conn);
        tracing::info!(
            event = "store.closed",
            commits = self.state.version,
            transactions = self.transactions,
            "the store is closed; each of its transactions was one fsync"
        );
    }

    fn group(&mut self, group: &mut Vec<Box<dyn Work>>) {
        let mut applied = self.apply(group);
        // The log may have filled the disk all by itself, and gives its place back.
        if matches!(&applied, Err(stop) if stop.is_full()) && self.pressure.make_room(&self.conn) {
            applied = self.apply(group);
        }
        let ends = match applied {
            Ok(ends) => ends,
            Err(Stop::All(error)) => vec![Err(error); group.len()],
            // One of them failed after it had written. The transaction is gone with all of
            // its pieces, and so each has one of its own now: that one fails alone. This is
            // rare enough (a full disk, damage) to pay for it with an fsync each, where a
            // savepoint around every piece would copy every page that it touches.
            Err(Stop::One) => (group.iter_mut())
                .map(|work| match self.apply(std::slice::from_mut(work)) {
                    Ok(mut ends) => ends.pop().unwrap_or(Ok(())),
                    Err(Stop::All(error)) => Err(error),
                    Err(Stop::One) => Err(never_done()),
                })
                .collect(),
        };
        for (work, end) in group.drain(..).zip(ends) {
            work.answer(end);
        }
        self.pressure.relieve(&self.conn);
    }

    /// How each of `group` ended, all in one transaction.
    fn apply(&mut self, group: &mut [Box<dyn Work>]) -> Result<Vec<Result<(), Error>>, Stop> {
        if let Some(why) = &self.broken {
            return Err(Stop::All(Error::NotApplied(why.clone())));
        }
        self.same_file()?;
        self.execute("BEGIN IMMEDIATE")?;
        let unchanged = self.conn.total_changes();
        let mut tx = Tx {
            conn: &self.conn,
            state: self.state,
        };
        let alone = group.len() == 1;
        let mut ends = Vec::with_capacity(group.len());
        for work in group {
            let (before, changes) = (tx.state, tx.conn.total_changes());
            let Err(fault) = work.act(&mut tx) else {
                ends.push(Ok(()));
                continue;
            };
            let intact = !tx.conn.is_autocommit() && tx.conn.total_changes() == changes;
            let end = Error::NotApplied(fault.into());
            if intact {
                tx.state = before;
                ends.push(Err(end));
            } else {
                self.roll_back();
                return Err(if alone { Stop::All(end) } else { Stop::One });
            }
        }
        let state = tx.state;
        if state.version != self.state.version
            && let Err(error) = schema::set_version(&self.conn, state.version)
        {
            self.roll_back();
            return Err(error.into());
        }
        if let Err(error) = self.execute("COMMIT") {
            return Err(Stop::All(self.not_committed(&error)));
        }
        // One that changed nothing has nothing to write.
        self.transactions += u64::from(self.conn.total_changes() != unchanged);
        self.state = state;
        Ok(ends)
    }

    /// A file that was put in this one's place has another history, and what is written to
    /// the old one is seen by nobody.
    fn same_file(&self) -> Result<(), Error> {
        match Identity::of(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Ok(_) | Err(_) => Err(Error::NotApplied(Failure::Epoch)),
        }
    }

    fn not_committed(&mut self, error: &rusqlite::Error) -> Error {
        self.roll_back();
        let why = failure(error);
        match trouble(error) {
            // The commit's last frame was not written, or nothing was tried.
            Trouble::Full | Trouble::ReadOnly => Error::NotApplied(why),
            Trouble::NotADatabase | Trouble::Corrupt | Trouble::Io | Trouble::Other => {
                tracing::error!(%error, "a commit may or may not be on the disk; nothing more is written");
                self.broken = Some(why.clone());
                Error::Unknown(why)
            }
        }
    }

    fn roll_back(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a transaction cannot be rolled back; nothing more is written");
            self.broken = Some(failure(&error));
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// Why a transaction ended without a commit.
enum Stop {
    /// For a reason that is nobody's own: all of its pieces share the error.
    All(Error),
    /// A piece failed after it had written, and others were with it.
    One,
}

impl Stop {
    fn is_full(&self) -> bool {
        match self {
            Self::All(error) => *error == Error::NotApplied(Failure::Full),
            Self::One => false,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::All(error)
    }
}

/// Before the `COMMIT` nothing is on the disk.
impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::All(Error::NotApplied(failure(&error)))
    }
}

fn never_done() -> Error {
    Error::NotApplied(Failure::Other("it was never done".to_owned()))
}
