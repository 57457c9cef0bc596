//! A folder that goes when its owner does.

use std::path::{Path, PathBuf};

use super::Error;

/// A temporary folder for stores and logs.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A new one, where the system keeps such: on a disk as real as any.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`].
    pub fn new() -> Result<Self, Error> {
        tempfile::Builder::new()
            .prefix("ringonce-")
            .tempdir()
            .map(Self)
            .map_err(Error::Folder)
    }

    /// A new one in memory, where the host has such: a busy disk, on which each commit may take
    /// seconds, does not hold up what is about something else. A process that is killed loses
    /// nothing there either; only a host would.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`].
    pub fn in_memory() -> Result<Self, Error> {
        tempfile::Builder::new()
            .prefix("ringonce-")
            .tempdir_in("/dev/shm")
            .map(Self)
            .or_else(|_| Self::new())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A store in it, as the configuration names it.
    #[must_use]
    pub fn store(&self, name: &str) -> String {
        format!("sqlite:{}", self.file(name).display())
    }
}
