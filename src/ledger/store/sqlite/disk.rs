//! How much of the disk is left, for the log and for what is begun.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a page: `SQLite`'s default, with which every store is made.
pub(super) const PAGE: u64 = 4096;

/// The disk of the file, as its writer and whoever begins something new see it.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    path: PathBuf,
    /// The bytes that shall stay free, beside those that moving the log takes.
    spare: u64,
    /// Whether less was free when it was looked at last, and that was said.
    tight: Arc<AtomicBool>,
}

impl Disk {
    /// Of the file at `path`, whose disk shall keep `spare` bytes.
    pub(super) fn new(path: &Path, spare: u64) -> Self {
        Self {
            path: path.to_owned(),
            spare,
            tight: Arc::default(),
        }
    }

    /// If so little is left that a log of `pages` could soon not be moved any more: the bytes
    /// that are free beside those that this takes. In the worst case each page makes the file
    /// longer. Asked by the writer, with every group.
    pub(super) fn tight(&self, pages: i64) -> Option<u64> {
        let free = free(&self.path)?;
        let log = pages.unsigned_abs().saturating_mul(PAGE);
        let wanted = log.saturating_add(self.spare);
        if free < wanted {
            if !self.tight.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    event = "store.tight",
                    free_bytes = free,
                    "little space is left on the store's disk: what is under way goes on, more \
                     slowly, and nothing new is accepted until some is freed"
                );
            }
            return Some(free.saturating_sub(log));
        }
        self.ample(free, wanted);
        None
    }

    /// Whether something new may be begun. The disk is asked only while little was left, since
    /// who is refused writes nothing, and the writer would not notice that some was freed.
    pub(super) fn has_room(&self) -> bool {
        if !self.tight.load(Ordering::Relaxed) {
            return true;
        }
        free(&self.path).is_none_or(|free| self.ample(free, self.spare))
    }

    /// Whether there is enough again: a quarter more than is wanted, lest it is tight and not
    /// with every few pages.
    fn ample(&self, free: u64, wanted: u64) -> bool {
        let ample = free >= wanted.saturating_add(wanted / 4);
        if ample && self.tight.swap(false, Ordering::Relaxed) {
            tracing::info!(
                event = "store.ample",
                free_bytes = free,
                "there is space on the store's disk again: new attempts are accepted"
            );
        }
        ample
    }
}

/// Bytes that are left for us on the disk of `path`.
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_tight_until_there_is_a_quarter_more_than_is_wanted() {
        let place = tempfile::tempdir().unwrap();
        let free = free(place.path()).unwrap();
        let of = |spare| Disk::new(place.path(), spare);
        let ample = of(0);
        assert_eq!((ample.tight(1), ample.has_room()), (None, true));
        let narrow = of(u64::MAX);
        assert!(narrow.has_room(), "nobody has looked yet");
        assert!(narrow.tight(1).is_some());
        assert!(!narrow.has_room());
        // Enough for what is wanted, and for no quarter more.
        let mut between = of(free - free / 9);
        assert_eq!(between.tight(1), None);
        between.tight = Arc::new(AtomicBool::new(true));
        assert!(!between.has_room());
        between.spare = free / 2;
        assert!(between.has_room(), "some was freed");
    }
}
