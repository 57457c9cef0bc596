//! `ringonce completions SHELL`: what a shell completes, from the same definition.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, output};

/// `ringonce completions …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints them to stdout.
///
/// # Errors
///
/// The output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}
