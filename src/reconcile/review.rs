//! What waits for a person: attempts that evidence could not settle, and what a person says
//! became of them. Nothing here dials, and the id never dials again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Reconciler;
use crate::ledger::store::Version;
use crate::ledger::{Error, Ledger, PageCursor};
use crate::model::attempt::{Attempt, Cause, Resolution, ReviewCause, State};
use crate::model::id::{AttemptId, Workspace};
use crate::model::time::Time;
use crate::placement::settle::{Finding, Try};

/// So many reviews are counted at most: more than that is not read by anybody, and settled
/// in bulk by cause.
const COUNTED_MAX: usize = 100_000;

/// What a person says of an attempt in review.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// What became of it.
    pub resolution: Resolution,
    /// How that is known.
    pub reason: String,
    /// Who says so.
    pub by: String,
}

/// Why nothing was resolved.
#[derive(Debug, thiserror::Error)]
pub enum NotResolved {
    /// The store failed; if its answer is unknown, the same again is safe.
    #[error(transparent)]
    Ledger(#[from] Error),
    /// There is no such attempt.
    #[error("no such attempt was accepted, or it is forgotten")]
    NotFound,
    /// It does not wait for a person.
    #[error("the attempt is {}, and only what is in NEEDS_REVIEW waits for a person", .0.name())]
    NotInReview(State),
    /// Its phone was seen to ring, so it was dialed.
    #[error("its phone was seen to ring, so it was dialed, and cannot be called not dialed")]
    Rang,
}

/// Attempts in review that have one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewGroup {
    /// The cause.
    pub cause: ReviewCause,
    /// How many.
    pub count: usize,
    /// Since when the oldest waits.
    pub oldest: Time,
}

/// One page of what waits for a person.
#[derive(Debug, Clone)]
pub struct Reviews {
    /// All of the workspace, by cause; counted up to a limit.
    pub groups: Vec<ReviewGroup>,
    /// The attempts of this page, oldest first.
    pub attempts: Vec<(Attempt, Version)>,
    /// Where the next page begins.
    pub next: Option<PageCursor>,
}

impl Reconciler {
    /// What a person says becomes the attempt's end: in its history, with reason and name.
    /// Contact and number are freed. The same again changes nothing.
    ///
    /// # Errors
    ///
    /// It is not in review, or the store failed.
    pub async fn resolve(&self, say: &Resolve) -> Result<(Attempt, Version), NotResolved> {
        let read = || self.ledger.attempt(&say.workspace, &say.attempt);
        let (attempt, version) = read().await?.ok_or(NotResolved::NotFound)?;
        let of = Try::of(&attempt).ok_or(NotResolved::NotInReview(attempt.state))?;
        if attempt.state == State::NeedsReview && !say.resolution.may_be(&attempt) {
            return Err(NotResolved::Rang);
        }
        let evidence = format!("{} says: {}", say.by, say.reason);
        let settled = self
            .settler
            .settle(&of, Cause::Resolved, None, |now| {
                let waits = now.state == State::NeedsReview && say.resolution.may_be(now);
                waits.then(|| (Finding::Resolved(say.resolution), evidence.clone()))
            })
            .await?;
        let Some(settlement) = settled else {
            let (attempt, version) = read().await?.unwrap_or((attempt, version));
            // Said twice, by one who did not hear the answer.
            let last = attempt.history.last();
            return match last {
                Some(last) if last.cause == Cause::Resolved && last.evidence == evidence => {
                    Ok((attempt, version))
                }
                Some(_) | None => Err(NotResolved::NotInReview(attempt.state)),
            };
        };
        tracing::info!(
            event = "attempt.resolved",
            workspace = %say.workspace,
            attempt = %say.attempt,
            state = settlement.attempt.state.name(),
            "a person said what became of it"
        );
        self.close_room(Some(settlement)).await?;
        read().await?.ok_or(NotResolved::NotFound)
    }
}

/// Attempts of a workspace that wait for a person, all or those of one cause.
///
/// # Errors
///
/// If the store fails.
pub async fn reviews(
    ledger: &Arc<Ledger>,
    workspace: &Workspace,
    cause: Option<ReviewCause>,
    after: Option<PageCursor>,
    limit: usize,
) -> Result<Reviews, Error> {
    let groups = groups(ledger, workspace).await?;
    let mut attempts = Vec::new();
    let mut after = after;
    let p = ledger.partition(workspace);
    loop {
        let want = limit.saturating_sub(attempts.len()).max(1);
        let (page, next) = ledger.in_state(p, State::NeedsReview, after, want).await?;
        for attempt in page {
            if attempt.workspace == *workspace && cause.is_none_or(|c| cause_of(&attempt) == c) {
                let found = ledger.attempt(workspace, &attempt.id).await?;
                attempts.extend(found);
            }
        }
        after = next;
        if after.is_none() || attempts.len() >= limit {
            return Ok(Reviews {
                groups,
                attempts,
                next: after,
            });
        }
    }
}

async fn groups(ledger: &Arc<Ledger>, workspace: &Workspace) -> Result<Vec<ReviewGroup>, Error> {
    let mut groups: BTreeMap<ReviewCause, ReviewGroup> = BTreeMap::new();
    let p = ledger.partition(workspace);
    let (mut after, mut counted) = (None, 0);
    loop {
        let (page, next) = ledger.in_state(p, State::NeedsReview, after, 1_000).await?;
        counted += page.len();
        for attempt in page.iter().filter(|a| a.workspace == *workspace) {
            let cause = cause_of(attempt);
            let group = groups.entry(cause).or_insert(ReviewGroup {
                cause,
                count: 0,
                oldest: attempt.since,
            });
            group.count += 1;
            group.oldest = group.oldest.min(attempt.since);
        }
        after = next;
        if after.is_none() || counted >= COUNTED_MAX {
            return Ok(groups.into_values().collect());
        }
    }
}

/// Why it is in review.
fn cause_of(attempt: &Attempt) -> ReviewCause {
    attempt.review.unwrap_or(ReviewCause::Other)
}
