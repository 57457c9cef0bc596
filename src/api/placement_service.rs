//! The placement service: parse, ask the core, wait if that was asked, answer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use prost::Message;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use tonic::{Extensions, Request, Response, Status};

use super::convert;
use super::core::{CancelResult, Core, Filter, PageCursor, PlaceError, Version};
use super::deadline::Deadline;
use super::limits::Limits;
use super::proto::{self, placement_service_server::PlacementService};
use super::status::{self, Reason};
use super::{page, watch as watching};
use crate::model::attempt::{Attempt, State};
use crate::runtime::clock::Clock;
use crate::runtime::tasks::Tasks;

/// Serves `ringonce.v1.PlacementService` over a [`Core`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Placement {
    pub(super) core: Arc<dyn Core>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: Tasks,
    pub(super) limits: Arc<Limits>,
    /// A permit for each watch that may be open.
    pub(super) watches: Arc<Semaphore>,
    /// Turns true when this server takes leave: whoever waits is answered then.
    pub(super) closing: watch::Receiver<bool>,
}

impl Placement {
    pub(super) fn present(&self, attempt: &Attempt, version: Version) -> proto::Attempt {
        let now = self.clock.now();
        let mut shown = convert::attempt(attempt, version, now, &self.limits);
        if self.core.is_of_another_history(attempt) {
            convert::of_another_history(&mut shown, attempt, now);
        }
        shown
    }

    /// The same, and of one that waits for another attempt where that one stands: a second
    /// read, which lists and watches spare. One that fails leaves the answer as it is.
    pub(super) async fn present_whole(&self, found: &(Attempt, Version)) -> proto::Attempt {
        let (attempt, version) = found;
        let mut shown = self.present(attempt, *version);
        // Of what is distrusted no holder lets it pass.
        let trusted = !self.core.is_of_another_history(attempt);
        let waiting = attempt.waiting.as_ref().filter(|_| trusted);
        if let Some(holder) = waiting.and_then(|waiting| waiting.reason.holder.as_ref())
            && let Ok(Some((holder, _))) = self.core.attempt(&attempt.workspace, holder).await
        {
            convert::of_holder(&mut shown, &holder, self.limits.review_hold);
        }
        shown
    }

    /// Runs `work` in a task of its own, since its caller may go away at any time: tonic
    /// drops the handler then, and a decision must not be cut in half.
    pub(super) async fn apart<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, PlaceError>> + Send + 'static,
    ) -> Result<T, Status> {
        let (done, result) = oneshot::channel();
        self.tasks.spawn(name, async move {
            // Nobody may be left to hear it.
            drop(done.send(work.await));
        });
        // The task panicked or was ended: what it did is not known.
        result
            .await
            .unwrap_or(Err(PlaceError::DecisionUnknown))
            .map_err(|error| status::of_place(&error, self.limits.retry_after))
    }

    /// When a wait ends: shortly before its caller's deadline.
    fn wait_until(&self, extensions: &Extensions, asked: Option<Duration>) -> Instant {
        let now = Instant::now();
        let before = |at: Instant| at.checked_sub(self.limits.wait_margin).unwrap_or(now);
        let end = extensions.get::<Deadline>().map_or(
            now + self.limits.wait_without_deadline,
            |deadline| match deadline.of_caller() {
                Some(_) => before(deadline.of_answer()),
                None => before(deadline.of_answer()).min(now + self.limits.wait_without_deadline),
            },
        );
        asked
            .and_then(|span| now.checked_add(span))
            .map_or(end, |at| end.min(at))
    }

    /// Follows an attempt until it is `over`, `until` passes or the server takes leave. A
    /// store that fails meanwhile is no error: what was decided is known.
    async fn follow(
        &self,
        found: (Attempt, Version),
        until: Instant,
        over: impl Fn(&Attempt) -> bool,
    ) -> (Attempt, Version) {
        let (mut attempt, mut version) = found;
        let mut closing = self.closing.clone();
        while !over(&attempt) {
            let newer = tokio::select! {
                biased;
                newer = self.core.changed(&attempt.workspace, &attempt.id, version) => newer,
                () = tokio::time::sleep_until(until) => break,
                _ = closing.wait_for(|closing| *closing) => break,
            };
            match newer {
                Some(newer) => (attempt, version) = newer,
                None => break,
            }
        }
        (attempt, version)
    }

    async fn place(
        &self,
        message: proto::PlaceCallRequest,
        until: Instant,
    ) -> Result<proto::Attempt, Status> {
        let waits = message.wait() == proto::Wait::DialOver;
        let request = convert::place_call(message, &self.limits.request, self.clock.now())
            .map_err(|violations| status::invalid(&violations))?;
        let core = Arc::clone(&self.core);
        let placing = async move { core.place(request).await };
        let mut found = self.apart("api.place", placing).await?;
        if waits {
            found = self.follow(found, until, dial_over).await;
        }
        Ok(self.present_whole(&found).await)
    }

    /// A page of at most `size` attempts, and of fewer if it would be too large: clients
    /// refuse large messages, and histories and labels differ much in size.
    async fn page(
        &self,
        filter: &Filter,
        after: Option<PageCursor>,
        mut size: usize,
    ) -> Result<proto::ListAttemptsResponse, Status> {
        loop {
            let (found, next) = self
                .core
                .list(filter, after.clone(), size)
                .await
                .map_err(|error| status::of_read(&error, self.limits.retry_after))?;
            let page = proto::ListAttemptsResponse {
                attempts: found
                    .iter()
                    .map(|(attempt, version)| self.present(attempt, *version))
                    .collect(),
                next_page_token: next
                    .map(|cursor| page::page_token(filter, &cursor))
                    .unwrap_or_default(),
            };
            if page.encoded_len() <= self.limits.page_bytes || size <= 1 {
                return Ok(page);
            }
            size /= 2;
        }
    }

    async fn cancel(
        &self,
        message: proto::CancelAttemptRequest,
        until: Instant,
    ) -> Result<proto::CancelAttemptResponse, Status> {
        let command = convert::cancel_attempt(message, &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let core = Arc::clone(&self.core);
        let canceling = async move { core.cancel(command).await };
        let (mut result, attempt, version) = self
            .apart("api.cancel", canceling)
            .await?
            .ok_or_else(status::not_found)?;
        let mut found = (attempt, version);
        if result == CancelResult::Pending {
            found = self
                .follow(found, until, |attempt| {
                    // In review it waits for a person, who is not waited for.
                    CancelResult::of(attempt) != CancelResult::Pending
                        || attempt.state == State::NeedsReview
                })
                .await;
            result = CancelResult::of(&found.0);
        }
        Ok(proto::CancelAttemptResponse {
            result: convert::cancel_result(result, &found.0).into(),
            already: result == CancelResult::Already,
            attempt: Some(self.present_whole(&found).await),
        })
    }
}

