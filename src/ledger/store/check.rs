//! What every store refuses before it looks at its records: commits that break the
//! port's own rules. Such a commit is a bug of the caller.

use std::collections::BTreeSet;

use super::{Commit, Error, Failure, Key};
use crate::model::id::Partition;

/// The most records and events in one commit. A claim writes five records; the limit only
/// keeps one caller from holding up the writer.
pub(super) const COMMIT_MAX: usize = 1024;

/// That `partition` is one of `partitions`.
pub(super) fn partition(partition: Partition, partitions: u16) -> Result<(), Error> {
    if partition.0 < partitions {
        return Ok(());
    }
    Err(refused(format!(
        "there is no partition {partition}; the store has {partitions}"
    )))
}

/// That every written key is expected, none is written twice, and events come with a put.
pub(super) fn commit(commit: &Commit) -> Result<(), Error> {
    let mut written: BTreeSet<&Key> = BTreeSet::new();
    for key in commit
        .put
        .iter()
        .map(|put| &put.key)
        .chain(commit.delete.iter())
    {
        if !commit.expect.contains_key(key) {
            return Err(refused(format!("{key} is written but not expected")));
        }
        if !written.insert(key) {
            return Err(refused(format!("{key} is written twice in one commit")));
        }
    }
    if commit.put.is_empty() && !commit.events.is_empty() {
        return Err(refused("events without a record".to_owned()));
    }
    if commit.expect.len() > COMMIT_MAX || commit.events.len() > COMMIT_MAX {
        return Err(refused(format!("more than {COMMIT_MAX} records or events")));
    }
    Ok(())
}

fn refused(why: String) -> Error {
    Error::NotApplied(Failure::Other(why))
}
