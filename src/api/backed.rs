//! The core, as the node is it.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::core::{
    CancelCommand, CancelResult, Changes, Core, Filter, LookError, NotDeleted, NotResolved,
    PageCursor, PlaceError, Position, ReadError, Removal, Resolve, Reviews, RoomFilter, RoomPage,
    Standing, Status, Tally, Version,
};
use crate::ledger;
use crate::model::attempt::{Attempt, ReviewCause};
use crate::model::id::{AttemptId, Workspace};
use crate::model::request::Request;
use crate::node::Node;

/// A node, asked over the API.
#[derive(Debug, Clone)]
pub struct Backed {
    node: Arc<Node>,
}

impl Backed {
    /// Of this node.
    #[must_use]
    pub fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    fn drains(&self) -> bool {
        *self.node.draining().borrow()
    }
}

impl From<ledger::Error> for ReadError {
    fn from(error: ledger::Error) -> Self {
        match &error {
            ledger::Error::Store(_) | ledger::Error::Contended => {
                tracing::warn!(%error, "the store could not be read");
                Self::StoreUnavailable
            }
            ledger::Error::Fault(_) => {
                tracing::error!(%error, "a read met a fault of ours");
                Self::Internal
            }
        }
    }
}

#[async_trait]
impl Core for Backed {
    async fn place(&self, request: Request) -> Result<(Attempt, Version), PlaceError> {
        if self.drains() {
            return Err(PlaceError::Draining);
        }
        self.node.admission().place(request).await
    }

    async fn attempt(
        &self,
        workspace: &Workspace,
        id: &AttemptId,
    ) -> Result<Option<(Attempt, Version)>, ReadError> {
        Ok(self.node.ledger().attempt(workspace, id).await?)
    }

    fn is_of_another_history(&self, attempt: &Attempt) -> bool {
        attempt.epoch != self.node.ledger().epoch().id
    }

    async fn changed(
        &self,
        workspace: &Workspace,
        id: &AttemptId,
        after: Version,
    ) -> Option<(Attempt, Version)> {
        let mut news = self.node.ledger().watch(workspace, id);
        loop {
            // What was told last is what the caller has: a later commit is told too, so that
            // there is nothing to read before.
            if *news.borrow_and_update() == after && news.changed().await.is_err() {
                news = self.node.ledger().watch(workspace, id);
            }
            match self.node.ledger().attempt(workspace, id).await {
                Ok(Some(found)) if found.1 > after => return Some(found),
                Ok(None) => return None,
                Ok(Some(_)) | Err(_) => {}
            }
            if news.changed().await.is_err() {
                // Forgotten between two commits: listen anew.
                news = self.node.ledger().watch(workspace, id);
            }
        }
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<(Attempt, Version)>, Option<PageCursor>), ReadError> {
        Ok(self.node.ledger().list(filter, after, limit).await?)
    }

    async fn changes(
        &self,
        workspace: &Workspace,
        after: Position,
        limit: usize,
    ) -> Result<Changes, ReadError> {
        let ledger = self.node.ledger();
        let p = ledger.partition(workspace);
        let mut list = ledger.changes(p, after, limit).await?;
        // What was trimmed is a gap, and its reader must begin with a snapshot. The bounds
        // are read after the changes, so that a trim in between is seen.
        if after != Position::START
            && let Some(bounds) = ledger.log_bounds(p).await?
            && after < bounds.first
        {
            return Err(ReadError::TooOld {
                oldest: bounds.first,
            });
        }
        let upto = list.last().map_or(after, |change| change.position);
        list.retain(|change| change.attempt.workspace == *workspace);
        Ok(Changes { list, upto })
    }

    async fn log_end(&self, workspace: &Workspace) -> Result<Position, ReadError> {
        let ledger = self.node.ledger();
        let bounds = ledger.log_bounds(ledger.partition(workspace)).await?;
        Ok(bounds.map_or(Position::START, |bounds| bounds.last))
    }

    fn changes_signal(&self) -> watch::Receiver<u64> {
        self.node.ledger().news().latest()
    }

    async fn cancel(
        &self,
        command: CancelCommand,
    ) -> Result<Option<(CancelResult, Attempt, Version)>, PlaceError> {
        self.node.admission().cancel(&command).await
    }

    async fn rooms(
        &self,
        filter: &RoomFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RoomPage, LookError> {
        self.node.inventory().page(filter, after, limit).await
    }

    async fn delete_room(&self, asked: &Removal) -> Result<Standing, NotDeleted> {
        self.node.inventory().delete(asked).await
    }

    async fn reviews(
        &self,
        workspace: &Workspace,
        cause: Option<ReviewCause>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Reviews, ReadError> {
        Ok(self.node.reviews(workspace, cause, after, limit).await?)
    }

    async fn resolve(&self, say: &Resolve) -> Result<(Attempt, Version), NotResolved> {
        self.node.reconciler().resolve(say).await
    }

    fn status(&self) -> Status {
        self.node.status()
    }

    async fn open_attempts(&self) -> Result<Vec<Tally>, ReadError> {
        Ok(self.node.open_attempts().await?)
    }

    fn refuses(&self) -> Option<String> {
        self.node.ledger().refuses()
    }

    fn draining(&self) -> watch::Receiver<bool> {
        self.node.draining()
    }
}
