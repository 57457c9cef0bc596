//! Why a store cannot be opened, and what to do about each reason.

use std::io;
use std::path::{Path, PathBuf};

use super::fault::{Fault, Trouble, trouble};
use crate::ledger::store::Failure;

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
    #[error(
        "no space is left for {path}; free {} on its disk, and start again",
        least.map_or("some".to_owned(), |least| format!("{} KiB or more", least.div_ceil(1024)))
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Bytes without which it cannot go on, where that is known.
        least: Option<u64>,
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
    /// Its folder is not there.
    #[error(
        "there is no folder {path} for a new store, and it is not made: if the path is not \
         mistyped, make it with `mkdir -p -m 700 {path}`, and if it is a disk, mount that first"
    )]
    NoFolder {
        /// The folder.
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
            Self::Full { path, least: None }
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
            Trouble::Full => Self::Full { path, least: None },
            // The index of the log beside it is made anew at each start, and did not fit.
            Trouble::Io if is_index_without_space(&why) => Self::Full { path, least: None },
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

fn is_index_without_space(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}
