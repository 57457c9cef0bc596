//! How many attempts are open: a bounded count, by the index of states.

use super::Error;
use super::decide::Ledger;
use super::record::BY_STATE;
use super::view::read;
use crate::model::attempt::{Attempt, State};

/// Attempts in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The state.
    pub state: State,
    /// How many were counted.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The one that was accepted first.
    pub oldest: Option<Box<Attempt>>,
}

impl Ledger {
    /// How many attempts are in `state`, of all workspaces, counted up to `limit` in each
    /// partition. Only the states that the index has are counted: those that are not over.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn tally(&self, state: State, limit: usize) -> Result<Tally, Error> {
        let mut tally = Tally {
            state,
            count: 0,
            more: false,
            oldest: None,
        };
        let prefix = format!("{}/", state.name());
        for p in self.partitions() {
            // Counted unread: of a flood only the first matters.
            let page = self.page(p, BY_STATE, &prefix, None, limit).await?;
            tally.count += page.records.len();
            tally.more |= page.next.is_some();
            let first: Option<Attempt> = page.records.first().map(read).transpose()?;
            let older = |first: &Attempt| {
                let known = tally.oldest.as_ref();
                known.is_none_or(|known| first.create_time < known.create_time)
            };
            if let Some(first) = first.filter(older) {
                tally.oldest = Some(Box::new(first));
            }
        }
        Ok(tally)
    }
}
