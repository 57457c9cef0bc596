//! `ringonce healthcheck`: asks `grpc.health.v1`, for containers and scripts.

use std::process::ExitCode;
use std::time::Duration;

use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::client;
use super::output;

/// `ringonce healthcheck …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The service.
    #[arg(
        long,
        env = "RINGONCE_SERVER",
        default_value = "http://127.0.0.1:7081",
        value_name = "URL"
    )]
    server: String,
    /// One of its services, as ringonce.v1.PlacementService; the whole if empty.
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    service: String,
    /// The longest wait for an answer.
    #[arg(long, default_value = "3s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

/// Asks once: 0 if it serves, 1 if it says that it does not, 5 if it cannot be asked.
///
/// # Errors
///
/// The output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let asking = ask(&args.server, args.service);
    let answer = match tokio::time::timeout(args.timeout, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(anyhow::anyhow!("no answer within {:?}", args.timeout)),
    };
    let (code, text) = match answer {
        Ok(ServingStatus::Serving) => (output::DONE, "SERVING"),
        Ok(ServingStatus::NotServing) => (output::FAILED, "NOT_SERVING"),
        Ok(ServingStatus::Unknown | ServingStatus::ServiceUnknown) => {
            (output::FAILED, "SERVICE_UNKNOWN")
        }
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            return Ok(ExitCode::from(output::UNREACHABLE));
        }
    };
    if text == "NOT_SERVING" {
        output::note(
            "note: it drains, or its store takes nothing: `ringonce status` and the log \
             (health.not_serving, drain.begun) say which",
        );
    }
    output::write(format!("{text}\n").as_bytes())?;
    Ok(ExitCode::from(code))
}

async fn ask(server: &str, service: String) -> anyhow::Result<ServingStatus> {
    let mut client = HealthClient::new(client::channel(server).await?);
    match client
        .check(Request::new(HealthCheckRequest { service }))
        .await
    {
        Ok(response) => Ok(response.into_inner().status()),
        Err(status) if status.code() == Code::NotFound => Ok(ServingStatus::ServiceUnknown),
        Err(status) => Err(anyhow::anyhow!(client::sentence(&status))),
    }
}
