//! Watches: the log of changes, read as far as the reader takes it.
//!
//! A watch has no buffer of its own but one batch: it reads the log when the transport asks
//! for more. A slow reader therefore costs nothing and skips nothing; it is ended when the
//! log is trimmed beyond it.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use tonic::Status;

use super::convert::{Watching, timestamp};
use super::core::{Changed, PageCursor, Position, ReadError};
use super::page;
use super::placement_service::Placement;
use super::proto::{self, attempt_change::Kind};
use super::status::{self, Reason};
use crate::model::attempt::Attempt;

/// Opens a watch: the snapshot if asked for, a bookmark that says that it stands, and every
/// change from there on. Ends at the caller's `deadline`, if there is one.
///
/// # Errors
///
/// The cursor is none of this workspace, or older than the log, or the store does not answer.
pub(super) async fn open(
    service: Placement,
    wanted: Watching,
    deadline: Option<Instant>,
) -> Result<impl Stream<Item = Result<proto::AttemptChange, Status>> + Send + use<>, Status> {
    let workspace = &wanted.filter.workspace;
    let retry = service.limits.retry_after;
    let place = Arc::clone(&service.watches)
        .try_acquire_owned()
        .map_err(|_| status::watches_full(service.limits.watches_max, retry))?;
    // Subscribed before the first read, so that no commit falls between the two.
    let signal = service.core.changes_signal();
    let after = if wanted.after.is_empty() {
        let end = service.core.log_end(workspace).await;
        end.map_err(|error| status::of_read(&error, retry))?
    } else {
        let position = page::watch_position(workspace, &wanted.after).ok_or_else(|| {
            Reason::InvalidCursor.status("after is no cursor of this workspace's watches")
        })?;
        // Asked once here: a cursor that is too old is the caller's to mend, while one that
        // becomes so later is a reader that lagged.
        match service.core.changes(workspace, position, 1).await {
            Ok(_) => position,
            Err(ReadError::TooOld { oldest }) => {
                let oldest = page::watch_cursor(workspace, oldest);
                let message = "the log no longer has what follows the cursor";
                let metadata = [("oldest_cursor", oldest)];
                return Err(Reason::CursorTooOld.with(message, metadata, |_| {}));
            }
            Err(error @ (ReadError::StoreUnavailable | ReadError::Internal)) => {
                return Err(status::of_read(&error, retry));
            }
        }
    };
    let watch = Watch {
        snapshot: if wanted.snapshot {
            Snapshot::Begins
        } else {
            Snapshot::Done
        },
        closing: service.closing.clone(),
        service,
        wanted,
        after,
        signal,
        ready: VecDeque::new(),
        // The first one comes at once.
        bookmark: Instant::now(),
        deadline,
        _place: place,
    };
    Ok(stream::unfold(Some(watch), |watch| async {
        let mut watch = watch?;
        match watch.next().await {
            Ok(change) => Some((Ok(change), Some(watch))),
            Err(status) => Some((Err(status), None)),
        }
    }))
}

/// How far the snapshot has come.
#[derive(Debug)]
enum Snapshot {
    Begins,
    Behind(PageCursor),
    Done,
}

#[derive(Debug)]
struct Watch {
    service: Placement,
    wanted: Watching,
    snapshot: Snapshot,
    /// Everything up to here is in `ready` or was sent.
    after: Position,
    ready: VecDeque<proto::AttemptChange>,
    signal: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    bookmark: Instant,
    deadline: Option<Instant>,
    /// Counts it among those that are open.
    _place: OwnedSemaphorePermit,
}

