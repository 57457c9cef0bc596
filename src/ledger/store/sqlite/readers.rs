//! The threads that read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

/// A read: it answers by itself.
pub(super) type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The queue that all readers share.
pub(super) type Reads = Arc<Mutex<Receiver<Read>>>;

/// Works until the queue is closed and empty.
pub(super) fn run(conn: &Connection, reads: &Reads) {
    loop {
        // The lock is held while waiting: one reader waits for a read, the others for it.
        let next = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else {
            return;
        };
        // Its caller learns of a panic by the answer that never comes; this thread goes on.
        if catch_unwind(AssertUnwindSafe(|| read(conn))).is_err() {
            tracing::error!("a read of the store panicked");
        }
    }
}
