//! What is older than its retention is forgotten, a little at a time.

use std::sync::Arc;

use crate::config::Config;
use crate::ledger::store::{Kind, Trim};
use crate::ledger::{Error, Ledger};
use crate::runtime::stop::Stop;

/// Forgets until `stop` says so.
pub async fn run(ledger: Arc<Ledger>, config: Arc<Config>, mut stop: Stop) {
    while !stop.asked() {
        tokio::select! {
            biased;
            () = stop.wait() => {}
            () = tokio::time::sleep(config.store.trim_interval) => {
                if let Err(error) = pass(&ledger, &config).await {
                    tracing::warn!(%error, "what is old could not be forgotten; it is tried again");
                }
            }
        }
    }
}

/// One pass. An attempt is remembered for as long as its id may come again.
async fn pass(ledger: &Ledger, config: &Config) -> Result<(), Error> {
    let limits = &config.store;
    let now = ledger.now();
    let details = now.minus(limits.detail_retention);
    let ids = details.minus(limits.id_retention);
    let receipts = now.minus(config.webhooks.retention);
    for p in ledger.partitions() {
        // Of these there are many more than of all else; small commits, one after the other,
        // let others through.
        let kind = Trim::Records(Kind::Receipt);
        while ledger.trim(p, kind, receipts, limits.trim_batch).await? >= limits.trim_batch {}
        ledger
            .trim(p, Trim::Events, details, limits.trim_batch)
            .await?;
        for kind in [
            Kind::Attempt,
            Kind::Session,
            Kind::Contact,
            Kind::Number,
            Kind::Room,
            Kind::Call,
        ] {
            ledger
                .trim(p, Trim::Records(kind), ids, limits.trim_batch)
                .await?;
        }
    }
    Ok(())
}