impl Watch {
    async fn next(&mut self) -> Result<proto::AttemptChange, Status> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            if *self.closing.borrow() {
                return Err(self.ended(Reason::Draining, "this process is shutting down"));
            }
            if self
                .deadline
                .is_some_and(|deadline| deadline <= Instant::now())
            {
                return Err(self.ended(Reason::DeadlineExceeded, "the deadline passed"));
            }
            if self.read_snapshot().await? {
                continue;
            }
            // Marked as seen before the read: a commit after it wakes us again.
            self.signal.mark_unchanged();
            if self.read_changes().await? {
                continue;
            }
            if self.bookmark <= Instant::now() {
                self.bookmark = Instant::now() + self.service.limits.bookmark_every;
                return Ok(proto::AttemptChange {
                    cursor: self.cursor(self.after),
                    kind: Kind::Bookmark.into(),
                    ..proto::AttemptChange::default()
                });
            }
            self.rest().await;
        }
    }

    /// Waits for a commit, a bookmark's time, the deadline or the end.
    async fn rest(&mut self) {
        let until = self
            .deadline
            .map_or(self.bookmark, |at| at.min(self.bookmark));
        let changed = async {
            if self.signal.changed().await.is_err() {
                // The core is gone; the end comes by `closing`.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            _ = self.closing.wait_for(|closing| *closing) => {}
            () = changed => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// Reads a page of the snapshot; whether there was one to read.
    async fn read_snapshot(&mut self) -> Result<bool, Status> {
        let core = &self.service.core;
        let filter = &self.wanted.filter;
        let after = match std::mem::replace(&mut self.snapshot, Snapshot::Done) {
            Snapshot::Done => return Ok(false),
            Snapshot::Begins => None,
            Snapshot::Behind(cursor) => Some(cursor),
        };
        let (found, next) = match &self.wanted.attempt {
            Some(id) => {
                let found = core.attempt(&filter.workspace, id).await;
                (
                    found.map_err(|e| self.failed(&e))?.into_iter().collect(),
                    None,
                )
            }
            None => core
                .list(filter, after, self.service.limits.watch_batch)
                .await
                .map_err(|e| self.failed(&e))?,
        };
        let wanted = found.iter().filter(|(attempt, _)| self.wants(attempt));
        let changes: Vec<_> = wanted
            .map(|(attempt, version)| proto::AttemptChange {
                kind: Kind::Snapshot.into(),
                attempt: Some(self.service.present(attempt, *version)),
                time: Some(timestamp(attempt.since)),
                ..proto::AttemptChange::default()
            })
            .collect();
        self.ready.extend(changes);
        if let Some(cursor) = next {
            self.snapshot = Snapshot::Behind(cursor);
        }
        Ok(true)
    }

    /// Reads a batch of changes; whether the log went further.
    async fn read_changes(&mut self) -> Result<bool, Status> {
        let workspace = &self.wanted.filter.workspace;
        let batch = self.service.limits.watch_batch;
        let changes = self
            .service
            .core
            .changes(workspace, self.after, batch)
            .await
            .map_err(|error| self.failed(&error))?;
        let further = changes.upto > self.after;
        self.after = self.after.max(changes.upto);
        for change in &changes.list {
            if self.wants(&change.attempt) {
                let out = self.change(change);
                self.ready.push_back(out);
            }
        }
        Ok(further)
    }

    fn change(&self, change: &Changed) -> proto::AttemptChange {
        let Position { version, .. } = change.position;
        proto::AttemptChange {
            cursor: self.cursor(change.position),
            kind: Kind::Change.into(),
            attempt: Some(self.service.present(&change.attempt, version)),
            cause: change.cause.name().to_owned(),
            time: Some(timestamp(change.at)),
        }
    }

    fn wants(&self, attempt: &Attempt) -> bool {
        let id = self.wanted.attempt.as_ref();
        id.is_none_or(|id| *id == attempt.id) && self.wanted.filter.shows(attempt)
    }

    fn cursor(&self, position: Position) -> String {
        page::watch_cursor(&self.wanted.filter.workspace, position)
    }

    /// Ended by us, with the last cursor.
    fn ended(&self, reason: Reason, message: &'static str) -> Status {
        let metadata = [("cursor", self.cursor(self.after))];
        let retry = self.service.limits.retry_after;
        reason.with(message, metadata, |details| {
            if reason == Reason::Draining {
                details.set_retry_info(Some(retry));
            }
        })
    }

    fn failed(&self, error: &ReadError) -> Status {
        match error {
            ReadError::TooOld { .. } => self.ended(
                Reason::WatchLagged,
                "the watch was read too slowly, and the log no longer has what follows",
            ),
            ReadError::StoreUnavailable | ReadError::Internal => {
                status::of_read(error, self.service.limits.retry_after)
            }
        }
    }
}
