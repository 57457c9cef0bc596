//! `ringonce store info|adopt|restored`: what a store holds, and what a person says of its
//! history.

use std::process::ExitCode;

use anyhow::Context as _;

use super::config::Flags;
use super::output::{self, Output};
use crate::config::{Config, Location};
use crate::ledger::store::{Epoch, Info, sqlite};
use crate::model::time::Time;
use crate::runtime::clock::{Clock as _, SystemClock};
use crate::runtime::ids::RandomIds;

/// Shows a store, or tells it what happened before its history began.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Shows what a store holds; also while a server runs on it.
    Info {
        #[command(flatten)]
        flags: Flags,
        /// How it is shown.
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Says that nothing was called between TIME and the beginning of this store's history,
    /// or that all of it is known: intents from TIME on are accepted again.
    Adopt {
        #[command(flatten)]
        flags: Flags,
        /// The moment, as 2026-11-29T12:00:00Z.
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Time,
    },
    /// Says that this store came back from a backup: a new history begins now, and what it
    /// believed to be waiting or ringing is distrusted.
    Restored {
        #[command(flatten)]
        flags: Flags,
    },
}

/// Runs it.
///
/// # Errors
///
/// If the store cannot be opened; the text says why and what to do.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let flags = match &args.command {
        Command::Info { flags, .. }
        | Command::Adopt { flags, .. }
        | Command::Restored { flags } => flags,
    };
    let config = match Config::load(&flags.sources()) {
        Ok(config) => config,
        Err(faults) => return super::config::refuse(&faults),
    };
    let path = match config.store.location {
        Location::Sqlite(path) => path,
        Location::Memory => {
            anyhow::bail!("the store is memory, which ends with its server; name one by --store")
        }
    };
    match &args.command {
        Command::Info { output, .. } => {
            info(&sqlite::inspect(&path).map_err(unreadable)?, *output)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Adopt { since, .. }
            if *since > sqlite::inspect(&path).map_err(unreadable)?.epoch.since =>
        {
            output::note(
                "error: TIME is after the beginning of this store's history; nothing is to adopt (`ringonce store info` shows it)",
            );
            Ok(ExitCode::from(output::USAGE))
        }
        Command::Adopt { since, .. } => {
            let (now, chance) = (SystemClock.now(), RandomIds::from_os());
            told(sqlite::adopt(&path, *since, now, &chance), |epoch| {
                let since = epoch.since;
                format!(
                    "adopted: what happened from {since} on counts as known, and intents from \
                     then on are accepted once `ringonce serve` runs again"
                )
            })
        }
        Command::Restored { .. } => {
            let (now, chance) = (SystemClock.now(), RandomIds::from_os());
            told(sqlite::restored(&path, now, &chance), restored)
        }
    }
}

/// What it means that a store came back from a backup: none of it is seen before it is served.
fn restored(epoch: &Epoch) -> String {
    let since = epoch.since;
    format!(
        "a new history begins at {since}. When `ringonce serve` runs again:\n\
         - what waits in this store, or was prepared, is refused (HISTORY_LOST): it may have been \
         called after the backup\n\
         - what rang or talked is looked for at LiveKit, settled by what is seen, and not dialed \
         again\n\
         - intents from before {since} are refused, intents from then on are accepted\n\
         If nothing was called between the backup and now, or all of it is known: `ringonce store \
         adopt --since TIME`, with TIME of the backup"
    )
}

/// Said where no store is found: where nothing names one, the one in the data folder is meant.
const NAME_IT: &str =
    "where a service has its own, name it as that does, by --store or its --config";

/// Why a store cannot be read. A reader needs a file beside it, which a read-only folder does not
/// let it make, and `SQLite` says that of the store.
pub(super) fn unreadable(error: sqlite::OpenError) -> anyhow::Error {
    let in_the_way = matches!(
        error,
        sqlite::OpenError::ReadOnly { .. }
            | sqlite::OpenError::NoFile { .. }
            | sqlite::OpenError::Sqlite { .. }
            | sqlite::OpenError::Io { .. }
    );
    let is_missing = matches!(error, sqlite::OpenError::Missing { .. });
    let error = anyhow::Error::from(error);
    if is_missing {
        anyhow::anyhow!("{error}; {NAME_IT}")
    } else if in_the_way {
        error.context(
            "the store cannot be read here; reading needs a file beside it, which cannot be made \
             in a folder that is mounted read-only: copy the store, with the files NAME-wal and \
             NAME-shm if they are there, to one that may be written, and name the copy by --store",
        )
    } else {
        error
    }
}

fn told(
    epoch: Result<Epoch, sqlite::OpenError>,
    text: impl FnOnce(&Epoch) -> String,
) -> anyhow::Result<ExitCode> {
    let epoch = match epoch {
        Ok(epoch) => epoch,
        Err(error @ sqlite::OpenError::Held { .. }) => {
            output::note(&format!("error: {error}"));
            return Ok(ExitCode::from(output::UNREACHABLE));
        }
        Err(error @ sqlite::OpenError::Missing { .. }) => return Err(unreadable(error)),
        Err(error) => return Err(error).context("failed to write the store"),
    };
    output::note(&text(&epoch));
    Ok(ExitCode::SUCCESS)
}

fn info(info: &Info, how: Output) -> anyhow::Result<()> {
    let records: serde_json::Map<String, serde_json::Value> = info
        .records
        .iter()
        .map(|(kind, count)| (format!("{kind:?}").to_lowercase(), (*count).into()))
        .collect();
    let shown = serde_json::json!({
        "location": info.location,
        "epoch": info.epoch.id.to_string(),
        "since": info.epoch.since.to_string(),
        "format": info.format,
        "partitions": info.partitions,
        "records": records,
        "events": info.events,
        "commits": info.commits,
        "bytes": info.bytes,
    });
    how.print(&shown, |_| {
        let mut lines = vec![
            format!("location    {}", info.location),
            format!("remembers   from {}", info.epoch.since),
            format!("epoch       {}", info.epoch.id),
            format!("format      {}", info.format),
        ];
        lines.extend(
            info.records.iter().map(|(kind, count)| {
                format!("{:<11} {count}", format!("{kind:?}s").to_lowercase())
            }),
        );
        lines.push(format!("events      {}", info.events));
        lines.push(format!("commits     {}", info.commits));
        lines.extend(info.bytes.map(|bytes| format!("bytes       {bytes}")));
        lines.join("\n")
    })
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).ok_or_else(|| "is no RFC 3339 time, as 2026-11-29T12:00:00Z".to_owned())
}
