//! The thread that moves the write-ahead log into the file.
//!
//! Passively: it waits for nobody and nobody waits for it. Under load without a pause it
//! never catches up with the writer, and the log would grow without end; so beyond
//! [`HARD`] times the soft limit the writer moves the small rest itself, between two
//! groups, after which it begins the log anew.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

use super::fault::Fault;

/// How many times the soft limit the log may reach.
const HARD: i64 = 4;

/// What the writer knows of the log's length.
#[derive(Debug)]
pub(super) struct Pressure {
    poke: SyncSender<()>,
    soft: i64,
}

/// Pages in the log, and how many of them are in the file already.
struct Log {
    pages: i64,
    moved: i64,
}

impl Pressure {
    /// And the other end, for the checkpointer. One poke waits at most; more say nothing new.
    pub(super) fn new(pages: u32) -> (Self, Receiver<()>) {
        let (poke, pokes) = sync_channel(1);
        let soft = i64::from(pages.max(1));
        (Self { poke, soft }, pokes)
    }

    /// Called by the writer between two groups.
    pub(super) fn relieve(&self, conn: &Connection) {
        let Ok(log) = checkpoint(conn, "PRAGMA wal_checkpoint(NOOP)") else {
            return; // The next group asks again.
        };
        if log.pages >= self.soft.saturating_mul(HARD) {
            moved(checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)"));
        } else if log.pages - log.moved >= self.soft {
            // Full: it has been poked already. Closed: the store closes.
            let _poked = self.poke.try_send(());
        }
    }
}

/// Works until the writer is gone.
pub(super) fn run(conn: &Connection, pokes: &Receiver<()>) {
    while pokes.recv().is_ok() {
        moved(checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)"));
    }
}

/// Moves the whole log into the file, at the end. SQLite does so when the last connection
/// closes, but not if that is a reader's, which may not write: a copy of the file alone
/// would then lack what the log still has.
pub(super) fn finish(conn: &Connection) {
    moved(checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)"));
}

fn moved(end: Result<Log, Fault>) {
    // Nothing is lost by it: the log keeps what was not moved.
    if let Err(error) = end {
        tracing::warn!(?error, "the store's log could not be moved into its file");
    }
}

fn checkpoint(conn: &Connection, sql: &str) -> Result<Log, Fault> {
    Ok(conn.prepare_cached(sql)?.query_row([], |row| {
        Ok(Log {
            pages: row.get(1)?,
            moved: row.get(2)?,
        })
    })?)
}
