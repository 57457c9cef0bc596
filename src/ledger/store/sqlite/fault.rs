//! What can go wrong in a statement, and what it means for the caller.

use rusqlite::ErrorCode;

use crate::ledger::store::Failure;

/// Why a piece of work failed inside its transaction.
#[derive(Debug)]
pub(super) enum Fault {
    /// `SQLite` failed.
    Sql(rusqlite::Error),
    /// The port's own rules refuse it, or what was read makes no sense.
    Refused(Failure),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sql(error) => failure(&error),
            Fault::Refused(failure) => failure,
        }
    }
}

/// What kind of trouble an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    Full,
    ReadOnly,
    NotADatabase,
    Corrupt,
    Io,
    Other,
}

pub(super) fn trouble(error: &rusqlite::Error) -> Trouble {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Trouble::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Trouble::ReadOnly,
        Some(ErrorCode::NotADatabase) => Trouble::NotADatabase,
        Some(ErrorCode::DatabaseCorrupt) => Trouble::Corrupt,
        Some(ErrorCode::SystemIoFailure) => Trouble::Io,
        Some(_) | None => Trouble::Other,
    }
}

/// In words for an operator. `SQLite`'s own words name tables and columns, never values.
pub(super) fn failure(error: &rusqlite::Error) -> Failure {
    match trouble(error) {
        Trouble::Full => Failure::Full,
        Trouble::ReadOnly => Failure::ReadOnly,
        Trouble::NotADatabase | Trouble::Corrupt => Failure::Corrupt(error.to_string()),
        Trouble::Io => Failure::Other(format!("the disk failed: {error}; check it and restart")),
        Trouble::Other => Failure::Other(format!("sqlite: {error}")),
    }
}
