//! The worker that asks `ringonce`: a `serve` process, killed and started again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Held, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tonic::Request;
use tonic::transport::Channel;

use super::queue::{Heard, Seen, Worker};
use super::script::{Call, Scene, WORKSPACE};
use crate::api::proto::attempt::{Disposition, State};
use crate::api::{proto, timestamp};
use crate::lab::stack::{Error, Folder, Program, Serve, ServeSetup};
use crate::model::time::Time;
use crate::runtime::clock::Clock;

type Client = proto::placement_service_client::PlacementServiceClient<Channel>;

/// How long a delivery waits for the end of its dial: longer than any ringing here.
const WAIT: Duration = Duration::from_secs(25);
/// How long a look may take.
const LOOK: Duration = Duration::from_secs(5);

/// A `serve` and a client of it.
#[derive(Debug)]
pub(super) struct Ours {
    program: Program,
    folder: Arc<Folder>,
    setup: ServeSetup,
    serve: Mutex<Serve>,
    client: Held<Option<Client>>,
    /// When the campaign was decided on: the same in every delivery.
    intended: Time,
}

impl Ours {
    /// Starts the server.
    pub(super) async fn start(
        program: Program,
        folder: Arc<Folder>,
        setup: ServeSetup,
        clock: &dyn Clock,
    ) -> Result<Self, Error> {
        let serve = Serve::start(&program, &folder, &setup).await?;
        let client = Client::new(serve.channel().await?);
        Ok(Self {
            program,
            folder,
            setup,
            serve: Mutex::new(serve),
            client: Held::new(Some(client)),
            intended: clock.now(),
        })
    }

    /// Ends the server in order.
    pub(super) async fn end(&self) -> Result<(), Error> {
        let mut serve = self.serve.lock().await;
        serve.process().terminate()?;
        serve.process().wait().await.map(drop)
    }

    fn client(&self) -> Option<Client> {
        self.held().clone()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Worker for Ours {
    /// What a queue consumer is told to do: acknowledge or repeat by `next`, and repeat
    /// whatever was not decided.
    async fn deliver(&self, call: &Call) -> Heard {
        let Some(mut client) = self.client() else {
            return Heard::Failed;
        };
        let mut request = Request::new(self.request(call));
        request.set_timeout(WAIT);
        match client.place_call(request).await {
            Ok(attempt) if attempt.get_ref().next() == proto::attempt::Next::Ack => Heard::Ack,
            Ok(_) | Err(_) => Heard::Failed,
        }
    }

    async fn cancel(&self, call: &Call) -> Heard {
        let Some(mut client) = self.client() else {
            return Heard::Failed;
        };
        let request = proto::CancelAttemptRequest {
            workspace: WORKSPACE.to_owned(),
            attempt_id: call.id.clone(),
            mode: proto::cancel_attempt_request::Mode::StopRinging.into(),
            requested_by: "demo".to_owned(),
            ..proto::CancelAttemptRequest::default()
        };
        match client.cancel_attempt(request).await {
            Ok(_) => Heard::Ack,
            Err(_) => Heard::Failed,
        }
    }

    async fn kill(&self) -> Result<(), Error> {
        self.serve.lock().await.process().kill().await?;
        *self.held() = None;
        Ok(())
    }

    async fn restart(&self) -> Result<(), Error> {
        let mut serve = self.serve.lock().await;
        *serve = Serve::start(&self.program, &self.folder, &self.setup).await?;
        let client = Client::new(serve.channel().await?);
        *self.held() = Some(client);
        Ok(())
    }

    async fn look(&self) -> Option<BTreeMap<String, Seen>> {
        let mut client = self.client()?;
        let mut request = Request::new(proto::ListAttemptsRequest {
            workspace: WORKSPACE.to_owned(),
            page_size: 1_000,
            ..proto::ListAttemptsRequest::default()
        });
        request.set_timeout(LOOK);
        let listed = client.list_attempts(request).await.ok()?.into_inner();
        let seen = listed.attempts.into_iter();
        Some(seen.map(|a| (a.attempt_id.clone(), seen_of(&a))).collect())
    }
}

impl Ours {
    fn request(&self, call: &Call) -> proto::PlaceCallRequest {
        let two = call.scene == Scene::TwoCampaigns;
        let campaign = if two { &call.id } else { "main" };
        proto::PlaceCallRequest {
            workspace: WORKSPACE.to_owned(),
            attempt_id: call.id.clone(),
            contact_id: call.contact.clone(),
            outreach_id: call.id.clone(),
            campaign_id: campaign.to_owned(),
            to: call.to.clone(),
            intend_time: Some(timestamp(self.intended)),
            wait: proto::Wait::DialOver.into(),
            agent: Some(proto::Agent {
                name: call.agent.to_owned(),
                join_timeout: call.join_timeout.map(pbjson_types::Duration::from),
                ..proto::Agent::default()
            }),
            ..proto::PlaceCallRequest::default()
        }
    }
}

fn seen_of(attempt: &proto::Attempt) -> Seen {
    let state = attempt.state();
    let mut kept: Vec<String> = attempt
        .history
        .iter()
        .filter(|change| change.to() == State::Queued)
        .map(|change| change.cause.clone())
        .collect();
    kept.sort();
    kept.dedup();
    Seen {
        word: word(attempt),
        why: attempt.explanation.clone(),
        over: state.is_over(),
        failed: false,
        uncertain: matches!(state, State::Uncertain | State::NeedsReview),
        dialed: attempt
            .attempt_marker_time
            .map(|at| Time::from_micros(at.seconds * 1_000_000 + i64::from(at.nanos / 1_000))),
        kept,
    }
}

/// `no answer`, `queued: contact reserved`.
fn word(attempt: &proto::Attempt) -> String {
    let state = attempt.state().as_str_name().trim_start_matches("STATE_");
    let name = match attempt.state() {
        State::Answered => "TALKING",
        State::Ended => "ANSWERED",
        State::Uncertain => "UNCERTAIN,_LEFT_ALONE",
        State::NotDialed if attempt.disposition() == Disposition::AgentUnavailable => "NO_AGENT",
        State::NotConnected | State::NotDialed => attempt
            .disposition()
            .as_str_name()
            .trim_start_matches("DISPOSITION_"),
        State::Queued | State::Deferred | State::Refused => match &attempt.reason {
            Some(reason) => reason.rule.as_str(),
            None => state,
        },
        State::Unspecified
        | State::Reserved
        | State::Dialing
        | State::NeedsReview
        | State::Canceled => state,
    };
    name.replace('_', " ").to_lowercase()
}
