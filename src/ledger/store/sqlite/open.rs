//! Opening a file: what it may be, and what to do about each reason that it cannot be.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::checkpoint;
use super::disk::PAGE;
use super::fault::{Fault, Trouble, trouble};
use super::file::{self, Identity, Lock};
use super::schema::{self, Found};
use super::unopened::OpenError;
use crate::ledger::store::{Epoch, Failure};
use crate::model::time::Time;
use crate::runtime::ids::Ids;

/// The limits of a store, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Most commits that wait for the writer; a full queue answers `Busy`. At ten thousand
    /// a second it stands for a tenth of a second.
    pub queue: usize,
    /// Most commits in one transaction, so that the first in it does not wait long.
    pub group: usize,
    /// Threads that read. A read takes microseconds, so a few are many.
    pub readers: usize,
    /// Most reads that wait for them; more answer `Busy`.
    pub reads: usize,
    /// Pages of the write-ahead log (4 KiB each) from which it is moved into the file.
    pub checkpoint_pages: u32,
    /// While less is free on the disk than the log has, and so many bytes, the log is moved
    /// after every few pages, and nothing new is begun. At a kilobyte a commit the default is
    /// for eight thousand of them.
    pub spare_bytes: u64,
    /// Cache of the writer and of each reader, in KiB.
    pub cache_kib: u32,
    /// Most bytes of the file, beyond which writes answer `Full`; `None` for the disk's own
    /// limit.
    pub max_bytes: Option<u64>,
    /// A file of at most so many bytes is checked whole when it is opened; a larger one only
    /// where it is read then, so that opening stays quick.
    pub check_bytes: u64,
    /// Whether what was put off by a lease is due again at once. The file's lock proves that
    /// whoever took the lease is dead; a process that is killed every few seconds would else
    /// put off the same records each time, and nobody would ever look at them.
    pub forget_leases: bool,
    /// Whether the folder of a new file is made, with all above it, where it is missing.
    pub make_folder: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue: 1024,
            group: 256,
            readers: 2,
            reads: 1024,
            checkpoint_pages: 4096,
            spare_bytes: 8 << 20,
            cache_kib: 16 * 1024,
            max_bytes: None,
            check_bytes: 16 << 20,
            forget_leases: false,
            make_folder: true,
        }
    }
}

/// A file that was opened for writing, with its lock.
#[derive(Debug)]
pub(super) struct Opened {
    /// Where it really is.
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    pub(super) conn: Connection,
    pub(super) identity: Identity,
    pub(super) epoch: Epoch,
    pub(super) version: i64,
}

/// Opens the file at `path`, and makes it, where it is missing, if `make` says so.
pub(super) fn open(
    path: &Path,
    options: &Options,
    now: Time,
    ids: &dyn Ids,
    make: bool,
) -> Result<Opened, OpenError> {
    if make {
        if options.make_folder {
            file::make_folder(path)?;
        } else {
            file::has_folder(path)?;
        }
    } else if !path.exists() {
        return Err(OpenError::Missing {
            path: path.to_owned(),
        });
    }
    let path = &file::real(path);
    file::fits(path)?;
    file::is_database(path)?;
    let mut lock = Lock::take(path)?;
    if make {
        file::make_file(path)?;
    }
    lock.bind(path)?;
    let identity = Identity::of(path).map_err(|why| OpenError::io(path, why))?;
    let sql = |error| OpenError::sql(path, error);
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_kib)?;
    if conn.is_readonly("main").map_err(sql)? {
        return Err(OpenError::ReadOnly {
            path: path.to_owned(),
        });
    }
    let found = recognise(path, &conn)?;
    prepare(&conn, options).map_err(sql)?;
    if found == Found::Ours {
        check(path, &conn, options.check_bytes)?;
    }
    let mut settled = settle(&mut conn, found, identity, now, ids);
    if settled.as_ref().is_err_and(is_full) && checkpoint::make_room(&conn) {
        settled = settle(&mut conn, found, identity, now, ids);
    }
    let (epoch, version) = settled.map_err(|fault| {
        if is_full(&fault) {
            let least = checkpoint::growth(&conn, path).map(|growth| growth + ROOM);
            let path = path.clone();
            return OpenError::Full { path, least };
        }
        OpenError::fault(path, fault)
    })?;
    if options.forget_leases {
        forget_leases(&conn).map_err(|fault| OpenError::fault(path, fault))?;
    }
    Ok(Opened {
        path: path.clone(),
        lock,
        conn,
        identity,
        epoch,
        version,
    })
}

