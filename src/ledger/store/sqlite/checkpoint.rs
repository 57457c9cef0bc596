//! The thread that moves the write-ahead log into the file, and what helps it.
//!
//! Passively: it waits for nobody and nobody waits for it. Under load without a pause it
//! never catches up with the writer, and the log would grow without end; so beyond
//! [`HARD`] times the soft limit the writer moves the small rest itself, between two
//! groups, after which it begins the log anew. One of the two moves at a time: SQLite sends
//! the second away, so the writer waits its [`Turn`], or a checkpointer that is slow with its
//! `fsync` would let the log grow past that.
//!
//! The log must not fill the disk either. It is given back only once all of it is in the file,
//! and the file has to grow for that: on a disk that the log alone has filled, nothing could
//! ever be written again. So while little is left the writer moves the log after every few
//! pages; and where a commit found no space all the same, it tries that once more.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;

use super::disk::{Disk, PAGE};
use super::fault::Fault;
use super::open::BUSY;
use crate::runtime::streak::Streak;

/// How many times the soft limit the log may reach.
const HARD: i64 = 4;
/// Pages of the log that are worth two `fsync`s while little is left on the disk.
const FEW: i64 = 64;
/// Between two tries to give the log back that were in vain: each may cost two `fsync`s.
const AGAIN: Duration = Duration::from_secs(1);

/// What the writer knows of the log's length, and of the disk.
#[derive(Debug)]
pub(super) struct Pressure {
    poke: SyncSender<()>,
    turn: Turn,
    soft: i64,
    disk: Disk,
    /// When the log may be given back again, after that was in vain.
    again: Option<Instant>,
    /// How often it was.
    vain: Streak,
}

/// Whose turn it is to move the log.
#[derive(Debug, Clone, Default)]
struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// Does it once nobody else moves the log. It guards no data, so a panic in it spoils none.
    fn take<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }
}

/// The checkpointer's end.
#[derive(Debug)]
pub(super) struct Pokes {
    pokes: Receiver<()>,
    turn: Turn,
}

/// Pages in the log, and how many of them are in the file already.
struct Log {
    pages: i64,
    moved: i64,
}

impl Log {
    const fn is_moved(&self) -> bool {
        self.pages == self.moved
    }
}

impl Pressure {
    /// And the other end, for the checkpointer. One poke waits at most; more say nothing new.
    pub(super) fn new(pages: u32, disk: Disk) -> (Self, Pokes) {
        let (poke, pokes) = sync_channel(1);
        let turn = Turn::default();
        let pressure = Self {
            poke,
            turn: turn.clone(),
            soft: i64::from(pages.max(1)),
            disk,
            again: None,
            vain: Streak::default(),
        };
        (pressure, Pokes { pokes, turn })
    }

    /// Called by the writer between two groups.
    pub(super) fn relieve(&mut self, conn: &Connection) {
        let Ok(log) = checkpoint(conn, "PRAGMA wal_checkpoint(NOOP)") else {
            return; // The next group asks again.
        };
        let left = log.pages - log.moved;
        let few = FEW.unsigned_abs() * PAGE;
        // At the very end every commit is moved, lest it takes the place that moving it needs.
        if left > 0 && (self.disk.tight(log.pages)).is_some_and(|free| left >= FEW || free < few) {
            let _whole = self.give_back(conn);
        } else if log.pages >= self.soft.saturating_mul(HARD) {
            self.turn.take(|| passive(conn));
        } else if left >= self.soft {
            // Full: it has been poked already. Closed: the store closes.
            let _poked = self.poke.try_send(());
        }
    }

    /// Called by the writer after a commit for which no space was left: whether another try is
    /// worth its while.
    pub(super) fn make_room(&mut self, conn: &Connection) -> bool {
        let whole = self.give_back(conn);
        // The log need not have been what was in the way.
        self.again.get_or_insert(Instant::now() + AGAIN);
        whole
    }

    /// Moves the whole log into the file; whether that came to its end.
    fn give_back(&mut self, conn: &Connection) -> bool {
        if self.again.is_some_and(|again| Instant::now() < again) {
            return false;
        }
        let end = self.turn.take(|| truncate(conn));
        let whole = end.as_ref().is_ok_and(Log::is_moved);
        match end {
            Ok(_) => {
                let _told = self.vain.ended();
            }
            Err(error) if self.vain.failed().is_some() => moved(Err(error)),
            Err(_) => {}
        }
        self.again = (!whole).then(|| Instant::now() + AGAIN);
        whole
    }
}

/// Gives the log's place on the disk back; whether that came to its end.
pub(super) fn make_room(conn: &Connection) -> bool {
    truncate(conn).is_ok_and(|log| log.is_moved())
}

/// Bytes by which the file has to grow before the log can be given back.
pub(super) fn growth(conn: &Connection, path: &Path) -> Option<u64> {
    let pages: i64 = conn
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .ok()?;
    let has = std::fs::metadata(path).ok()?.len();
    Some(
        pages
            .unsigned_abs()
            .saturating_mul(PAGE)
            .saturating_sub(has),
    )
}

/// Works until the writer is gone.
pub(super) fn run(conn: &Connection, Pokes { pokes, turn }: &Pokes) {
    while pokes.recv().is_ok() {
        turn.take(|| passive(conn));
    }
}

/// Moves what nobody reads any more; waits for nobody.
fn passive(conn: &Connection) {
    moved(checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)"));
}

/// Moves the whole log into the file, at the end. SQLite does so when the last connection
/// closes, but not if that is a reader's, which may not write: a copy of the file alone
/// would then lack what the log still has.
pub(super) fn finish(conn: &Connection) {
    moved(checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)"));
}

/// Moves the whole log into the file and gives its place back. Whoever reads may need the log
/// for longer, and is not waited for.
fn truncate(conn: &Connection) -> Result<Log, Fault> {
    conn.busy_timeout(Duration::ZERO)?;
    let end = checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
    conn.busy_timeout(BUSY)?;
    end
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
