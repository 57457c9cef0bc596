//! Reviews over the API: a person reads what evidence could not settle, and says what became
//! of it.

use std::sync::Arc;

use tonic::Status;

use super::convert::{self, ListReviews};
use super::core::{NotResolved, PageCursor, Resolve, Reviews, Version};
use super::operations_service::Operations;
use super::status::{self, Reason};
use super::{page, proto};
use crate::model::attempt::Attempt;

impl Operations {
    fn present(&self, attempt: &Attempt, version: Version) -> proto::Attempt {
        convert::attempt(attempt, version, self.clock.now(), &self.limits)
    }

    async fn reviews(&self, list: &ListReviews) -> Result<(Reviews, String), Status> {
        let scope = (&list.workspace, list.cause);
        let after: Option<PageCursor> = if list.token.is_empty() {
            None
        } else {
            Some(page::review_cursor(scope, &list.token).ok_or_else(|| {
                Reason::InvalidPageToken.status("page_token is none of a list with this filter")
            })?)
        };
        let found = self
            .core
            .reviews(&list.workspace, list.cause, after, list.size)
            .await
            .map_err(|error| status::of_read(&error, self.limits.retry_after))?;
        let token = found
            .next
            .as_ref()
            .map(|next| page::review_token(scope, next));
        Ok((found, token.unwrap_or_default()))
    }

    pub(super) async fn listed_reviews(
        &self,
        message: proto::ListReviewsRequest,
    ) -> Result<proto::ListReviewsResponse, Status> {
        let list = convert::list_reviews(message, &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let (found, next_page_token) = self.reviews(&list).await?;
        Ok(proto::ListReviewsResponse {
            groups: found.groups.iter().map(convert::review_group).collect(),
            attempts: found
                .attempts
                .iter()
                .map(|(attempt, version)| self.present(attempt, *version))
                .collect(),
            next_page_token,
        })
    }

    pub(super) async fn resolved(
        &self,
        message: proto::ResolveAttemptRequest,
    ) -> Result<proto::Attempt, Status> {
        let say = convert::resolve_attempt(message, &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let core = Arc::clone(&self.core);
        let (attempt, version) = self
            .apart("api.resolve", async move { core.resolve(&say).await })
            .await?
            .map_err(|error| status::of_not_resolved(error, self.limits.retry_after))?;
        Ok(self.present(&attempt, version))
    }

    pub(super) async fn resolved_many(
        &self,
        message: proto::ResolveAttemptsRequest,
    ) -> Result<proto::ResolveAttemptsResponse, Status> {
        let many = convert::resolve_attempts(message, &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let (found, next_page_token) = self.reviews(&many.list).await?;
        let attempts = found.attempts.into_iter().map(|(attempt, _)| attempt);
        let says: Vec<Resolve> = attempts
            // What rang was dialed, whatever is said of the others.
            .filter(|attempt| many.resolution.may_be(attempt))
            .map(|attempt| Resolve {
                workspace: many.list.workspace.clone(),
                attempt: attempt.id,
                resolution: many.resolution,
                reason: many.reason.clone(),
                by: many.by.clone(),
            })
            .collect();
        let named = |says: &[Resolve]| says.iter().map(|say| say.attempt.to_string()).collect();
        if many.validate_only {
            return Ok(proto::ResolveAttemptsResponse {
                attempt_ids: named(&says),
                next_page_token,
            });
        }
        let core = Arc::clone(&self.core);
        let done = self
            .apart("api.resolve_many", async move {
                let mut done = Vec::new();
                for say in says {
                    match core.resolve(&say).await {
                        Ok(_) => done.push(say),
                        // Evidence came first, or another person.
                        Err(
                            NotResolved::NotInReview(_) | NotResolved::NotFound | NotResolved::Rang,
                        ) => {}
                        Err(error @ NotResolved::Ledger(_)) => return Err(error),
                    }
                }
                Ok(done)
            })
            .await?
            .map_err(|error| status::of_not_resolved(error, self.limits.retry_after))?;
        Ok(proto::ResolveAttemptsResponse {
            attempt_ids: named(&done),
            next_page_token,
        })
    }
}
