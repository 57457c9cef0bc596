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
        value_name = "URL",
        value_parser = address
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
    let url = address(server).map_err(anyhow::Error::msg)?;
    Endpoint::from_shared(url)
        .with_context(|| format!("{server:?} is no URL, as http://127.0.0.1:7081"))?
        .connect_timeout(Duration::from_secs(5))
        // A ring is long and silent: without pings a balancer may cut it.
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .with_context(|| {
            format!(
                "cannot reach the service at {server}, so nothing was decided, and the same again \
                 is safe; see whether `ringonce serve` runs, and whether --server names the \
                 address of `grpc` in its ready line"
            )
        })
}

/// The URL of the service that a person names.
///
/// # Errors
///
/// What is wrong with it, and how it is written.
pub(super) fn address(server: &str) -> Result<String, String> {
    const FORM: &str = "write the address of `grpc` in the ready line of `ringonce serve`, as \
                        http://127.0.0.1:7081 or 127.0.0.1:7081";
    // The scheme alone would not make it so, and whoever writes it relies on it.
    if server.starts_with("https://") {
        return Err(
            "the service is asked in plain HTTP/2, without TLS; write it with http://, and reach \
             a service elsewhere through a tunnel"
                .to_owned(),
        );
    }
    let (url, has_scheme) = match server.split_once("://") {
        Some(("http", _)) => (server.to_owned(), true),
        Some((scheme, _)) => return Err(format!("{scheme}:// is not spoken here; {FORM}")),
        None => (format!("http://{server}"), false),
    };
    let authority = url
        .parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.into_parts().authority)
        .filter(|authority| !authority.host().is_empty());
    match authority {
        // A name alone is more often a word that went astray than a server at port 80.
        Some(authority) if has_scheme || authority.port_u16().is_some() => Ok(url),
        Some(_) => Err(format!("has no port; {FORM}")),
        None => Err(format!("is no address; {FORM}")),
    }
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
    ExitCode::from(exit_code(status))
}

/// The remedy that the API names is for schedulers; whoever types an id may have mistyped it.
pub(super) const NOT_FOUND: &str = "Look for a typo in the attempt's id and in --workspace: \
    `ringonce call list` shows what there is. Or --server is another deployment's, or it is so old \
    that it is forgotten (store.id_retention).";

/// Says on stderr why a call failed, and what to do: in the words of `instead` where the
/// command knows better than the API.
pub(super) fn failed_because(status: &Status, instead: impl Fn(Reason) -> Option<String>) {
    let (details, reason) = (status.get_error_details(), reason(status));
    if let Some(bad) = details.bad_request() {
        for violation in &bad.field_violations {
            let (field, fault) = (&violation.field, &violation.description);
            output::note(&format!("error: {field} {fault}"));
        }
    } else if reason == Some(Reason::AttemptNotFound) {
        // What the API says beside it is for schedulers, as its remedy is.
        output::note("error: no such attempt in this workspace");
    } else {
        output::note(&format!("error: {}", sentence(status)));
    }
    if let Some(reason) = reason {
        let remedy = instead(reason).unwrap_or_else(|| reason.remedy().to_owned());
        let after = (details.retry_info()).and_then(|retry| retry.retry_delay);
        let after = after.map_or(String::new(), retry_after);
        output::note(&format!("hint: {remedy}{after} ({})", reason.name()));
    }
}

/// Why the service says no, if it was ours that said it.
pub(super) fn reason(status: &Status) -> Option<Reason> {
    let details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain == DOMAIN)?;
    Reason::of_name(&info.reason)
}

/// ` Retry after 2 s.`, in whole seconds and at least one: nobody counts less by hand.
fn retry_after(delay: Duration) -> String {
    let seconds = delay.as_millis().div_ceil(1_000).max(1);
    format!(" Retry after {seconds} s.")
}

/// Whether the caller's deadline passed, by the service's word or by this side's own timer:
/// tonic's client says CANCELLED when that one wins.
pub(super) fn is_deadline(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded
        || status.code() == Code::Cancelled && status.message() == "Timeout expired"
}

