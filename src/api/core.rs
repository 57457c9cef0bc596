//! What the API asks of the rest: one trait, so that it can be tested alone.

use std::fmt::Debug;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::model::attempt::{Attempt, ReviewCause};
use crate::model::id::{AttemptId, Workspace};
use crate::model::request::Request;

pub use crate::admission::{CancelCommand, CancelResult, PlaceError};
pub use crate::ledger::store::{Cursor, Position, Version};
pub use crate::ledger::{Changed, Filter, PageCursor};
pub use crate::node::{
    LookError, NotDeleted, NotResolved, Removal, Resolve, ReviewGroup, Reviews, RoomFilter,
    RoomPage, Standing, Status, Tally, Told,
};

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
    /// Nothing was decided, but for [`PlaceError::DecisionUnknown`], which says nothing.
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

    /// Whether it was decided last in another history of the store: what waits of it is
    /// distrusted then.
    fn is_of_another_history(&self, attempt: &Attempt) -> bool;

    /// The attempt as soon as it has a newer version than `after`, at once if it has one now;
    /// `None` once it is forgotten. Level-triggered, so that no change between a read and the
    /// wait is missed. A store that does not answer meanwhile is asked again at the next
    /// change.
    async fn changed(
        &self,
        workspace: &Workspace,
        id: &AttemptId,
        after: Version,
    ) -> Option<(Attempt, Version)>;

    /// A page of at most `limit` attempts behind `after`, ordered by creation; the cursor of
    /// the next page, if there is one.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn list(
        &self,
        filter: &Filter,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<(Attempt, Version)>, Option<PageCursor>), ReadError>;

    /// The next changes of the workspace behind `after`, from a read of at most `limit` entries
    /// of the log. At the log's end `upto` is `after`.
    ///
    /// # Errors
    ///
    /// The log no longer has what follows `after`, or the store did not answer.
    async fn changes(
        &self,
        workspace: &Workspace,
        after: Position,
        limit: usize,
    ) -> Result<Changes, ReadError>;

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

    /// At most `limit` rooms behind the one called `after`, by name, as ledger and platform
    /// have them together; and counts of all.
    ///
    /// # Errors
    ///
    /// The store or the platform did not answer.
    async fn rooms(
        &self,
        filter: &RoomFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RoomPage, LookError>;

    /// Deletes a room because a person says so; what is known of it afterwards.
    ///
    /// # Errors
    ///
    /// It was not deleted, or that could not be recorded.
    async fn delete_room(&self, asked: &Removal) -> Result<Standing, NotDeleted>;

    /// At most `limit` attempts in review behind `after`, all or those of one cause, and the
    /// counts of all.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn reviews(
        &self,
        workspace: &Workspace,
        cause: Option<ReviewCause>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Reviews, ReadError>;

    /// Takes a person's word for what became of an attempt in review.
    ///
    /// # Errors
    ///
    /// It is not in review, or the store did not answer.
    async fn resolve(&self, say: &Resolve) -> Result<(Attempt, Version), NotResolved>;

    /// What this process has counted since its start.
    fn status(&self) -> Status;

    /// How many attempts are open, by state, of all workspaces; a bounded count.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    async fn open_attempts(&self) -> Result<Vec<Tally>, ReadError>;

    /// Why nothing new can be written down, while that is so; health is not `SERVING` then.
    fn refuses(&self) -> Option<String> {
        None
    }

    /// Turns true when nothing new is accepted any more.
    fn draining(&self) -> watch::Receiver<bool>;
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

/// What a read of the log brought.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The workspace's changes, oldest first.
    pub list: Vec<Changed>,
    /// Everything up to here was read, also what is of other workspaces: a cursor that stands
    /// here stays fresh while its own workspace is quiet.
    pub upto: Position,
}
