//! `ringonce review list|show|resolve`.

mod flags;
mod text;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use tonic::transport::Channel;

use super::client::{Connection, Failed};
use super::output::{self, DONE, UNREACHABLE};
use crate::api::proto;
use crate::api::proto::operations_service_client::OperationsServiceClient;
use flags::{GroupBy, List, Resolve, Show};

/// Until when an answer should have come: reviews are counted for it.
const AT_ONCE: Duration = Duration::from_secs(30);
/// A page of them is a commit each.
const MANY: Duration = Duration::from_mins(2);
/// The most that one answer has.
const PAGE: usize = 1000;

type Client = OperationsServiceClient<Channel>;

/// `ringonce review …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Lists what evidence could not settle, oldest first, or counts it by cause.
    List(List),
    /// Shows one attempt with all that is known of it.
    Show(Show),
    /// Says what became of one attempt, or of all that have one cause.
    Resolve(Resolve),
}

/// Runs one of them.
///
/// # Errors
///
/// The output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.act {
        Act::List(args) => list(args).await,
        Act::Show(args) => show(args).await,
        Act::Resolve(args) => resolve(args).await,
    };
    match done {
        Ok(()) => Ok(ExitCode::from(DONE)),
        Err(Failed::Said(code)) => Ok(code),
        Err(Failed::Output(error)) => Err(error),
    }
}

async fn connect(connection: &Connection) -> Result<Client, Failed> {
    connection.operations().await.map_err(|error| {
        output::note(&format!("error: {error:#}"));
        Failed::Said(ExitCode::from(UNREACHABLE))
    })
}

async fn list(args: List) -> Result<(), Failed> {
    let mut client = connect(&args.connection).await?;
    let printer = args.connection.output;
    let mut message = proto::ListReviewsRequest {
        workspace: args.workspace,
        cause: args.cause,
        page_size: 0,
        page_token: String::new(),
    };
    if args.group_by == Some(GroupBy::Cause) {
        message.page_size = 1;
        let request = args.connection.request(message.clone(), Some(AT_ONCE));
        let found = client.list_reviews(request).await?.into_inner();
        for group in &found.groups {
            printer.print(group, text::group_line)?;
        }
        if found.groups.is_empty() {
            output::note(&text::nothing(&message.workspace));
        }
        return Ok(());
    }
    let (mut left, mut all) = (args.limit, 0);
    while left > 0 {
        message.page_size = i32::try_from(left.min(PAGE)).unwrap_or(i32::MAX);
        let request = args.connection.request(message.clone(), Some(AT_ONCE));
        let page = client.list_reviews(request).await?.into_inner();
        for attempt in page.attempts.iter().take(left) {
            printer.print(attempt, text::review_line)?;
        }
        left = left.saturating_sub(page.attempts.len());
        all += page.attempts.len();
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    if all == 0 && args.limit > 0 {
        output::note(&text::nothing(&message.workspace));
    }
    Ok(())
}

async fn show(args: Show) -> Result<(), Failed> {
    let mut client = args.connection.placement().await.map_err(|error| {
        output::note(&format!("error: {error:#}"));
        Failed::Said(ExitCode::from(UNREACHABLE))
    })?;
    let message = proto::GetAttemptRequest {
        workspace: args.workspace,
        attempt_id: args.which.id(),
        wait: proto::Wait::Accepted.into(),
        wait_timeout: None,
    };
    let request = args.connection.request(message, Some(AT_ONCE));
    let attempt = client.get_attempt(request).await?.into_inner();
    args.connection.output.print(&attempt, text::review_lines)?;
    Ok(())
}

async fn resolve(mut args: Resolve) -> Result<(), Failed> {
    let mut client = connect(&args.connection).await?;
    let Some(attempt_id) = args.named.take().or(args.attempt.take()) else {
        return resolve_many(client, args).await;
    };
    let message = proto::ResolveAttemptRequest {
        workspace: args.workspace,
        attempt_id,
        resolution: args.was.proto().into(),
        reason: args.reason,
        resolved_by: args.by,
    };
    let request = args.connection.request(message, Some(AT_ONCE));
    let attempt = client.resolve_attempt(request).await?.into_inner();
    args.connection
        .output
        .print(&attempt, output::attempt_line)?;
    Ok(())
}

async fn resolve_many(mut client: Client, args: Resolve) -> Result<(), Failed> {
    let mut message = proto::ResolveAttemptsRequest {
        workspace: args.workspace,
        cause: args.cause,
        resolution: args.was.proto().into(),
        reason: args.reason,
        resolved_by: args.by,
        validate_only: args.dry_run,
        page_size: i32::try_from(PAGE).unwrap_or(i32::MAX),
        page_token: String::new(),
    };
    let mut all = BTreeSet::new();
    loop {
        let request = args.connection.request(message.clone(), Some(MANY));
        let page = client.resolve_attempts(request).await?.into_inner();
        args.connection
            .output
            .print(&page, |page| page.attempt_ids.join("\n"))?;
        all.extend(page.attempt_ids);
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    output::note(&text::resolved(all.len(), args.dry_run));
    Ok(())
}
