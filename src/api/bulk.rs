//! `CancelAttempts`: many cancels, a page at a time, each a decision of its own.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tonic::Status;

use super::convert::{self, CancelMany};
use super::core::{CancelCommand, CancelResult, PlaceError};
use super::placement_service::Placement;
use super::status::{self, Reason};
use super::{page, proto};
use crate::model::attempt::Attempt;

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
            let would = found.iter().map(|(attempt, _)| attempt);
            answer.attempts = would.map(|a| convert::canceled_attempt(None, a)).collect();
            return Ok(answer);
        }
        let asked = found
            .into_iter()
            .map(|(attempt, _)| (command(&many, attempt.id.clone()), attempt))
            .collect();
        for (result, attempt) in self.cancel_each(asked).await? {
            let told = convert::canceled_attempt(Some(result), &attempt);
            answer.attempts.push(told);
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
    /// first failure ends it; the same page again is safe. In the order asked, each with the
    /// attempt as it stands then.
    async fn cancel_each(
        &self,
        asked: Vec<(CancelCommand, Attempt)>,
    ) -> Result<Vec<(CancelResult, Attempt)>, Status> {
        let core = Arc::clone(&self.core);
        self.apart("api.cancel_many", async move {
            let done: Vec<Result<_, PlaceError>> = stream::iter(asked)
                .map(|(command, listed)| {
                    let core = Arc::clone(&core);
                    async move {
                        let found = core.cancel(command).await?;
                        // One that is forgotten meanwhile was over.
                        Ok(
                            found.map_or((CancelResult::TooLate, listed), |(result, now, _)| {
                                (result, now)
                            }),
                        )
                    }
                })
                .buffered(AT_ONCE)
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
