//! Looking at a store while another process serves from it, and adopting its past.

use std::path::Path;

use rusqlite::OpenFlags;

use super::fault::Fault;
use super::open::{self, Options};
use super::unopened::OpenError;
use super::{file, read, schema};
use crate::ledger::store::{Epoch, Failure, Info, Page, Scan};
use crate::model::time::Time;
use crate::runtime::ids::Ids;

/// What the store at `path` says of itself. It writes nothing and takes no lock, so it may
/// run beside `serve`. It counts, so it takes seconds on a large file.
///
/// # Errors
///
/// If there is no store of a known format at `path`, or it cannot be read.
pub fn inspect(path: &Path) -> Result<Info, OpenError> {
    let conn = look(path)?;
    info(path, &conn, None).map_err(|fault| OpenError::fault(path, fault))
}

/// A page of an index of the store at `path`. It writes nothing and takes no lock, so it may
/// run beside `serve`.
///
/// # Errors
///
/// As [`inspect`].
pub fn peek(path: &Path, scan: &Scan) -> Result<Page, OpenError> {
    let conn = look(path)?;
    read::scan(&conn, scan).map_err(|fault| OpenError::fault(path, fault))
}

/// A connection that only reads.
fn look(path: &Path) -> Result<rusqlite::Connection, OpenError> {
    file::fits(path)?;
    if !path.exists() {
        return Err(OpenError::Missing {
            path: path.to_owned(),
        });
    }
    let conn = open::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, 2048)?;
    if open::recognise(path, &conn)? == schema::Found::Empty {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    Ok(conn)
}

/// Moves the beginning of the store's history to `since`: by it a person says that nothing
/// was called between the two, or that all of it is known. The history stays the same one,
/// so what waits in it is still trusted. No `serve` may run on it.
///
/// # Errors
///
/// If the store cannot be opened for writing; [`OpenError::Held`] while a `serve` runs.
pub fn adopt(path: &Path, since: Time, now: Time, ids: &dyn Ids) -> Result<Epoch, OpenError> {
    rewrite_epoch(path, now, ids, |found| Epoch {
        id: found.id,
        since,
    })
}

/// Begins a new history now, in a store that came back from a backup or a snapshot: what it
/// believes to be waiting or ringing is distrusted. No `serve` may run on it.
///
/// # Errors
///
/// As [`adopt`].
pub fn restored(path: &Path, now: Time, ids: &dyn Ids) -> Result<Epoch, OpenError> {
    let id = ids.uuid();
    rewrite_epoch(path, now, ids, |_| Epoch { id, since: now })
}

fn rewrite_epoch(
    path: &Path,
    now: Time,
    ids: &dyn Ids,
    next: impl FnOnce(Epoch) -> Epoch,
) -> Result<Epoch, OpenError> {
    let opened = open::open(path, &Options::default(), now, ids, false)?;
    let write = || -> Result<Epoch, Fault> {
        let tx = opened.conn.unchecked_transaction()?;
        let found =
            schema::epoch(&tx)?.ok_or_else(|| Failure::Corrupt("it has no epoch".to_owned()))?;
        let epoch = next(found);
        schema::set_epoch(&tx, epoch)?;
        tx.commit()?;
        Ok(epoch)
    };
    write().map_err(|fault| OpenError::fault(path, fault))
}

/// `epoch`: what the caller has opened; else what the file says.
pub(super) fn info(
    path: &Path,
    conn: &rusqlite::Connection,
    epoch: Option<Epoch>,
) -> Result<Info, Fault> {
    let (records, events) = read::count(conn)?;
    let epoch = match epoch {
        Some(epoch) => epoch,
        None => {
            schema::epoch(conn)?.ok_or_else(|| Failure::Corrupt("it has no epoch".to_owned()))?
        }
    };
    Ok(Info {
        location: format!("sqlite:{}", path.display()),
        epoch,
        partitions: 1,
        format: schema::FORMAT.unsigned_abs(),
        records,
        events,
        commits: schema::version(conn)?.cast_unsigned(),
        bytes: Some(file::bytes(path)),
        exclusive: true,
    })
}
