//! What the API asks of the rest: one trait, so that it can be tested alone.

use std::collections::BTreeSet;
use std::fmt::Debug;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::model::attempt::{Attempt, Cause, Mode, State};
use crate::model::id::{AttemptId, CampaignId, ContactId, OutreachId, Workspace};
use crate::model::request::Request;
use crate::model::time::Time;

pub use crate::ledger::store::{Position, Version};

/// The decisions and the memory behind the API.
///
/// Its methods may be dropped at any await: a caller who goes away is no reason to stop. What
/// must not be cut in half runs in a task of its own.
#[async_trait]
pub trait Core: Debug + Send + Sync {
    /// Decides what becomes of a request; returns when that is durable. The same id again
    /// returns the attempt as it stands.
    ///
    /// # Errors
    ///
    /// Nothing was decided, but for [`PlaceError::DecisionUnknown`] and
    /// [`PlaceError::Internal`], which say nothing.
    async fn place(&self, request: Request) -> Result<(Attempt, Version), PlaceError>;

    /// The attempt as it stands; `None` if it was never accepted or is forgotten.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn attempt(
        &self,
        workspace: &Workspace,
        id: &AttemptId,
    ) -> Result<Option<(Attempt, Version)>, ReadError>;

    /// Resolves when the attempt has a newer version than `after`, at once if it has one now.
    /// Level-triggered, so that no change between a read and the wait is missed.
    async fn changed(&self, workspace: &Workspace, id: &AttemptId, after: Version);

    /// A page of at most `limit` attempts behind `after`, ordered by creation; the cursor of
    /// the next page, if there is one.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn list(
        &self,
        filter: &ListFilter,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<(Attempt, Version)>, Option<PageCursor>), ReadError>;

    /// At most `limit` changes of the workspace behind `after`, oldest first; `None` begins at
    /// the oldest that the log has.
    ///
    /// # Errors
    ///
    /// The log no longer has what follows `after`, or the store did not answer.
    async fn changes(
        &self,
        workspace: &Workspace,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Change>, ReadError>;

    /// The end of the log, behind which only what happens from now on comes.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn log_end(&self, workspace: &Workspace) -> Result<Position, ReadError>;

    /// Counts up with every commit that appends to the log. A poke: it carries nothing.
    fn changes_signal(&self) -> watch::Receiver<u64>;

    /// Records the wish to stop an attempt. `None`: no such attempt, and none was allowed to
    /// be missing.
    ///
    /// # Errors
    ///
    /// As [`Core::place`].
    async fn cancel(
        &self,
        command: CancelCommand,
    ) -> Result<Option<(CancelResult, Attempt, Version)>, PlaceError>;

    /// Turns true when nothing new is accepted any more.
    fn draining(&self) -> watch::Receiver<bool>;
}

/// Why a request or a cancel was not decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The id was used before for something else.
    #[error("the attempt id was used before with other values of: {}", fields.join(", "))]
    IdReused {
        /// The fields that differ; their values are not shown.
        fields: Vec<&'static str>,
    },
    /// The workspace's queue is at its limit.
    #[error("the workspace's queue is at its limit of {limit} attempts; try again later")]
    QueueFull {
        /// The limit, in attempts.
        limit: u64,
    },
    /// This process is shutting down.
    #[error("this process is shutting down; nothing was decided, send the same id again")]
    Draining,
    /// The store could not be reached, and certainly nothing was written.
    #[error("the store is not available; nothing was decided, send the same id again")]
    StoreUnavailable,
    /// The store's answer to the decision was lost.
    #[error("whether it was decided is not known; send the same id again")]
    DecisionUnknown,
    /// A fault of ours.
    #[error("an internal fault; whether it was decided is not known, send the same id again")]
    Internal,
}

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store did not answer.
    #[error("the store is not available; try again")]
    StoreUnavailable,
    /// The log was trimmed beyond the cursor.
    #[error("the log no longer has what follows the cursor; begin with a snapshot")]
    TooOld {
        /// The oldest position behind which the log is whole.
        oldest: Position,
    },
    /// A fault of ours.
    #[error("an internal fault")]
    Internal,
}

/// Which attempts a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    /// The tenant.
    pub workspace: Workspace,
    /// Only of this contact.
    pub contact: Option<ContactId>,
    /// Only of this campaign.
    pub campaign: Option<CampaignId>,
    /// Only of this outreach.
    pub outreach: Option<OutreachId>,
    /// Only in these states; any if empty.
    pub states: BTreeSet<State>,
    /// Only accepted at this time or later.
    pub created_from: Option<Time>,
    /// Only accepted before this time.
    pub created_to: Option<Time>,
    /// Newest first.
    pub descending: bool,
}

impl ListFilter {
    /// Every attempt of a workspace, oldest first.
    #[must_use]
    pub const fn all(workspace: Workspace) -> Self {
        Self {
            workspace,
            contact: None,
            campaign: None,
            outreach: None,
            states: BTreeSet::new(),
            created_from: None,
            created_to: None,
            descending: false,
        }
    }
}

/// Where a page ended; a text whose meaning is the core's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(pub String);

/// A change of an attempt, as the log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the log.
    pub position: Position,
    /// When it was committed.
    pub at: Time,
    /// The attempt as it was right after; its version is the position's.
    pub attempt: Attempt,
    /// Why it changed.
    pub cause: Cause,
}

/// The wish to stop an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelCommand {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// How far it goes.
    pub mode: Mode,
    /// Whether an unknown id becomes a tombstone.
    pub allow_missing: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub requested_by: String,
}

/// What a cancel brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// Nothing was dialed, and nothing will be.
    Prevented,
    /// It was dialed and stopped before an answer.
    Stopped,
    /// It was answered and ended.
    HungUp,
    /// It had gone further than the mode reaches, or was over.
    TooLate,
    /// The stop is recorded and under way.
    Pending,
}
