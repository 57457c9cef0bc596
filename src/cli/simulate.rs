//! `ringonce bench simulate`: many worlds in which everything goes wrong, and what came of it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use super::output;
use crate::runtime::ids::{Ids as _, RandomIds};
use crate::sim::fleet::{self, Report};

/// How often the progress is told: after so many worlds.
const TOLD: usize = 200;

/// `ringonce bench simulate …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many calls are simulated.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = count)]
    calls: usize,
    /// Repeats the run that named this seed; a fresh one if absent.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// The calls are one world, as a broken promise names it by its seed.
    #[arg(long, requires = "seed")]
    world: bool,
    /// Prints one object.
    #[arg(long)]
    json: bool,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("at least one call".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// Simulates, and prints what came of it. It fails if a promise broke.
///
/// # Errors
///
/// A world could not be played, or nothing can be printed.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let seed = args.seed.unwrap_or_else(fresh);
    if !args.json {
        output::note(&format!("seed {seed}"));
    }
    let report = if args.world {
        fleet::one(seed, args.calls)?
    } else {
        fleet::run(seed, args.calls, &|done| {
            if done.is_multiple_of(TOLD) {
                output::note(&format!("{done} worlds"));
            }
        })?
    };
    let text = if args.json {
        format!("{}\n", report.json())
    } else {
        table(&report)
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("failed to write to stdout")?;
    Ok(if report.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(output::FAILED)
    })
}

/// Small enough to be typed again.
fn fresh() -> u64 {
    let mut bytes = [0; 4];
    RandomIds::from_os().fill(&mut bytes);
    u64::from(u32::from_be_bytes(bytes))
}

const WRITES: &str = "a String can be written to";

fn table(report: &Report) -> String {
    let mut text = format!(
        "{} calls in {} worlds, {} SIP calls, {:.1} s\nseed {}, digest {}\n",
        report.calls,
        report.worlds,
        report.started,
        report.elapsed.as_secs_f64(),
        report.seed,
        report.digest,
    );
    for (state, count) in &report.states {
        writeln!(text, "{count:>10} {}", state.name()).expect(WRITES);
    }
    for violation in &report.violations {
        write!(text, "\n{violation}").expect(WRITES);
    }
    let broken = report.violations.len();
    writeln!(text, "{broken} broken promises").expect(WRITES);
    text
}
