//! `ringonce inbox list|show|replay`: the webhooks that were kept, in the store itself.
//!
//! `list` and `show` read beside a server that runs on the store; `replay` writes, so no
//! server may.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::config::Flags;
use super::output::{self, Output};
use crate::config::{Config, Location};
use crate::ledger::receipt::{Reading, Receipt};
use crate::ledger::store::{CommitId, Committed, Record, Store as _, sqlite};
use crate::model::id::Partition;
use crate::provider::names::RoutingMetadata;
use crate::runtime::clock::{Clock as _, SystemClock};
use crate::runtime::ids::{Ids as _, RandomIds};

/// Receipts that are read at once.
const PAGE: usize = 500;

/// Shows the webhooks that were kept, and lets them be read again.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Lists the latest, newest first; also while a server runs on the store.
    List {
        #[command(flatten)]
        flags: Flags,
        /// Only those that became this.
        #[arg(long, value_enum)]
        reading: Option<Wanted>,
        /// At most so many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// How they are shown.
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Shows one with its body, in which phone numbers are replaced by their keys.
    Show {
        #[command(flatten)]
        flags: Flags,
        /// The event's id.
        id: String,
    },
    /// Lets the next `serve` read them again: those with these ids, else all that could not
    /// be read. Applying one twice changes nothing.
    Replay {
        #[command(flatten)]
        flags: Flags,
        /// Events' ids.
        ids: Vec<String>,
    },
}

/// What a receipt became.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Wanted {
    /// It waits.
    New,
    /// It was applied to a call.
    Applied,
    /// It says nothing of calls.
    Ignored,
    /// It is about a room that is not ours.
    Foreign,
    /// This version cannot read all of it.
    Unread,
}

impl From<Wanted> for Reading {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::New => Self::New,
            Wanted::Applied => Self::Applied,
            Wanted::Ignored => Self::Ignored,
            Wanted::Foreign => Self::Foreign,
            Wanted::Unread => Self::Unread,
        }
    }
}

/// Runs it.
///
/// # Errors
///
/// If the store cannot be opened; the text says why and what to do.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let flags = match &args.command {
        Command::List { flags, .. }
        | Command::Show { flags, .. }
        | Command::Replay { flags, .. } => flags,
    };
    let config = match Config::load(&flags.sources()) {
        Ok(config) => config,
        Err(faults) => return super::config::refuse(&faults),
    };
    let Location::Sqlite(path) = config.store.location else {
        anyhow::bail!("the store is memory, which ends with its server; name one by --store")
    };
    match &args.command {
        Command::List {
            reading,
            limit,
            output,
            ..
        } => list(&path, reading.map(Into::into), *limit, *output),
        Command::Show { id, .. } => show(&path, id),
        Command::Replay { ids, .. } => replay(&path, ids),
    }
}

fn list(
    path: &Path,
    reading: Option<Reading>,
    limit: usize,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let mut shown = 0;
    each(path, |_, receipt| {
        if shown >= limit {
            return Ok(false);
        }
        if reading.is_none_or(|wanted| receipt.reading == wanted) {
            output.print(&line(&receipt), |_| text(&receipt))?;
            shown += 1;
        }
        Ok(true)
    })?;
    if shown == 0 {
        output::note("no such webhook is kept");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(path: &Path, id: &str) -> anyhow::Result<ExitCode> {
    let mut found = false;
    each(path, |_, receipt| {
        if receipt.id == id {
            let mut whole = line(&receipt);
            whole["hash"] = receipt.hash.clone().into();
            whole["body"] = receipt.body;
            Output::Json.print(&whole, |_| String::new())?;
            found = true;
        }
        Ok(!found)
    })?;
    if found {
        return Ok(ExitCode::SUCCESS);
    }
    output::note("error: no webhook of this id is kept (`ringonce inbox list`)");
    Ok(ExitCode::from(output::FAILED))
}

fn replay(path: &Path, ids: &[String]) -> anyhow::Result<ExitCode> {
    let mut again = Vec::new();
    each(path, |record, receipt| {
        let wanted = if ids.is_empty() {
            receipt.reading == Reading::Unread
        } else {
            ids.contains(&receipt.id)
        };
        if wanted {
            again.push((record.version, receipt));
        }
        Ok(true)
    })?;
    let (clock, chance) = (SystemClock, RandomIds::from_os());
    let options = sqlite::Options::default();
    let store = match sqlite::Sqlite::open(path, &options, clock.now(), &chance) {
        Ok(store) => store,
        Err(error @ sqlite::OpenError::Held { .. }) => {
            output::note(&format!("error: {error}"));
            return Ok(ExitCode::from(output::UNREACHABLE));
        }
        Err(error) => return Err(error.into()),
    };
    let mut count = 0_usize;
    super::wait_for(Box::pin(async {
        for (version, receipt) in &again {
            let id = CommitId(chance.uuid());
            let commit = receipt.again(&store, id, clock.now(), *version)?;
            if let Committed::Applied(_) = store.commit(Partition(0), &commit).await? {
                count += 1;
            }
        }
        store.close().await;
        Ok(ExitCode::SUCCESS)
    }))?;
    let noun = if count == 1 { "webhook" } else { "webhooks" };
    output::note(&format!(
        "{count} {noun} will be read again by the next `serve`"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Every receipt, newest first, until `see` has seen enough.
fn each(
    path: &Path,
    mut see: impl FnMut(&Record, Receipt) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let page = sqlite::peek(path, &Receipt::latest(after.take(), PAGE));
        let page = page.map_err(super::store::unreadable)?;
        for record in &page.records {
            if !see(record, Receipt::of(record)?)? {
                return Ok(());
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Whose room it is about, as the room's metadata says; of rooms that others made nothing.
fn about(receipt: &Receipt) -> Option<RoutingMetadata> {
    let metadata = receipt.body["room"]["metadata"].as_str()?;
    serde_json::from_str(metadata).ok()
}

fn line(receipt: &Receipt) -> Value {
    let about = about(receipt);
    json!({
        "id": receipt.id,
        "account": receipt.account,
        "received": receipt.received.to_string(),
        "event": receipt.event,
        "reading": receipt.reading.name(),
        "note": receipt.note,
        "room": receipt.body["room"]["name"],
        "workspace": about.as_ref().map(|of| of.workspace.as_str()),
        "attempt": about.as_ref().map(|of| of.attempt.as_str()),
    })
}

fn text(receipt: &Receipt) -> String {
    let (received, id, event) = (receipt.received, &receipt.id, &receipt.event);
    let reading = receipt.reading.name();
    let note = &receipt.note;
    let about = about(receipt).map_or("-".to_owned(), |of| {
        format!("{}/{}", of.workspace, of.attempt)
    });
    format!("{received} {id} {event} {about} {reading} {note}")
        .trim_end()
        .to_owned()
}
