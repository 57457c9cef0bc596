//! The signals that end a process: the first asks for order, the second for haste.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Two listeners, since two parts of the program wait: one for the first signal, the other
/// for the second.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) first: Ends,
    pub(super) second: Ends,
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(super) struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on neither ends the process by itself.
    ///
    /// # Errors
    ///
    /// If the system gives no handler.
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            first: Ends::listen()?,
            second: Ends::listen()?,
        })
    }
}

impl Ends {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("failed to listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub(super) async fn come(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for two of them. Two that come together may count as one.
    pub(super) async fn come_twice(&mut self) {
        self.come().await;
        self.come().await;
    }
}