/// On a full disk they are kept: they only put off, and whoever asks is answered by what the
/// store has.
fn forget_leases(conn: &Connection) -> Result<(), Fault> {
    let forget = || -> Result<(), Fault> {
        let again = "UPDATE record SET wake = due WHERE wake IS NOT NULL AND wake > due";
        conn.execute(again, [])?;
        Ok(())
    };
    let mut forgotten = forget();
    if forgotten.as_ref().is_err_and(is_full) && checkpoint::make_room(conn) {
        forgotten = forget();
    }
    if forgotten.as_ref().is_err_and(is_full) {
        tracing::warn!(
            event = "store.full",
            "no space is left on the store's disk: what is known is answered, and nothing is \
             admitted or dialed; free some"
        );
        return Ok(());
    }
    forgotten
}

/// Bytes with which a store can go on, beside those that moving its log takes.
const ROOM: u64 = 1 << 20;

fn is_full(fault: &Fault) -> bool {
    match fault {
        Fault::Sql(error) => trouble(error) == Trouble::Full,
        Fault::Refused(failure) => *failure == Failure::Full,
    }
}

/// How long a statement waits for a lock. A checkpoint or another process that inspects holds
/// one for moments only.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// A connection to the file at `path`. Without mutexes: each belongs to one thread.
pub(super) fn connect(
    path: &Path,
    access: OpenFlags,
    cache_kib: u32,
) -> Result<Connection, OpenError> {
    let open = || {
        let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        conn.busy_timeout(BUSY)?;
        conn.set_prepared_statement_cache_capacity(64);
        // Without it SQLite looks at what is bound and compiles a statement anew for each
        // other value, since a partial index may fit one and not another. Ours fit all.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
        conn.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(conn)
    };
    open().map_err(|error| OpenError::sql(path, error))
}

/// Ours, or empty; an error for everything else. Nothing is written before this.
pub(super) fn recognise(path: &Path, conn: &Connection) -> Result<Found, OpenError> {
    let path = path.to_owned();
    match schema::find(conn) {
        Ok(found @ (Found::Empty | Found::Ours)) => Ok(found),
        Ok(Found::Newer(found)) => Err(OpenError::Newer {
            path,
            found,
            known: schema::FORMAT,
        }),
        Ok(Found::Foreign) => Err(OpenError::Foreign { path }),
        Err(error) => Err(OpenError::sql(&path, error)),
    }
}

fn prepare(conn: &Connection, options: &Options) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // The checkpointer does it, on its own connection.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A reader that took long has let the log grow, and it is cut when it begins anew.
    let limit = i64::from(options.checkpoint_pages) * PAGE.cast_signed();
    conn.pragma_update_and_check(None, "journal_size_limit", limit, |_| Ok(()))?;
    if let Some(bytes) = options.max_bytes {
        let page: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let pages = (bytes / page.max(1)).max(1);
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

fn check(path: &Path, conn: &Connection, most: u64) -> Result<(), OpenError> {
    let whole = std::fs::metadata(path).is_ok_and(|meta| meta.len() <= most);
    let table = (!whole).then_some("meta");
    let said: rusqlite::Result<String> = match table {
        Some(name) => conn.query_row(&format!("PRAGMA quick_check({name})"), [], |r| r.get(0)),
        None => conn.query_row("PRAGMA quick_check(1)", [], |r| r.get(0)),
    };
    let said = said.map_err(|error| OpenError::sql(path, error))?;
    if said == "ok" {
        return Ok(());
    }
    Err(OpenError::Corrupt {
        path: path.to_owned(),
        what: said,
    })
}

/// Makes the tables of a new file and the epoch of a new or copied one.
fn settle(
    conn: &mut Connection,
    found: Found,
    identity: Identity,
    now: Time,
    ids: &dyn Ids,
) -> Result<(Epoch, i64), Fault> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if found == Found::Empty {
        schema::create(&tx)?;
    }
    let known = schema::epoch(&tx)?.filter(|_| found == Found::Ours);
    let same = schema::identity(&tx)? == Some(identity);
    let epoch = match known {
        Some(epoch) if same => epoch,
        Some(_) | None => {
            let epoch = Epoch {
                id: ids.uuid(),
                since: now,
            };
            schema::set_epoch(&tx, epoch)?;
            schema::set_identity(&tx, identity)?;
            epoch
        }
    };
    let version = schema::version(&tx)?;
    tx.commit()?;
    Ok((epoch, version))
}
