//! The operations service: what a person looks at and does when something went wrong.

use std::sync::Arc;

use tokio::sync::oneshot;
use tonic::{Request, Response, Status};

use super::convert;
use super::core::Core;
use super::limits::Limits;
use super::page;
use super::proto::{self, operations_service_server::OperationsService};
use super::status::{self, Reason};
use crate::runtime::clock::Clock;
use crate::runtime::tasks::Tasks;

/// Serves `ringonce.v1.OperationsService` over a [`Core`].
#[derive(Debug)]
pub struct Operations {
    pub(super) core: Arc<dyn Core>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: Tasks,
    pub(super) limits: Limits,
}

impl Operations {
    /// Runs `work` in a task of its own, since its caller may go away at any time: what is
    /// deleted must be recorded, too.
    pub(super) async fn apart<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Status> {
        let (done, result) = oneshot::channel();
        self.tasks.spawn(name, async move {
            // Nobody may be left to hear it.
            drop(done.send(work.await));
        });
        result.await.map_err(|_| status::unknown(name))
    }
}

#[tonic::async_trait]
impl OperationsService for Operations {
    async fn list_rooms(
        &self,
        request: Request<proto::ListRoomsRequest>,
    ) -> Result<Response<proto::ListRoomsResponse>, Status> {
        let list = convert::list_rooms(request.into_inner(), &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let after = if list.token.is_empty() {
            None
        } else {
            let name = page::rooms_after(&list.filter, &list.token);
            Some(name.ok_or_else(|| {
                Reason::InvalidPageToken.status("page_token is none of a list with this filter")
            })?)
        };
        let found = self
            .core
            .rooms(&list.filter, after.as_deref(), list.size)
            .await
            .map_err(|error| {
                let health = self.core.status().platform;
                status::of_look(error, &health, self.limits.retry_after)
            })?;
        let now = self.clock.now();
        let behind = found.rooms.last().filter(|_| found.more);
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        Ok(Response::new(proto::ListRoomsResponse {
            next_page_token: behind
                .map(|room| page::rooms_token(&list.filter, &room.name))
                .unwrap_or_default(),
            rooms: found
                .rooms
                .iter()
                .map(|room| convert::room(room, now))
                .collect(),
            total_size: count(found.total),
            leak_count: count(found.leaks),
            foreign_count: count(found.foreign),
        }))
    }

    async fn delete_room(
        &self,
        request: Request<proto::DeleteRoomRequest>,
    ) -> Result<Response<proto::Room>, Status> {
        let asked = convert::delete_room(request.into_inner(), &self.limits)
            .map_err(|violations| status::invalid(&violations))?;
        let core = Arc::clone(&self.core);
        let room = self
            .apart(
                "api.delete_room",
                async move { core.delete_room(&asked).await },
            )
            .await?
            .map_err(|error| {
                let health = self.core.status().platform;
                status::of_not_deleted(error, &health, self.limits.retry_after)
            })?;
        Ok(Response::new(convert::room(&room, self.clock.now())))
    }

    async fn list_reviews(
        &self,
        request: Request<proto::ListReviewsRequest>,
    ) -> Result<Response<proto::ListReviewsResponse>, Status> {
        let found = self.listed_reviews(request.into_inner()).await?;
        Ok(Response::new(found))
    }

    async fn resolve_attempt(
        &self,
        request: Request<proto::ResolveAttemptRequest>,
    ) -> Result<Response<proto::Attempt>, Status> {
        Ok(Response::new(self.resolved(request.into_inner()).await?))
    }

    async fn resolve_attempts(
        &self,
        request: Request<proto::ResolveAttemptsRequest>,
    ) -> Result<Response<proto::ResolveAttemptsResponse>, Status> {
        let done = self.resolved_many(request.into_inner()).await?;
        Ok(Response::new(done))
    }

    async fn get_status(
        &self,
        _request: Request<proto::GetStatusRequest>,
    ) -> Result<Response<proto::ServiceStatus>, Status> {
        // A store that does not answer is no reason to hide the rest: it is asked after just
        // then.
        let open = self.core.open_attempts().await.ok();
        let status = convert::status(&self.core.status(), open.as_deref(), self.clock.now());
        Ok(Response::new(status))
    }
}
