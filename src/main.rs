//! The command line of `ringonce`.

use std::process::ExitCode;

use clap::Parser as _;

/// A placement allocates a thousand times across threads, which the C library's allocator
/// answers with locks and consolidation: a fifth of the processor's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ringonce::cli::run(ringonce::cli::Cli::parse())
}
