//! The command line as a client of the service.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::output::{self, Output};
use crate::api::proto::operations_service_client::OperationsServiceClient;
use crate::api::{DOMAIN, Reason};

/// Larger than the service's largest answer.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// Where the service is, how long to wait for it, and how to print what it says.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Connection {
    /// The service.
    #[arg(
        long,
        env = "RINGONCE_SERVER",
        default_value = "http://127.0.0.1:7081",
        value_name = "URL"
    )]
    pub(super) server: String,
    /// The longest wait for an answer; the call itself goes on when it passes.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) deadline: Option<Duration>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: Output,
}

impl Connection {
    pub(super) async fn operations(&self) -> anyhow::Result<OperationsServiceClient<Channel>> {
        let channel = channel(&self.server).await?;
        Ok(OperationsServiceClient::new(channel).max_decoding_message_size(ANSWER_MAX))
    }

    pub(super) async fn placement(&self) -> anyhow::Result<Client> {
        let channel = channel(&self.server).await?;
        let client = Client::new(channel)
            .max_decoding_message_size(ANSWER_MAX)
            .max_encoding_message_size(ANSWER_MAX);
        Ok(client)
    }

    /// A request with the deadline that was asked for, or else `default`.
    pub(super) fn request<M>(&self, message: M, default: Option<Duration>) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(deadline) = self.deadline.or(default) {
            request.set_timeout(deadline);
        }
        request
    }
}

/// A client of the placement service.
pub(super) type Client =
    crate::api::proto::placement_service_client::PlacementServiceClient<Channel>;

/// A connection to the service at `server`: a URL, or `HOST:PORT` as the service's ready line
/// has it.
pub(super) async fn channel(server: &str) -> anyhow::Result<Channel> {
    let url = if server.contains("://") {
        server.to_owned()
    } else {
        format!("http://{server}")
    };
    Endpoint::from_shared(url)
        .with_context(|| format!("{server:?} is no URL, as http://127.0.0.1:7081"))?
        .connect_timeout(Duration::from_secs(5))
        // A ring is long and silent: without pings a balancer may cut it.
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .with_context(|| format!("cannot reach the service at {server}"))
}

/// Why there is no answer.
pub(super) enum Failed {
    /// The service said no, or could not be reached: said on stderr already.
    Said(ExitCode),
    /// The output could not be written.
    Output(anyhow::Error),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self::Said(failed(&status))
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}

/// Says on stderr why a call failed and what to do, and gives the exit code.
pub(super) fn failed(status: &Status) -> ExitCode {
    failed_because(status, |reason| {
        (reason == Reason::AttemptNotFound).then(|| NOT_FOUND.to_owned())
    });
    ExitCode::from(exit_code(status.code()))
}

/// The remedy that the API names is for schedulers; whoever types an id may have mistyped it.
pub(super) const NOT_FOUND: &str = "Look for a typo in the attempt's id and in --workspace: \
    `ringonce call list` shows what there is.";

/// Says on stderr why a call failed, and what to do: in the words of `instead` where the
/// command knows better than the API.
pub(super) fn failed_because(status: &Status, instead: impl Fn(Reason) -> Option<String>) {
    let details = status.get_error_details();
    if let Some(bad) = details.bad_request() {
        for violation in &bad.field_violations {
            let (field, fault) = (&violation.field, &violation.description);
            output::note(&format!("error: {field} {fault}"));
        }
    } else {
        output::note(&format!("error: {}", sentence(status)));
    }
    let remedy = details
        .error_info()
        .filter(|info| info.domain == DOMAIN)
        .and_then(|info| Reason::of_name(&info.reason));
    if let Some(reason) = remedy {
        let remedy = instead(reason).unwrap_or_else(|| reason.remedy().to_owned());
        output::note(&format!("hint: {remedy} ({})", reason.name()));
    }
}

/// tonic's client says CANCELLED when its own timer wins, which reads as if somebody had
/// canceled the call.
fn sentence(status: &Status) -> &str {
    if status.code() == Code::Cancelled && status.message() == "Timeout expired" {
        "the deadline passed; the call may go on: ask `ringonce call get`, or send the same again"
    } else {
        status.message()
    }
}

/// What the codes mean for a script. CANCELLED, `DEADLINE_EXCEEDED` and INTERNAL say nothing
/// about what was decided; a proxy that lets nobody in has decided nothing.
pub(super) const fn exit_code(code: Code) -> u8 {
    match code {
        Code::Ok => output::DONE,
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => output::USAGE,
        Code::NotFound | Code::FailedPrecondition => output::FAILED,
        Code::Unavailable
        | Code::ResourceExhausted
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Aborted => output::UNREACHABLE,
        Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::DataLoss => output::UNCERTAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_own_timeout_is_told_as_what_it_is() {
        let status = Status::cancelled("Timeout expired");
        assert!(sentence(&status).starts_with("the deadline passed; the call may go on"));
        assert_eq!(exit_code(status.code()), output::UNCERTAIN);
        assert_eq!(sentence(&Status::cancelled("other")), "other");
    }
}
