//! The drain: receipts that wait are applied, session by session, and then marked.
//!
//! Level-triggered: the queue in the store says what waits; a new receipt only pokes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::apply::Took;
use super::project::{Said, Sight, read};
use super::{Counted, Inbox};
use crate::ledger::Error;
use crate::ledger::receipt::{Reading, Receipt};
use crate::ledger::store::Version;
use crate::model::id::{Partition, SessionId};
use crate::runtime::stop::Stop;

/// Sessions that are written at once: enough to share the writer's commits.
const SESSIONS: usize = 32;

type Claimed = (Receipt, Version);

impl Inbox {
    /// Applies what waits, until `stop` says so. What is left then is applied by the next
    /// start.
    pub async fn run(self: Arc<Self>, mut stop: Stop) {
        let limits = &self.config.webhooks;
        while !stop.asked() {
            match self.pass().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => self.comes_again(&error),
            }
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = tokio::time::sleep(limits.drain_interval) => {}
                () = self.poke.notified() => {
                    tokio::select! {
                        biased;
                        () = stop.wait() => {}
                        () = tokio::time::sleep(limits.drain_gather) => {}
                    }
                }
            }
        }
    }

    /// One pass over what waits; whether more may.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn pass(&self) -> Result<bool, Error> {
        let limits = &self.config.webhooks;
        let mut more = false;
        for p in self.ledger.partitions() {
            let claimed = self
                .ledger
                .claim_receipts(p, limits.drain_batch, limits.lease)
                .await?;
            more |= claimed.len() >= limits.drain_batch;
            let read = self.read(claimed).await;
            self.ledger.finish_receipts(p, read).await?;
        }
        Ok(more)
    }

    /// Applies receipts, and gives back those that are done with.
    async fn read(&self, claimed: Vec<Claimed>) -> Vec<Claimed> {
        let mut done = Vec::new();
        let mut sessions: BTreeMap<(Partition, SessionId), Vec<(Claimed, Sight)>> = BTreeMap::new();
        for (mut receipt, version) in claimed {
            let ours = self.ledger.deployment();
            match read(&receipt.body, receipt.received, ours) {
                Said::Seen(sight) => {
                    let of = (sight.partition, sight.session);
                    let entry = ((receipt, version), *sight);
                    sessions.entry(of).or_default().push(entry);
                    continue;
                }
                Said::Foreign => self.mark(&mut receipt, Reading::Foreign, ""),
                Said::Ignored => self.mark(&mut receipt, Reading::Ignored, ""),
                Said::Unread(why) => self.mark(&mut receipt, Reading::Unread, why),
            }
            done.push((receipt, version));
        }
        let applied: Vec<Vec<Claimed>> = stream::iter(sessions)
            .map(|((p, session), seen)| self.session(p, session, seen))
            .buffer_unordered(SESSIONS)
            .collect()
            .await;
        done.extend(applied.into_iter().flatten());
        done
    }

    /// Applies what was told of one session.
    async fn session(
        &self,
        p: Partition,
        session: SessionId,
        told: Vec<(Claimed, Sight)>,
    ) -> Vec<Claimed> {
        let (mut claimed, sights): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        let took = match self
            .projection
            .apply(p, session, &sights, &self.counts)
            .await
        {
            Ok(took) => took,
            // They are not marked, and so come again after the lease.
            Err(error) => {
                self.comes_again(&error);
                return Vec::new();
            }
        };
        if let Some(told) = self.refused.ended() {
            tracing::info!(
                event = "webhook.applied",
                failures = told.count,
                seconds = told.lasts.as_secs(),
                "receipts are applied again"
            );
        }
        for ((receipt, _), sight) in claimed.iter_mut().zip(&sights) {
            match (took, sight.unread) {
                (Took::Foreign, _) => self.mark(receipt, Reading::Foreign, ""),
                (Took::Merged, Some(why)) => self.mark(receipt, Reading::Unread, why),
                (Took::Merged, None) => self.mark(receipt, Reading::Applied, ""),
            }
        }
        claimed
    }

    fn mark(&self, receipt: &mut Receipt, reading: Reading, why: &str) {
        receipt.reading = reading;
        why.clone_into(&mut receipt.note);
        let counted = match reading {
            Reading::New => return,
            Reading::Applied => Counted::Applied,
            Reading::Ignored => Counted::Ignored,
            Reading::Foreign => Counted::Foreign,
            Reading::Unread => Counted::Unread,
        };
        let count = self.counts.add(counted);
        if reading == Reading::Unread && count.is_power_of_two() {
            tracing::warn!(
                event = "webhook.unread",
                kind = receipt.event,
                id = receipt.id,
                count,
                why,
                "this version cannot read all of a webhook; it is kept (`ringonce inbox replay`)"
            );
        }
    }
}
