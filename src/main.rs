//! The command line of `ringonce`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    ringonce::cli::run(ringonce::cli::Cli::parse())
}
