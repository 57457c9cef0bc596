//! `ringonce call place|get|list|watch|cancel`.

mod cancels;
mod codes;
mod flags;
mod watches;

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use tonic::Status;

use super::client;
use super::output::{self, UNREACHABLE, WAITING};
use crate::api::{Reason, proto, timestamp};
use crate::runtime::clock::{Clock, SystemClock};
use flags::{Cancel, Get, List, Place, Wait, Watch};

/// Until when an answer that nothing waits for should have come.
const AT_ONCE: Duration = Duration::from_secs(10);
/// A cancel waits 10 s for a stop to settle.
const CANCEL: Duration = Duration::from_secs(15);
/// A page of a thousand cancels is a thousand commits.
const MANY: Duration = Duration::from_mins(1);

/// `ringonce call …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Asks for a call. Safe to repeat with the same attempt id and intend time.
    #[command(after_help = codes::PLACE)]
    Place(Box<Place>),
    /// Shows an attempt and its history.
    #[command(after_help = codes::GET)]
    Get(Get),
    /// Lists attempts, oldest first.
    #[command(after_help = codes::LIST)]
    List(List),
    /// Shows every change of attempts as it happens.
    #[command(after_help = codes::WATCH)]
    Watch(Watch),
    /// Stops an attempt, or all open ones of a campaign, a contact or an outreach.
    #[command(after_help = codes::CANCEL, override_usage = codes::CANCEL_USAGE)]
    Cancel(Cancel),
}

/// Runs one of them.
///
/// # Errors
///
/// The output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let connection = match &args.act {
        Act::Place(place) => &place.connection,
        Act::Get(get) => &get.connection,
        Act::List(list) => &list.connection,
        Act::Watch(watch) => &watch.connection,
        Act::Cancel(cancel) => &cancel.connection,
    };
    let client = match connection.placement().await {
        Ok(client) => client,
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            return Ok(ExitCode::from(UNREACHABLE));
        }
    };
    let refused = match &args.act {
        Act::Place(_) => refused_place,
        Act::Cancel(_) => refused_cancel,
        Act::Get(_) | Act::List(_) | Act::Watch(_) => client::failed,
    };
    let done = match args.act {
        Act::Place(args) => place(client, *args).await,
        Act::Get(args) => get(client, args).await,
        Act::List(args) => list(client, args).await,
        Act::Watch(args) => watch(client, args).await,
        Act::Cancel(args) => cancel(client, args).await,
    };
    match done {
        Ok(code) => Ok(code),
        Err(Failed::Status(status)) => Ok(refused(&status)),
        Err(Failed::Output(error)) => Err(error),
    }
}

/// The service said no, or we could not write what it said.
enum Failed {
    Status(Status),
    Output(anyhow::Error),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}

/// Whatever is refused by an error was not placed: an id that was used for another call is no
/// call that failed.
fn refused_place(status: &Status) -> ExitCode {
    client::failed_because(status, |_| None);
    let code = client::exit_code(status);
    ExitCode::from(if code == output::FAILED {
        UNREACHABLE
    } else {
        code
    })
}

fn refused_cancel(status: &Status) -> ExitCode {
    client::failed_because(status, |reason| {
        let missing = reason == Reason::AttemptNotFound;
        missing.then(|| {
            format!(
                "{} If its request is still to come, --allow-missing cancels it beforehand.",
                client::NOT_FOUND
            )
        })
    });
    ExitCode::from(client::exit_code(status))
}

async fn place(mut client: client::Client, args: Place) -> Result<ExitCode, Failed> {
    let (connection, wait) = (args.connection.clone(), args.wait);
    let request = connection.request(args.request(SystemClock.now()), wait.deadline());
    let attempt = client.place_call(request).await?.into_inner();
    connection.output.print(&attempt, output::attempt_line)?;
    Ok(output::exit_code(attempt.state(), wait == Wait::DialOver))
}

async fn get(mut client: client::Client, args: Get) -> Result<ExitCode, Failed> {
    let message = proto::GetAttemptRequest {
        workspace: args.id.workspace,
        attempt_id: args.id.attempt,
        wait: args.wait.proto().into(),
        wait_timeout: None,
    };
    let request = args.connection.request(message, args.wait.deadline());
    let attempt = client.get_attempt(request).await?.into_inner();
    args.connection
        .output
        .print(&attempt, output::attempt_lines)?;
    Ok(ExitCode::SUCCESS)
}

