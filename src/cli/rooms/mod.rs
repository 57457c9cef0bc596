//! `ringonce rooms list|leaks|delete`.

mod logs;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;

use super::client::{Connection, Failed};
use super::output::{self, DONE, FAILED, Output, UNREACHABLE};
use crate::api::proto;

/// Until when a page of rooms should have come: who is in each is asked of LiveKit.
const PAGE: Duration = Duration::from_secs(30);
/// A deletion, and the look at whether the room lives on.
const DELETE: Duration = Duration::from_secs(30);
/// Rooms on a page: as many as are looked into within [`PAGE`].
const PAGE_SIZE: i32 = 200;

/// `ringonce rooms …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Lists the rooms of this deployment, as its ledger and LiveKit have them together.
    List(List),
    /// Shows rooms that should not be there, and why. Exit code 1 if there is one.
    Leaks(Leaks),
    /// Deletes a room of this deployment.
    Delete(Delete),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only of this tenant.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    workspace: String,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, clap::Args)]
struct Leaks {
    /// Finds them in these log files alone and asks no server; `-` is stdin. Files of several
    /// replicas belong together, in any order, with those that were rotated away.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "workspace")]
    logs: Vec<PathBuf>,
    /// With --logs: rooms that were younger than this where the logs end are open, not leaked,
    /// since a log does not say whether a call goes on. In the logs of a service that still
    /// runs, take the longest call and ten minutes.
    #[arg(long, value_name = "DURATION", default_value = "0s", requires = "logs",
        value_parser = humantime::parse_duration)]
    older_than: Duration,
    /// The same as --output json.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    list: List,
}

impl Leaks {
    fn output(&self) -> Output {
        if self.json {
            Output::Json
        } else {
            self.list.connection.output
        }
    }
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// Its name in LiveKit, as `rooms list` shows it.
    #[arg(value_name = "NAME")]
    name: String,
    /// Also while somebody is on the phone in it, and while an attempt owns it that is
    /// answered or not known.
    #[arg(long)]
    force: bool,
    /// Why; shown with the attempt that is hung up on.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    /// Who asks; shown likewise.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    requested_by: String,
    #[command(flatten)]
    connection: Connection,
}

/// Runs one of them.
///
/// # Errors
///
/// A log cannot be read, or the output cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.act {
        Act::List(args) => super::wait_for(Box::pin(list(args))),
        Act::Leaks(args) if args.logs.is_empty() => super::wait_for(Box::pin(leaks(args))),
        Act::Leaks(args) => logs::leaks(&args.logs, args.older_than, args.output()),
        Act::Delete(args) => super::wait_for(Box::pin(delete(args))),
    }
}

fn unreachable(error: &anyhow::Error) -> Failed {
    output::note(&format!("error: {error:#}"));
    Failed::Said(ExitCode::from(UNREACHABLE))
}

fn answer(done: Result<ExitCode, Failed>) -> anyhow::Result<ExitCode> {
    match done {
        Ok(code) | Err(Failed::Said(code)) => Ok(code),
        Err(Failed::Output(error)) => Err(error),
    }
}

async fn list(args: List) -> anyhow::Result<ExitCode> {
    let shown = show(&args, false, args.connection.output).await;
    answer(shown.map(|counts| {
        output::note(&text::counts(&counts));
        ExitCode::from(DONE)
    }))
}

async fn leaks(args: Leaks) -> anyhow::Result<ExitCode> {
    let shown = show(&args.list, true, args.output()).await;
    answer(shown.map(|counts| {
        output::note(&text::counts(&counts));
        let leaked = counts.leak_count > 0;
        ExitCode::from(if leaked { FAILED } else { DONE })
    }))
}

/// Prints every page, and gives the last one, whose counts are the newest.
async fn show(
    args: &List,
    leaks_only: bool,
    output: Output,
) -> Result<proto::ListRoomsResponse, Failed> {
    let connection = &args.connection;
    let opened = connection.operations().await;
    let mut client = opened.map_err(|error| unreachable(&error))?;
    let mut message = proto::ListRoomsRequest {
        workspace: args.workspace.clone(),
        leaks_only,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    loop {
        let request = connection.request(message.clone(), Some(PAGE));
        let page = client.list_rooms(request).await?.into_inner();
        for room in &page.rooms {
            output.print(room, text::room)?;
        }
        if page.next_page_token.is_empty() {
            return Ok(page);
        }
        message.page_token.clone_from(&page.next_page_token);
    }
}

async fn delete(args: Delete) -> anyhow::Result<ExitCode> {
    let connection = &args.connection;
    let deleting = async {
        let opened = connection.operations().await;
        let mut client = opened.map_err(|error| unreachable(&error))?;
        let message = proto::DeleteRoomRequest {
            name: args.name.clone(),
            force: args.force,
            reason: args.reason.clone(),
            requested_by: args.requested_by.clone(),
        };
        let request = connection.request(message, Some(DELETE));
        let room = client.delete_room(request).await?.into_inner();
        connection
            .output
            .print(&room, |room| format!("deleted {}", room.name))?;
        Ok(ExitCode::from(DONE))
    };
    answer(deleting.await)
}
