//! `ringonce bench`: what it costs and how fast it is, on this host.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;

use super::{output, simulate};
use crate::bench::{self, Ground, Plan, Section};
use crate::lab::stack::Program;
use crate::runtime::clock::SystemClock;
use crate::runtime::ids::RandomIds;
use crate::runtime::tasks::Tasks;

/// `ringonce bench …`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Prints one object instead of a table.
    #[arg(long)]
    json: bool,
    /// Measures these alone.
    #[arg(long, value_enum, value_name = "NAME", num_args = 1..)]
    only: Vec<Name>,
    /// A few hundred calls within seconds: for counts, not for speed.
    #[arg(long)]
    quick: bool,
    /// How long a block lasts; there are five of each kind.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How long a call of the section `ringing` rings; they are started in the first half.
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration)]
    ring: Option<Duration>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Plays calls in worlds in which everything goes wrong, and watches the promises.
    Simulate(simulate::Args),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Durable placements a second, their ratio to bare requests, and the CPU of one.
    Placements,
    /// What is added to the platform's own time, at 500 a second.
    Latency,
    /// Known attempts that are asked for again.
    Replays,
    /// 2,000 and 10,000 calls that ring at once.
    Ringing,
    /// The same over TLS.
    RingingTls,
    /// The start on a store of 100,000 attempts after a `kill -9`.
    Start,
    /// Webhooks acknowledged durably a second, and how far behind the projection is.
    Webhooks,
    /// What webhooks add to the time of a placement, at half load.
    WebhookCost,
    /// How soon lost replies are settled, with and without a restart.
    Settle,
    /// 10,000 UNCERTAIN attempts at once, in a world with paused time.
    Uncertain,
}

impl From<Name> for Section {
    fn from(name: Name) -> Self {
        match name {
            Name::Placements => Self::Placements,
            Name::Latency => Self::Latency,
            Name::Replays => Self::Replays,
            Name::Ringing => Self::Ringing,
            Name::RingingTls => Self::RingingTls,
            Name::Start => Self::Start,
            Name::Webhooks => Self::Webhooks,
            Name::WebhookCost => Self::WebhookCost,
            Name::Settle => Self::Settle,
            Name::Uncertain => Self::Uncertain,
        }
    }
}

/// Measures, and prints what was found. A target that is missed is no failure.
///
/// # Errors
///
/// Something could not be measured.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(What::Simulate(args)) = &args.what {
        // Its worlds have runtimes and threads of their own, so this one has nothing to do.
        return tokio::task::block_in_place(|| simulate::run(args));
    }
    let mut plan = if args.quick {
        Plan::quick()
    } else {
        Plan::full(Duration::from_secs(args.seconds))
    };
    plan.ring = args.ring.unwrap_or(plan.ring);
    let sections: Vec<Section> = if args.only.is_empty() {
        Section::ALL.into()
    } else {
        args.only.into_iter().map(Section::from).collect()
    };
    let ground = Ground {
        program: Program::this()?,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds::from_os()),
        tasks: Tasks::default(),
    };
    let report = bench::run(&ground, &plan, &sections, |section| {
        output::note(&format!("measuring {}", section.name()));
    })
    .await?;
    let text = if args.json {
        format!("{}\n", report.json())
    } else {
        report.table()
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("failed to write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
