//! Looking at a store while another process serves from it, and adopting its past.

use std::path::Path;

use rusqlite::OpenFlags;

use super::fault::Fault;
use super::open::{self, OpenError, Options};
use super::{file, read, schema};
use crate::ledger::store::{Epoch, Failure, Info};
use crate::model::time::Time;
use crate::runtime::ids::Ids;

/// What the store at `path` says of itself. It writes nothing and takes no lock, so it may
/// run beside `serve`. It counts, so it takes seconds on a large file.
///
/// # Errors
///
/// If there is no store of a known format at `path`, or it cannot be read.
pub fn inspect(path: &Path) -> Result<Info, OpenError> {
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
    info(path, &conn, None).map_err(|fault| OpenError::fault(path, fault))
}

/// Begins a new history at `since` in the store at `path`: by it a person says that nothing
/// before it was called, or that all of it is known. No `serve` may run on it.
///
/// # Errors
///
/// If the store cannot be opened for writing; [`OpenError::Held`] while a `serve` runs.
pub fn adopt(path: &Path, since: Time, now: Time, ids: &dyn Ids) -> Result<Epoch, OpenError> {
    let opened = open::open(path, &Options::default(), now, ids, false)?;
    let epoch = Epoch {
        id: ids.uuid(),
        since,
    };
    let write = || -> Result<(), Fault> {
        let tx = opened.conn.unchecked_transaction()?;
        schema::set_epoch(&tx, epoch)?;
        tx.commit()?;
        Ok(())
    };
    write().map_err(|fault| OpenError::fault(path, fault))?;
    Ok(epoch)
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
        bytes: Some(file::bytes(path)),
        exclusive: true,
    })
}
