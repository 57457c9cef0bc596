//! The thread that writes: a group of commits, one transaction, one `fsync`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::apply::{State, Tx};
use super::checkpoint::Pressure;
use super::fault::{Fault, Trouble, failure, trouble};
use super::file::Identity;
use super::schema;
use crate::ledger::store::{Error, Failure};

/// A piece of work for the writer. It answers exactly once, after its group's end.
pub(super) trait Work: Send {
    /// Does it, inside the group's transaction. An error undoes this piece alone.
    fn act(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault>;
    /// Answers the caller; an error is what became of its group, or of itself.
    fn answer(self: Box<Self>, end: Result<(), Error>);
}

/// Work that is a function, and where its answer goes.
pub(super) struct Ask<T, F> {
    act: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Ask<T, F> {
    pub(super) fn new(act: F) -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (reply, answer) = oneshot::channel();
        let ask = Self {
            act: Some(act),
            value: None,
            reply,
        };
        (ask, answer)
    }
}

impl<T, F> Work for Ask<T, F>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send,
{
    fn act(&mut self, tx: &mut Tx<'_>) -> Result<(), Fault> {
        if let Some(act) = self.act.take() {
            self.value = Some(act(tx)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, end: Result<(), Error>) {
        let undone = Error::NotApplied(Failure::Other("it was never done".to_owned()));
        let Self { value, reply, .. } = *self;
        // A caller that no longer waits is answered by the record.
        drop(reply.send(end.and_then(|()| value.ok_or(undone))));
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
                Error::NotApplied(Failure::Other("it was never done".to_owned()))
            };
            for work in group.drain(..) {
                work.answer(Err(left.clone()));
            }
        }
    }

    fn group(&mut self, group: &mut Vec<Box<dyn Work>>) {
        let ends = match self.apply(group) {
            Ok(ends) => ends,
            Err(error) => vec![Err(error); group.len()],
        };
        for (work, end) in group.drain(..).zip(ends) {
            work.answer(end);
        }
        self.pressure.relieve(&self.conn);
    }

    /// How each of `group` ended; an error where they all ended alike.
    fn apply(&mut self, group: &mut [Box<dyn Work>]) -> Result<Vec<Result<(), Error>>, Error> {
        if let Some(why) = &self.broken {
            return Err(Error::NotApplied(why.clone()));
        }
        self.same_file()?;
        let not_applied = |error: &rusqlite::Error| Error::NotApplied(failure(error));
        self.execute("BEGIN IMMEDIATE")
            .map_err(|error| not_applied(&error))?;
        let mut tx = Tx {
            conn: &self.conn,
            state: self.state,
        };
        let mut ends = Vec::with_capacity(group.len());
        for work in group {
            match one(&mut tx, work.as_mut()) {
                Ok(end) => ends.push(end),
                Err(error) => {
                    self.roll_back();
                    return Err(not_applied(&error));
                }
            }
        }
        let state = tx.state;
        if state.version != self.state.version
            && let Err(error) = schema::set_version(&self.conn, state.version)
        {
            self.roll_back();
            return Err(not_applied(&error));
        }
        if let Err(error) = self.execute("COMMIT") {
            return Err(self.not_committed(&error));
        }
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

/// One piece of work behind a savepoint. An `Err` is the whole transaction's end.
fn one(tx: &mut Tx<'_>, work: &mut dyn Work) -> rusqlite::Result<Result<(), Error>> {
    let execute = |tx: &Tx<'_>, sql: &str| tx.conn.prepare_cached(sql)?.execute([]).map(drop);
    let before = tx.state;
    execute(tx, "SAVEPOINT work")?;
    let end = match work.act(tx) {
        Ok(()) => Ok(()),
        Err(fault) => {
            // A full disk may roll the whole transaction back by itself. Then nothing of
            // the group is left, whatever its earlier pieces believe.
            if tx.conn.is_autocommit()
                && let Fault::Sql(error) = fault
            {
                return Err(error);
            }
            tx.state = before;
            execute(tx, "ROLLBACK TO work")?;
            Err(Error::NotApplied(fault.into()))
        }
    };
    execute(tx, "RELEASE work")?;
    Ok(end)
}
