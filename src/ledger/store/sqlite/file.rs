//! The file: which one it is, and who holds it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::open::OpenError;

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

/// Held while a process serves from a store; its end, however it comes, releases it.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock beside the database at `path`, or says who has it.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let beside = lock_path(path);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&beside)
            .map_err(|source| OpenError::io(&beside, source))?;
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
        named.map_err(|source| OpenError::io(&beside, source))?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    /// Unlocks before the file is closed: a process that is just being started from this one
    /// has the descriptor too, until it executes, and would hold the lock for so long.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(%error, "the store's lock goes with its file");
        }
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Makes the folder of the database, for its owner only, where it is missing.
pub(super) fn make_folder(path: &Path) -> Result<(), OpenError> {
    let folder = folder_of(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| OpenError::Folder {
            path: folder.to_owned(),
            source,
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
            .map_err(|source| OpenError::io(path, source)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::io(path, source)),
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
