//! The file: which one it is, and who holds it.

use std::fs::{DirBuilder, File, FileType, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::unopened::OpenError;

/// What a copy does not keep: the inode, and when it was born where the file system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) inode: u64,
    /// Nanoseconds since the Unix epoch. An inode alone is soon given to another file.
    pub(super) born: Option<i64>,
}

impl Identity {
    /// Of the file at `path`. It is not opened: closing it would drop `SQLite`'s locks.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let meta = std::fs::metadata(path)?;
        let born = (meta.created().ok())
            .and_then(|at| jiff::Timestamp::try_from(at).ok())
            .and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        Ok(Self {
            inode: meta.ino(),
            born,
        })
    }
}

/// The file that `path` leads to. Two names of one database would else have two locks, and
/// two processes that ring the same phones.
pub(super) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What stands at `path` must be a file, or nothing yet. A pipe would be waited for without an
/// end; a folder has links of its own; a device forgets; and a link that leads nowhere is, as a
/// rule, a disk that was not mounted, whose place must not be taken by a new store.
pub(super) fn fits(path: &Path) -> Result<(), OpenError> {
    match other_than_file(path)? {
        None => Ok(()),
        Some(what) => Err(OpenError::NotAFile {
            path: path.to_owned(),
            what,
        }),
    }
}

/// What stands at `path`, if it is neither a file nor nothing.
fn other_than_file(path: &Path) -> Result<Option<&'static str>, OpenError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(None),
        Ok(meta) => Ok(Some(kind(meta.file_type()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_link = std::fs::symlink_metadata(path).is_ok();
            Ok(is_link.then_some("a link that leads nowhere"))
        }
        Err(why) => Err(OpenError::io(path, why)),
    }
}

fn kind(of: FileType) -> &'static str {
    if of.is_dir() {
        "a folder"
    } else if of.is_fifo() {
        "a pipe"
    } else if of.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// What begins a file of `SQLite` (its file format, 1.3.1).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Refuses a file that is certainly no database, before a lock is left beside it. Only where
/// none is there: this process may hold the database, and closing a descriptor of it would drop
/// `SQLite`'s locks.
pub(super) fn is_database(path: &Path) -> Result<(), OpenError> {
    if lock_path(path).exists() || !path.exists() {
        return Ok(());
    }
    let mut begins = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut begins))
        .map_err(|why| OpenError::io(path, why))?;
    // An empty one is what a person may have made for it.
    if begins.is_empty() || begins == MAGIC {
        return Ok(());
    }
    Err(OpenError::Foreign {
        path: path.to_owned(),
    })
}

/// Held while a process serves from a store; its end, however it comes, releases it. It
/// outlives every connection: closing a descriptor of the database drops `SQLite`'s locks.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The database itself, since the lock beside it is one for each name.
    database: Option<File>,
}

impl Lock {
    /// Takes the lock beside the database at `path`, or says who has it.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let beside = lock_path(path);
        if let Some(what) = other_than_file(&beside)? {
            return Err(OpenError::NoLock { path: beside, what });
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&beside)
            .map_err(|why| OpenError::making(&beside, why))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(OpenError::io(&beside, error.into()));
            }
            let mut holder = String::new();
            // Only for the message; a holder that cannot be read is not named.
            drop(file.read_to_string(&mut holder));
            return Err(OpenError::Held {
                path: path.to_owned(),
                holder: holder.trim().parse().ok(),
            });
        }
        let named = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        // The lock holds without a name in it, also on a full disk.
        if let Err(why) = named
            && why.kind() != io::ErrorKind::StorageFull
        {
            return Err(OpenError::io(&beside, why));
        }
        Ok(Self {
            file,
            database: None,
        })
    }

    /// Takes the lock of the database itself, once its file is there. A second name of it is
    /// refused: the log that `SQLite` keeps beside the one is not seen under the other.
    pub(super) fn bind(&mut self, path: &Path) -> Result<(), OpenError> {
        let io = |why| OpenError::io(path, why);
        let database = File::open(path).map_err(io)?;
        let links = database.metadata().map_err(io)?.nlink();
        if links > 1 {
            return Err(OpenError::Linked {
                path: path.to_owned(),
                links,
            });
        }
        match flock(&database, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.database = Some(database),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(OpenError::Held {
                    path: path.to_owned(),
                    holder: None,
                });
            }
            Err(error) => return Err(io(error.into())),
        }
        Ok(())
    }
}

impl Drop for Lock {
    /// Unlocks before the file is closed: a process that is just being started from this one
    /// has the descriptor too, until it executes, and would hold the lock for so long.
    fn drop(&mut self) {
        for held in self.database.iter().chain([&self.file]) {
            if let Err(error) = flock(held, FlockOperation::Unlock) {
                tracing::debug!(%error, "the store's lock goes with its file");
            }
        }
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Sees that the folder of the database is there, and makes nothing.
///
/// # Errors
///
/// [`OpenError::NoFolder`] if it is missing.
pub fn has_folder(path: &Path) -> Result<(), OpenError> {
    let folder = folder_of(path);
    if folder.exists() {
        return Ok(());
    }
    Err(OpenError::NoFolder {
        path: folder.to_owned(),
    })
}

/// Makes the folder of the database where it is missing, for its owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), OpenError> {
    let folder = folder_of(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|why| OpenError::Folder {
            path: folder.to_owned(),
            why,
        })
}

/// Makes the database's file, empty and for its owner only, where it is missing. Its name
/// is on the disk before anything is written into it.
pub(super) fn make_file(path: &Path) -> Result<(), OpenError> {
    let made = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_file) => File::open(folder_of(path))
            .and_then(|folder| folder.sync_all())
            .map_err(|why| OpenError::io(path, why)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(OpenError::making(path, why)),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Bytes of the database and its write-ahead log.
pub(super) fn bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    length(path) + length(Path::new(&log))
}