async fn list(mut client: client::Client, args: List) -> Result<ExitCode, Failed> {
    let (mut left, mut found) = (args.limit, false);
    let mut message = proto::ListAttemptsRequest {
        workspace: args.filter.workspace,
        contact_id: args.filter.contact,
        campaign_id: args.filter.campaign,
        outreach_id: args.filter.outreach,
        states: args.filter.state,
        create_time_from: args.created_from.map(timestamp),
        create_time_to: args.created_to.map(timestamp),
        descending: args.descending,
        page_size: 0,
        page_token: String::new(),
    };
    while left > 0 {
        message.page_size = i32::try_from(left).unwrap_or(i32::MAX);
        let request = args.connection.request(message.clone(), Some(AT_ONCE));
        let page = client.list_attempts(request).await?.into_inner();
        let now = SystemClock.now();
        for attempt in page.attempts.iter().take(left) {
            let line = |attempt: &_| output::listed_line(attempt, now);
            args.connection.output.print(attempt, line)?;
        }
        found |= !page.attempts.is_empty();
        left = left.saturating_sub(page.attempts.len());
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    if !found && args.limit > 0 {
        let workspace = &message.workspace;
        output::note(&format!("no attempt of workspace {workspace} matches"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A watch has no end but that of its deadline, or of what it asks.
async fn watch(mut client: client::Client, args: Watch) -> Result<ExitCode, Failed> {
    let attempt = args.attempt.clone();
    let mut seen = watches::Seen::default();
    match follow(&mut client, args, &mut seen).await {
        Err(Failed::Status(status)) => {
            watches::say_end(&status, &seen, &attempt);
            Ok(ExitCode::from(client::exit_code(&status)))
        }
        Err(failed @ Failed::Output(_)) => Err(failed),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

async fn follow(
    client: &mut client::Client,
    args: Watch,
    seen: &mut watches::Seen,
) -> Result<(), Failed> {
    let message = proto::WatchAttemptsRequest {
        workspace: args.filter.workspace,
        attempt_id: args.attempt,
        contact_id: args.filter.contact,
        campaign_id: args.filter.campaign,
        outreach_id: args.filter.outreach,
        states: args.filter.state,
        after: args.after,
        snapshot: args.snapshot,
    };
    let request = args.connection.request(message, None);
    let mut changes = client.watch_attempts(request).await?.into_inner();
    while let Some(change) = changes.message().await? {
        seen.note(&change);
        args.connection.output.print(&change, output::change_line)?;
    }
    Ok(())
}

async fn cancel(mut client: client::Client, mut args: Cancel) -> Result<ExitCode, Failed> {
    let Some(attempt_id) = args.attempt.take() else {
        return cancel_many(client, args).await;
    };
    let message = proto::CancelAttemptRequest {
        workspace: args.workspace,
        attempt_id,
        mode: args.mode.proto().into(),
        allow_missing: args.allow_missing,
        reason: args.reason,
        requested_by: args.requested_by,
    };
    let request = args.connection.request(message, Some(CANCEL));
    let response = client.cancel_attempt(request).await?.into_inner();
    args.connection.output.print(&response, cancels::one)?;
    hint(cancels::advice(&response));
    Ok(output::cancel_exit_code(response.result()))
}

async fn cancel_many(mut client: client::Client, args: Cancel) -> Result<ExitCode, Failed> {
    let mut message = proto::CancelAttemptsRequest {
        workspace: args.workspace,
        campaign_id: args.campaign,
        contact_id: args.contact,
        outreach_id: args.outreach,
        mode: args.mode.proto().into(),
        reason: args.reason,
        requested_by: args.requested_by,
        validate_only: args.dry_run,
        page_size: 1000,
        page_token: String::new(),
    };
    let mut sum = cancels::Sum::new(args.mode, args.dry_run);
    loop {
        let request = args.connection.request(message.clone(), Some(MANY));
        let page = client.cancel_attempts(request).await?.into_inner();
        let lines = sum.page(&page);
        args.connection.output.print(&page, |_| lines)?;
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    output::note(&sum.text());
    hint(sum.advice());
    let code = if sum.is_pending() {
        WAITING
    } else {
        output::DONE
    };
    Ok(ExitCode::from(code))
}

fn hint(advice: Option<String>) {
    if let Some(advice) = advice {
        output::note(&format!("hint: {advice}"));
    }
}
