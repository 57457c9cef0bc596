//! When a kill falls, and where it fell.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::ms;
use super::stand::Stand;

/// How long a kill waits for a commit to aim at.
const AIM: Duration = Duration::from_millis(500);

/// A moment in the life of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    after: Duration,
    /// Whether it waits for the next write to the store, and strikes right then.
    aimed: bool,
}

impl Moment {
    /// Most lives are short: what is begun is cut off. Some last until calls are over.
    pub(super) fn of(chance: &mut StdRng) -> Self {
        let longest = if chance.random_bool(0.3) { 2_000 } else { 500 };
        Self {
            after: ms(chance.random_range(0..longest)),
            aimed: chance.random_bool(0.6),
        }
    }

    pub(super) const fn after(self) -> Duration {
        self.after
    }
}

/// Where the kills fell.
#[derive(Debug, Default)]
pub(super) struct Kills {
    /// Right after a write to the store's file had begun.
    after_write: u64,
    /// While a thread of the process was in the disk's hands.
    in_disk: u64,
    /// With a commit that stands in the file half-written.
    half_written: u64,
    /// While callers waited.
    callers_waited: u64,
}

impl Kills {
    /// Strikes.
    pub(super) async fn strike(&mut self, moment: Moment, stand: &mut Stand, unanswered: u64) {
        let log = stand.write_ahead_log();
        self.callers_waited += u64::from(unanswered > 0);
        if moment.aimed {
            self.after_write += u64::from(written(&log).await);
        }
        self.in_disk += u64::from(stand.pid().is_some_and(waits_for_the_disk));
        stand.kill().await;
        self.half_written += u64::from(half_written(&log));
    }

    pub(super) fn told(&self) -> String {
        format!(
            "{} right after a write to the store had begun, {} with a thread in the disk's hands, \
             {} with a half-written commit, {} while callers waited",
            self.after_write, self.in_disk, self.half_written, self.callers_waited
        )
    }
}

/// Waits until the file changes; not for ever, since a process may have nothing to write.
async fn written(file: &Path) -> bool {
    let seen = || fs::metadata(file).map(|m| (m.len(), m.mtime(), m.mtime_nsec()));
    let before = seen().ok();
    let end = Instant::now() + AIM;
    while Instant::now() < end {
        if seen().ok() != before {
            return true;
        }
        yield_now().await;
    }
    false
}

/// Whether a thread of the process is in an uninterruptible wait, as in `fsync` (proc(5)).
fn waits_for_the_disk(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('D'))
    })
}

/// Whether the write-ahead log ends with frames that no commit closes (the SQLite file format,
/// section 4: 32 bytes of header, frames of 24 bytes and a page; a frame that ends a commit has
/// the database's size in its bytes 4 to 7, and all of one generation share the header's salts).
fn half_written(log: &Path) -> bool {
    let bytes = fs::read(log).unwrap_or_default();
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().unwrap()))
    };
    let Some((page, salts)) = word(8).zip(word(16).zip(word(20))) else {
        return false;
    };
    let frame = 24 + usize::try_from(page).unwrap();
    let mut open = false;
    let mut at = 32;
    while word(at + 8).zip(word(at + 12)) == Some(salts) {
        open = word(at + 4) == Some(0) || at + frame > bytes.len();
        at += frame;
    }
    open
}
