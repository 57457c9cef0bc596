//! The command line: one file a subcommand.
//!
//! Data goes to stdout, all else to stderr. Exit codes are those of [`output`].

pub mod call;
mod client;
pub mod completions;
pub mod config;
pub mod healthcheck;
pub mod inbox;
pub mod man;
pub mod output;
pub mod review;
pub mod rooms;
pub mod sandbox;
pub mod serve;
pub mod store;

use std::process::ExitCode;

use anyhow::Context as _;

/// One intended call, at most one ring.
#[derive(Debug, clap::Parser)]
#[command(version, about, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Places, reads, watches and cancels calls at a running service.
    Call(call::Args),
    /// Prints the completions of a shell.
    Completions(completions::Args),
    /// Checks a configuration, or shows what is in effect and where it came from.
    Config(config::Args),
    /// Asks a running service whether it is well.
    Healthcheck(healthcheck::Args),
    /// Shows the webhooks that were kept, and lets them be read again.
    Inbox(inbox::Args),
    /// Prints the manual page.
    Man(man::Args),
    /// Shows rooms and leaks, from a running service or from log files, and deletes one.
    Rooms(rooms::Args),
    /// Shows what evidence could not settle, and says what became of it.
    Review(review::Args),
    /// Runs a LiveKit that rings nobody.
    Sandbox(sandbox::Args),
    /// Serves until SIGTERM or SIGINT, then lets the dials settle.
    Serve(serve::Args),
    /// Shows a store, or tells it what happened before its history began.
    Store(store::Args),
}

/// Runs what was asked for, and says on stderr why it could not.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Call(args) => wait_for(call::run(args)),
        Command::Completions(args) => completions::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Healthcheck(args) => wait_for(healthcheck::run(args)),
        Command::Inbox(args) => inbox::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Rooms(args) => rooms::run(args),
        Command::Review(args) => wait_for(review::run(args)),
        Command::Sandbox(args) => wait_for(sandbox::run(args)),
        Command::Serve(args) => wait_for(serve::run(args)),
        Command::Store(args) => store::run(&args),
    };
    done.unwrap_or_else(|error| {
        // Whoever read our output has had enough, as `head` does.
        if output::is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        output::note(&format!("error: {error:#}"));
        ExitCode::from(output::FAILED)
    })
}

pub(super) fn wait_for(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(work)
}
