//! The wish that a loop ends.

use tokio::sync::watch;

/// Asks loops to end. Dropping it asks too: whoever could have asked is gone.
#[derive(Debug)]
pub struct StopSender(watch::Sender<bool>);

/// Hears of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// The two ends.
#[must_use]
pub fn stop() -> (StopSender, Stop) {
    let (sender, receiver) = watch::channel(false);
    (StopSender(sender), Stop(receiver))
}

impl StopSender {
    /// Asks.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Another ear.
    #[must_use]
    pub fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }

    /// The value alone, for those who show it.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}

impl Stop {
    /// Whether it was asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once it was asked. May be dropped and called again at any time.
    pub async fn wait(&mut self) {
        // An error means that the other end is gone, which asks as well.
        drop(self.0.wait_for(|asked| *asked).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn asking_and_dropping_both_stop() {
        let (sender, mut heard) = stop();
        assert!(!heard.asked());
        sender.ask();
        heard.wait().await;
        assert!(heard.asked());
        let (sender, mut heard) = stop();
        drop(sender);
        heard.wait().await;
        assert!(heard.asked());
    }
}
