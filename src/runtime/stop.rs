//! The wish that a loop ends.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Asks loops to end. Dropping it asks too: whoever could have asked is gone.
#[derive(Debug)]
pub struct StopSender {
    /// Wakes those who wait in the order in which they came: a watch wakes its own in an order
    /// of chance, and a simulation must replay.
    token: CancellationToken,
    shown: watch::Sender<bool>,
}

/// Hears of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop(CancellationToken);

/// The two ends.
#[must_use]
pub fn stop() -> (StopSender, Stop) {
    let token = CancellationToken::new();
    let sender = StopSender {
        token: token.clone(),
        shown: watch::Sender::new(false),
    };
    (sender, Stop(token))
}

impl StopSender {
    /// Asks.
    pub fn ask(&self) {
        self.shown.send_replace(true);
        self.token.cancel();
    }

    /// Another ear.
    #[must_use]
    pub fn listen(&self) -> Stop {
        Stop(self.token.clone())
    }

    /// The value alone, for those who show it.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.shown.subscribe()
    }
}

impl Drop for StopSender {
    fn drop(&mut self) {
        self.ask();
    }
}

impl Stop {
    /// Whether it was asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns once it was asked. May be dropped and called again at any time.
    pub async fn wait(&mut self) {
        self.0.cancelled().await;
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

    #[tokio::test]
    async fn who_waits_wakes_in_the_order_of_coming() {
        let (sender, heard) = stop();
        let (told, mut woken) = tokio::sync::mpsc::unbounded_channel();
        let each = (0..32).map(|n| {
            let (mut heard, told) = (heard.clone(), told.clone());
            async move {
                heard.wait().await;
                told.send(n).unwrap();
            }
        });
        let tasks = crate::runtime::tasks::Tasks::default();
        for one in each {
            tasks.spawn("test", one);
        }
        tokio::task::yield_now().await;
        sender.ask();
        for n in 0..32 {
            assert_eq!(woken.recv().await, Some(n));
        }
    }
}
