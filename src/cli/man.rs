//! `ringonce man`: the manual page, from the same definition.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use super::{Cli, output};

/// `ringonce man …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The page of a subcommand, as `rooms leaks`; of the whole program without.
    #[arg(value_name = "SUBCOMMAND")]
    subcommand: Vec<String>,
}

/// Prints it to stdout, in roff: `ringonce man | man -l -`.
///
/// # Errors
///
/// There is no such subcommand, or the output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = &command;
    for word in &args.subcommand {
        let below = page.find_subcommand(word);
        page = below.with_context(|| format!("there is no subcommand {word}"))?;
    }
    let mut text = Vec::new();
    // A page of its own is called by its whole name: `ringonce-rooms-leaks`.
    let title = page
        .get_display_name()
        .unwrap_or(page.get_name())
        .to_owned();
    Man::new(page.clone())
        .title(title)
        .render(&mut text)
        .context("failed to write the page")?;
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}
