//! The memory: the only module that writes state.
//!
//! One shape: [`Ledger::decide`] loads the records under some keys, calls a pure function
//! on them, commits what it says with the version of every record that it saw, and
//! decides anew on a conflict. State, events and timers of one change are one commit.

pub mod call;
pub mod change;
pub mod decide;
pub mod news;
pub mod open;
pub mod read;
pub mod receipt;
pub mod record;
pub mod seal;
pub mod store;
pub mod tally;
pub mod view;
mod writes;

pub use call::CallRecord;
pub use change::{AttemptChanged, Change, Decision};
pub use decide::{Decided, Ledger, Patience};
pub use news::{News, Observer};
pub use read::{Changed, Filter, PageCursor};
pub use tally::Tally;
pub use view::View;

use sha2::{Digest, Sha256};

use crate::model::id::{Partition, Workspace};

/// What the ledger may fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed; `NotApplied` means that nothing was decided, `Unknown` that it may
    /// have been.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Too many others write the same records at once; nothing was decided.
    #[error("too many writers on the same records at once; nothing was decided, try again")]
    Contended,
    /// A fault of ours; nothing was decided.
    #[error("fault: {0}")]
    Fault(String),
}

impl Error {
    /// Whether the change may have been made although this says that it failed.
    #[must_use]
    pub const fn may_have_been_decided(&self) -> bool {
        match self {
            Self::Store(store::Error::Unknown(_)) => true,
            Self::Store(store::Error::NotApplied(_)) | Self::Contended | Self::Fault(_) => false,
        }
    }
}

/// The partition of a workspace in a store of `partitions`: the same for ever, since rooms
/// carry it in their names.
#[must_use]
pub fn partition_of(workspace: &Workspace, partitions: u16) -> Partition {
    if partitions <= 1 {
        return Partition(0);
    }
    let hash = Sha256::digest(workspace.as_str().as_bytes());
    let [a, b, ..] = hash.as_slice() else {
        return Partition(0);
    };
    Partition(u16::from_be_bytes([*a, *b]) % partitions.max(1))
}
