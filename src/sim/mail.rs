//! The way of the webhooks: lost, doubled, late, and in another order.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::chance::Chance;
use super::stage::Stage;
use crate::lab::world::Hears;

/// How long the sender waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Brings webhooks to some node.
pub(super) struct Mail {
    // The stage owns the world, and the world this.
    pub(super) stage: Weak<Stage>,
    pub(super) chance: Chance,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mail")
    }
}

#[async_trait]
impl Hears for Mail {
    async fn hear(&self, authorization: &str, body: &[u8]) -> Option<u16> {
        let stage = self.stage.upgrade()?;
        let wrong = if stage.sky.is_clear() {
            0.0
        } else {
            stage.plan.storm.hooks
        };
        // Something in between says that it was taken, and it was not.
        if self.chance.hits(wrong / 2.0) {
            return Some(200);
        }
        if self.chance.hits(wrong / 2.0) {
            return None;
        }
        if self.chance.hits(wrong) {
            sleep(self.chance.millis(10, 20_000)).await;
        }
        if self.chance.hits(wrong) {
            let again = again(
                Arc::clone(&stage),
                self.chance.clone(),
                authorization.to_owned(),
                body.to_vec(),
            );
            stage.tasks.spawn("mail", again);
        }
        take(
            &stage,
            &self.chance,
            authorization.to_owned(),
            body.to_vec(),
        )
        .await
    }
}

async fn again(stage: Arc<Stage>, chance: Chance, authorization: String, body: Vec<u8>) {
    sleep(chance.millis(0, 40_000)).await;
    let _taken = take(&stage, &chance, authorization, body).await;
}

async fn take(stage: &Stage, chance: &Chance, authorization: String, body: Vec<u8>) -> Option<u16> {
    let alive = stage.any(chance)?;
    let (tell, told) = oneshot::channel();
    let inbox = Arc::clone(alive.node.inbox());
    alive.node.tasks().spawn("webhook", async move {
        let taken = inbox.take(Some(authorization.as_bytes()), &body).await;
        // The sender may have given up.
        let _gone = tell.send(taken.status());
    });
    timeout(PATIENCE, told).await.ok()?.ok()
}
