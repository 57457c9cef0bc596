//! `CancelAttempts`: many cancels, a page at a time, each a decision of its own.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tonic::Status;

use super::convert::{self, CancelMany};
use super::core::{CancelCommand, CancelResult, PlaceError};
use super::placement_service::Placement;
use super::status::{self, Reason};
use super::{page, proto};

/// Cancels of one page that are under way at once.
const AT_ONCE: usize = 16;

impl Placement {
    pub(super) async fn cancel_many(
        &self,
        message: proto::CancelAttemptsRequest,
    ) -> Result<proto::CancelAttemptsResponse, Status> {
        let many = convert::cancel_attempts(message, &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let after = if many.token.is_empty() {
            None
        } else {
            let cursor = page::page_cursor(&many.filter, &many.token);
            Some(cursor.ok_or_else(|| {
                Reason::InvalidPageToken.status("page_token is none of a cancel with this filter")
            })?)
        };
        let (found, next) = self
            .core
            .list(&many.filter, after, many.size)
            .await
            .map_err(|error| status::of_read(&error, self.limits.retry_after))?;
        let mut answer = proto::CancelAttemptsResponse {
            attempt_ids: found
                .iter()
                .map(|(attempt, _)| attempt.id.to_string())
                .collect(),
            next_page_token: next
                .map(|cursor| page::page_token(&many.filter, &cursor))
                .unwrap_or_default(),
            ..proto::CancelAttemptsResponse::default()
        };
        if many.validate_only {
            return Ok(answer);
        }
        let commands = found
            .into_iter()
            .map(|(attempt, _)| command(&many, attempt.id))
            .collect();
        for result in self.cancel_each(commands).await? {
            let count = match result {
                CancelResult::Prevented
                | CancelResult::Stopped
                | CancelResult::HungUp
                | CancelResult::Already => &mut answer.prevented_count,
                CancelResult::Pending => &mut answer.pending_count,
                CancelResult::TooLate => &mut answer.too_late_count,
            };
            *count += 1;
        }
        Ok(answer)
    }

    /// In a task of its own: a caller who goes away does not leave a page half asked. The
    /// first failure ends it; the same page again is safe.
    async fn cancel_each(&self, commands: Vec<CancelCommand>) -> Result<Vec<CancelResult>, Status> {
        let core = Arc::clone(&self.core);
        self.apart("api.cancel_many", async move {
            let done: Vec<Result<CancelResult, PlaceError>> = stream::iter(commands)
                .map(|command| {
                    let core = Arc::clone(&core);
                    async move {
                        let found = core.cancel(command).await?;
                        Ok(found.map_or(CancelResult::TooLate, |(result, ..)| result))
                    }
                })
                .buffer_unordered(AT_ONCE)
                .collect()
                .await;
            done.into_iter().collect()
        })
        .await
    }
}

fn command(many: &CancelMany, attempt: crate::model::id::AttemptId) -> CancelCommand {
    CancelCommand {
        workspace: many.filter.workspace.clone(),
        attempt,
        mode: many.mode,
        allow_missing: false,
        reason: many.reason.clone(),
        requested_by: many.requested_by.clone(),
    }
}
