//! The command line: one file a subcommand.
//!
//! Data goes to stdout, all else to stderr. Exit codes are those of [`output`].

pub mod bench;
pub mod call;
mod client;
pub mod completions;
pub mod config;
pub mod demo;
pub mod healthcheck;
pub mod inbox;
pub mod man;
pub mod output;
pub mod review;
pub mod rooms;
pub mod sandbox;
pub mod serve;
pub mod simulate;
pub mod status;
pub mod store;

use std::pin::Pin;
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
    /// Measures on this host what a placement costs and how fast it is.
    Bench(bench::Args),
    /// Places, reads, watches and cancels calls at a running service.
    Call(call::Args),
    /// Prints the completions of a shell.
    Completions(completions::Args),
    /// Checks a configuration, or shows what is in effect and where it came from.
    Config(config::Args),
    /// Shows in half a minute what it is for: a campaign against a sandbox.
    Demo(demo::Args),
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
    /// Shows whether LiveKit answers a running service, what is open, and what it has counted.
    Status(status::Args),
    /// Shows a store, or tells it what happened before its history began.
    Store(store::Args),
}

/// Runs what was asked for, and says on stderr why it could not.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Bench(args) => wait_for(Box::pin(bench::run(args))),
        Command::Call(args) => wait_for(Box::pin(call::run(args))),
        Command::Completions(args) => completions::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Demo(args) => wait_for(Box::pin(demo::run(args))),
        Command::Healthcheck(args) => wait_for(Box::pin(healthcheck::run(args))),
        Command::Inbox(args) => inbox::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Rooms(args) => rooms::run(args),
        Command::Review(args) => wait_for(Box::pin(review::run(args))),
        Command::Sandbox(args) => wait_for(Box::pin(sandbox::run(args))),
        Command::Serve(args) => wait_for(Box::pin(serve::run(args))),
        Command::Status(args) => wait_for(Box::pin(status::run(args))),
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

/// Boxed, or the runtime's loop would be compiled three times for each subcommand, with the
/// whole of it in each.
pub(super) fn wait_for(
    work: Pin<Box<dyn Future<Output = anyhow::Result<ExitCode>> + '_>>,
) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(work)
}
