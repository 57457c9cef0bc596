//! Whether the store takes what is written, as far as this process has seen it: the reconciler
//! asks it for what is due every second, which is a write, so that this is never much older.

use std::sync::{Mutex, PoisonError};

use super::store::{Error, Failure};

/// How the last write came out.
#[derive(Debug, Default)]
pub(super) struct Writes(Mutex<Option<Failure>>);

impl Writes {
    /// Notes how a write came out. A full queue is over in a moment, and a record of a newer
    /// format stands in the way of nothing but itself, so neither says anything of the store.
    pub(super) fn note<T>(&self, end: &Result<T, Error>) {
        let failed = match end {
            Ok(_) => None,
            Err(
                Error::NotApplied(Failure::Busy | Failure::Newer(_))
                | Error::Unknown(Failure::Busy | Failure::Newer(_)),
            ) => return,
            Err(Error::NotApplied(failure) | Error::Unknown(failure)) => Some(failure.clone()),
        };
        // A std mutex, since nothing is awaited while it is held.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    /// Why the last one failed, if it did.
    pub(super) fn refused(&self) -> Option<Failure> {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_kept_until_a_write_is_taken() {
        let writes = Writes::default();
        let fails = |failure: Failure| writes.note::<()>(&Err(Error::NotApplied(failure)));
        fails(Failure::Busy);
        assert_eq!(writes.refused(), None, "a full queue is no reason");
        fails(Failure::Epoch);
        fails(Failure::Busy);
        assert_eq!(writes.refused(), Some(Failure::Epoch));
        writes.note(&Ok(()));
        assert_eq!(writes.refused(), None);
    }
}
