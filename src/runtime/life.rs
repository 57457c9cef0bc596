//! Whether a node still lives: the switch that a simulated crash throws.
//!
//! In a crash the ports go dead first and the futures drop afterwards, so that no drop
//! guard acts: the same as `kill -9`. A port asks [`Life::pass`] before it acts and
//! after it has acted; for a dead node that never returns.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by a node and its ports. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Life(Arc<AtomicBool>);

impl Life {
    /// A node that lives.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it: from now on nothing passes its ports.
    pub fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns at once while the node lives, and never afterwards.
    pub async fn pass(&self) {
        if self.ended() {
            pending::<()>().await;
        }
    }
}
