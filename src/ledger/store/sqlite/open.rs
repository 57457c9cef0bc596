//! Opening a file: what it may be, and what to do about each reason that it cannot be.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{Fault, Trouble, trouble};
use super::file::{self, Identity, Lock};
use super::schema::{self, Found};
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue: 1024,
            group: 256,
            readers: 2,
            reads: 1024,
            checkpoint_pages: 4096,
            cache_kib: 16 * 1024,
            max_bytes: None,
            check_bytes: 16 << 20,
            forget_leases: false,
        }
    }
}

/// Why a store could not be opened, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process serves from it.
    #[error(
        "{path} is held by another ringonce{}; stop that one first, or give this one another file",
        holder.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Held {
        /// The database.
        path: PathBuf,
        /// The holder's process id, as it wrote it down.
        holder: Option<u32>,
    },
    /// Something else than a file stands there.
    #[error(
        "{path} is {what}, and a store is one file; give the path of one on a local disk, or of \
         one that does not exist yet"
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What stands there, with its article.
        what: &'static str,
    },
    /// Something else than a file stands where the store's lock is to be.
    #[error(
        "{path} is {what}, and a file is to be there that shows whether the store is in use; \
         remove it, or give the store another path"
    )]
    NoLock {
        /// The path of the lock.
        path: PathBuf,
        /// What stands there, with its article.
        what: &'static str,
    },
    /// No file can be made there.
    #[error(
        "no file can be made at {path} ({why}), and a store has several beside each other; give a \
         path in a folder on a local disk that this user may write to"
    )]
    NoFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// It has several names.
    #[error(
        "{path} has {links} names (hard links), and what is written under one is not seen under \
         another, so that a call could ring twice; remove all names but one"
    )]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// It cannot be written.
    #[error("{path} is read-only; make the file and its folder writable for this user")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space is left for {path}; free some on its disk, or raise the store's limit")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It is no database of ours.
    #[error(
        "{path} is not a ringonce store; give the path of one, or of a file that does not exist yet"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged.
    #[error("{path} is damaged ({what}); restore a backup and run `ringonce store restored`")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// It was written by a newer program.
    #[error("{path} has format {found}, and this program knows {known}; start the newer program")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest format that this program knows.
        known: i32,
    },
    /// There is none, where one must be.
    #[error("there is no store at {path}; check the path, `ringonce serve` makes it")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Its folder cannot be made.
    #[error(
        "the folder {path} cannot be made: {why}; make it, for this user, or give another path"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// Another error of the file system.
    #[error("{path} cannot be used: {why}; give the path of a file on a local disk")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// Another error of `SQLite`.
    #[error(
        "{path} cannot be opened: {why}; see that it lies on a local disk, and that this is well"
    )]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        why: rusqlite::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, why: io::Error) -> Self {
        let path = path.to_owned();
        let is = |kinds: &[io::ErrorKind]| kinds.contains(&why.kind());
        if is(&[
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
        ]) {
            Self::ReadOnly { path }
        } else if is(&[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded]) {
            Self::Full { path }
        } else if is(&[io::ErrorKind::NotFound]) {
            Self::Missing { path }
        } else {
            Self::Io { path, why }
        }
    }

    /// Of a file that is to be made where none is.
    pub(super) fn making(path: &Path, why: io::Error) -> Self {
        // The folder is there, so it is one in which nothing can be made, as /proc.
        if why.kind() == io::ErrorKind::NotFound {
            let path = path.to_owned();
            return Self::NoFile { path, why };
        }
        Self::io(path, why)
    }

    pub(super) fn sql(path: &Path, why: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match trouble(&why) {
            Trouble::Full => Self::Full { path },
            Trouble::ReadOnly => Self::ReadOnly { path },
            Trouble::NotADatabase => Self::Foreign { path },
            Trouble::Corrupt => Self::Corrupt {
                path,
                what: why.to_string(),
            },
            Trouble::Io | Trouble::Other => Self::Sqlite { path, why },
        }
    }

    pub(super) fn fault(path: &Path, fault: Fault) -> Self {
        match fault {
            Fault::Sql(error) => Self::sql(path, error),
            Fault::Refused(Failure::Corrupt(what)) => Self::Corrupt {
                path: path.to_owned(),
                what,
            },
            Fault::Refused(failure) => Self::Corrupt {
                path: path.to_owned(),
                what: failure.to_string(),
            },
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
        file::make_folder(path)?;
    } else if !path.exists() {
        return Err(OpenError::Missing {
            path: path.to_owned(),
        });
    }
    let path = &file::real(path);
    file::fits(path)?;
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
    let (epoch, version) = settle(&mut conn, found, identity, now, ids)
        .map_err(|fault| OpenError::fault(path, fault))?;
    if options.forget_leases {
        let again = "UPDATE record SET wake = due WHERE wake IS NOT NULL AND wake > due";
        conn.execute(again, []).map_err(sql)?;
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

/// A connection to the file at `path`. Without mutexes: each belongs to one thread.
pub(super) fn connect(
    path: &Path,
    access: OpenFlags,
    cache_kib: u32,
) -> Result<Connection, OpenError> {
    let open = || {
        let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // A checkpoint or another process that inspects holds a lock for moments only.
        conn.busy_timeout(Duration::from_secs(5))?;
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