/// Why there is no answer, as a person understands it: what the transport says of itself is
/// about streams and frames.
pub(super) fn sentence(status: &Status) -> String {
    if is_stranger(status) {
        return "what answers there is not the gRPC listener of ringonce: take the address of `grpc` \
                in the ready line of `ringonce serve` (--listen), neither that of its webhooks nor \
                LiveKit's, and plain HTTP/2 without TLS"
            .to_owned();
    }
    if is_deadline(status) && status.code() == Code::Cancelled {
        // Which reads as if somebody had canceled the call.
        return "the deadline passed; the call may go on: ask `ringonce call get`, or send the \
                same again"
            .to_owned();
    }
    let why = causes(status);
    if why.is_empty() {
        return status.message().to_owned();
    }
    format!(
        "the connection broke before there was an answer ({why}); the same again is safe, and if \
         it breaks each time, see whether ringonce listens there, and that no TLS is in between"
    )
}

/// Whether what answered is certainly no gRPC service of ours, so that nothing was decided: a
/// page of another server, or no HTTP/2 at all.
fn is_stranger(status: &Status) -> bool {
    let says = |text: &str| status.message().contains(text);
    says("mapped from HTTP status code 4")
        || says("invalid compression flag")
        || causes(status).contains("frame with invalid size")
}

/// What broke a connection, from the outside in; empty for what a service answered.
fn causes(status: &Status) -> String {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.dedup();
    causes.join(": ")
}

/// The exit code of an answer that is none of ours.
pub(super) fn exit_code(status: &Status) -> u8 {
    if is_stranger(status) {
        output::UNREACHABLE
    } else {
        code_of(status.code())
    }
}

/// What the codes mean for a script. CANCELLED, `DEADLINE_EXCEEDED` and INTERNAL say nothing
/// about what was decided; a proxy that lets nobody in has decided nothing.
const fn code_of(code: Code) -> u8 {
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
        assert_eq!(exit_code(&status), output::UNCERTAIN);
        assert_eq!(sentence(&Status::cancelled("other")), "other");
    }

    #[test]
    fn how_long_to_wait_is_told_in_seconds() {
        for (delay, said) in [
            (0, " Retry after 1 s."),
            (1_000, " Retry after 1 s."),
            (1_001, " Retry after 2 s."),
        ] {
            assert_eq!(retry_after(Duration::from_millis(delay)), said);
        }
        for reason in Reason::ALL {
            let remedy = reason.remedy();
            assert!(!remedy.contains("RetryInfo"), "{remedy}");
        }
    }

    #[test]
    fn an_address_is_a_url_or_a_host_with_its_port() {
        for (server, url) in [
            ("http://127.0.0.1:7081", "http://127.0.0.1:7081"),
            ("http://ringonce.internal", "http://ringonce.internal"),
            ("localhost:7081", "http://localhost:7081"),
            ("[::1]:7081", "http://[::1]:7081"),
        ] {
            assert_eq!(address(server).as_deref(), Ok(url), "{server}");
        }
        for server in ["", "localhost", "http://", "a b:1", "7081", "localhost:x"] {
            let wrong = address(server).unwrap_err();
            assert!(wrong.contains("http://127.0.0.1:7081"), "{server}: {wrong}");
        }
        assert!(address("https://a:1").unwrap_err().contains("without TLS"));
        assert!(
            address("grpc://a:1")
                .unwrap_err()
                .starts_with("grpc:// is not")
        );
    }

    #[test]
    fn another_server_is_not_taken_for_a_wrong_usage_nor_for_an_unknown_decision() {
        let page = "grpc-status header missing, mapped from HTTP status code 404";
        let status = Status::unimplemented(page);
        assert_eq!(exit_code(&status), output::UNREACHABLE);
        assert!(sentence(&status).contains("not the gRPC listener"));
        let ours = Status::unimplemented("an older service");
        assert_eq!(exit_code(&ours), output::USAGE);
    }
}
