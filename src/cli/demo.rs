//! `ringonce demo`: a campaign in half a minute, against a real server and against what
//! teams write first.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::output;
use crate::demo::{Options, Shown};
use crate::lab::stack::Program;

/// `ringonce demo …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Prints one JSON object at the end, and nothing else.
    #[arg(long)]
    json: bool,
    /// Writes the server's log to FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "naive")]
    log: Option<PathBuf>,
    /// Plays only what teams write first: a lock with an expiry and three calls.
    #[arg(long)]
    naive: bool,
}

/// Plays it. It fails if ringonce broke a promise; what the other side does is shown.
///
/// # Errors
///
/// If it could not be played.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let shown = if args.json {
        Shown::Quiet
    } else if io::stdout().is_terminal() {
        Shown::Live
    } else {
        Shown::Lines
    };
    let options = Options {
        naive: args.naive,
        log: args.log,
        shown,
    };
    let report = crate::demo::run(&Program::this()?, &options).await?;
    if args.json {
        let line = serde_json::to_string(&report).context("failed to write JSON")?;
        writeln!(io::stdout().lock(), "{line}").context("failed to write to stdout")?;
    }
    Ok(if args.naive || report.kept() {
        ExitCode::from(output::DONE)
    } else {
        ExitCode::from(output::FAILED)
    })
}