/// Whether no dial is to come or under way.
fn dial_over(attempt: &Attempt) -> bool {
    match attempt.state {
        State::Queued | State::Reserved | State::Dialing => false,
        State::Deferred
        | State::Refused
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::NeedsReview
        | State::Canceled => true,
    }
}

#[tonic::async_trait]
impl PlacementService for Placement {
    async fn place_call(
        &self,
        request: Request<proto::PlaceCallRequest>,
    ) -> Result<Response<proto::Attempt>, Status> {
        let until = self.wait_until(request.extensions(), None);
        let attempt = self.place(request.into_inner(), until).await?;
        Ok(Response::new(attempt))
    }

    async fn get_attempt(
        &self,
        request: Request<proto::GetAttemptRequest>,
    ) -> Result<Response<proto::Attempt>, Status> {
        let (_, extensions, message) = request.into_parts();
        let get =
            convert::get_attempt(message).map_err(|violations| status::invalid(&violations))?;
        let mut found = self
            .core
            .attempt(&get.workspace, &get.attempt)
            .await
            .map_err(|error| status::of_read(&error, self.limits.retry_after))?
            .ok_or_else(status::not_found)?;
        if get.wait == proto::Wait::DialOver {
            let until = self.wait_until(&extensions, get.wait_timeout);
            found = self.follow(found, until, dial_over).await;
        }
        Ok(Response::new(self.present_whole(&found).await))
    }

    async fn list_attempts(
        &self,
        request: Request<proto::ListAttemptsRequest>,
    ) -> Result<Response<proto::ListAttemptsResponse>, Status> {
        let list = convert::list_attempts(request.into_inner(), &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let after = if list.token.is_empty() {
            None
        } else {
            let cursor = page::page_cursor(&list.filter, &list.token);
            Some(cursor.ok_or_else(|| {
                Reason::InvalidPageToken.status("page_token is none of a list with this filter")
            })?)
        };
        let page = self.page(&list.filter, after, list.size).await?;
        Ok(Response::new(page))
    }

    type WatchAttemptsStream =
        Pin<Box<dyn Stream<Item = Result<proto::AttemptChange, Status>> + Send>>;

    async fn watch_attempts(
        &self,
        request: Request<proto::WatchAttemptsRequest>,
    ) -> Result<Response<Self::WatchAttemptsStream>, Status> {
        let (_, extensions, message) = request.into_parts();
        let wanted =
            convert::watch_attempts(message).map_err(|violations| status::invalid(&violations))?;
        let deadline = extensions.get::<Deadline>().and_then(Deadline::of_caller);
        let stream = watching::open(self.clone(), wanted, deadline).await?;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn cancel_attempt(
        &self,
        request: Request<proto::CancelAttemptRequest>,
    ) -> Result<Response<proto::CancelAttemptResponse>, Status> {
        let until = self.wait_until(request.extensions(), Some(self.limits.cancel_wait));
        let response = self.cancel(request.into_inner(), until).await?;
        Ok(Response::new(response))
    }

    async fn cancel_attempts(
        &self,
        request: Request<proto::CancelAttemptsRequest>,
    ) -> Result<Response<proto::CancelAttemptsResponse>, Status> {
        let response = self.cancel_many(request.into_inner()).await?;
        Ok(Response::new(response))
    }
}
