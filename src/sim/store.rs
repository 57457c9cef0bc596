//! What goes wrong between a node and the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::armed::Armed;
use super::chance::Chance;
use super::judge::Judge;
use super::stage::Sky;
use crate::ledger::record::BY_STATE;
use crate::ledger::store::Kind;
use crate::ledger::store::memory::{Call, Fate, Script};
use crate::model::attempt::State;

/// How long a wake-up is put off by a claim whose answer was lost: the longest lease.
pub(super) const LEASE: Duration = Duration::from_secs(40);

/// Refuses, loses and delays some calls of one node.
#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) share: f64,
    pub(super) sky: Arc<Sky>,
    pub(super) judge: Arc<Judge>,
    pub(super) chance: Chance,
    pub(super) armed: Arc<Armed>,
}

/// Whether this commit writes an attempt that is dialed.
fn dials(call: Call<'_>) -> bool {
    let Call::Commit(_, commit) = call else {
        return false;
    };
    let dialing = State::Dialing.name();
    commit.put.iter().any(|put| {
        put.key.kind() == Kind::Attempt
            && (put.index.iter())
                .any(|entry| entry.name == BY_STATE && entry.value.starts_with(dialing))
    })
}

impl Script for Faulty {
    fn fate(&self, call: Call<'_>) -> Fate {
        if dials(call) && self.armed.marks() {
            // It is done; whoever waits for the answer stands still when it comes.
            return Fate {
                reply: Duration::from_millis(1),
                ..Fate::default()
            };
        }
        let out = self.sky.store_out_until();
        if Instant::now() < out {
            return Fate::not_applied();
        }
        if self.sky.is_clear() || !self.chance.hits(self.share) {
            return Fate::default();
        }
        let fate = match self.chance.below(4) {
            0 => Fate::not_applied(),
            1 => Fate::lost(),
            2 => Fate::late(self.chance.millis(10, 30_000)),
            _ => Fate::after(self.chance.millis(1, 3_000)),
        };
        self.judge
            .did(LEASE, || format!("the store: {:?}", fate.outcome));
        fate
    }
}
