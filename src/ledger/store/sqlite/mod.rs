//! The default store: one `SQLite` file, and one `serve` at a time on it.
//!
//! - One thread writes. It drains its bounded queue, applies all that it found in one
//!   transaction (one that conflicts has written nothing, and one that fails half-way sends
//!   the others into transactions of their own), and answers only after the `COMMIT` is on
//!   the disk (`WAL`, `synchronous=FULL`): one `fsync` for all. A full queue answers
//!   [`Busy`](super::Failure::Busy) at once.
//! - A few threads read, each on a connection of its own, so that no read waits for a disk.
//! - One thread moves the write-ahead log into the file, passively; while little is left on
//!   the disk, the writer does.
//! - A lock file beside the database proves that no other process serves from it. Not the
//!   database itself: closing any descriptor of it would drop `SQLite`'s own locks.
//! - The file's inode and birth time are kept inside it. Another one is a copy, and a copy
//!   is another history: it begins a new epoch.
//!
//! Threads and files live here and nowhere else in the ledger.
//!
//! # When the disk fails
//!
//! An error before the `COMMIT`, or a full disk in it, is rolled back for certain:
//! `NotApplied`. An I/O error in the `COMMIT` may have left a valid frame on the disk that
//! a restart would find: `Unknown`. After it the writer applies nothing more, since a
//! second `fsync` may succeed without having written what the first one lost.

mod apply;
mod checkpoint;
mod disk;
mod fault;
mod file;
mod handle;
mod inspect;
mod open;
mod read;
mod readers;
mod schema;
mod unopened;
mod writer;

pub use file::has_folder;
pub use handle::Sqlite;
pub use inspect::{adopt, inspect, peek, restored};
pub use open::Options;
pub use unopened::OpenError;
