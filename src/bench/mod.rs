//! What it costs and how fast it is, measured by anyone: `ringonce bench`.
//!
//! The sandbox and the service are processes of their own, on this host, so that the
//! kernel tells what the service alone used; what asks is this process. The sandbox takes no
//! time of its own (`sandbox --load`): what is left is what stands around the platform.
//!
//! "Bare" is the same list of requests to the platform by the same client, without a
//! ledger, from this process. Bare and service are measured in turn, block by block, so that
//! a host which is busy with something else disturbs both.
//!
//! The load's numbers are `+999`, a country code that nobody has; the last two digits say
//! what the callee does (`sandbox --list`).

mod bare;
mod cost;
mod fill;
mod latency;
mod load;
mod measure;
mod placements;
mod replays;
mod report;
mod ringing;
mod settle;
mod sink;
mod stand;
mod start;
mod uncertain;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::lab::stack::{self, Program};
use crate::ledger::store;
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;
use crate::runtime::tasks::Tasks;

pub use report::{Figure, Report, Target};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Durable placements a second, and what one costs.
    Placements,
    /// What the service adds to the platform's own time, at a steady rate.
    Latency,
    /// Known attempts that are asked for again.
    Replays,
    /// Many calls that ring at once.
    Ringing,
    /// The same over TLS.
    RingingTls,
    /// The start on a large store, after a `kill -9`.
    Start,
    /// Webhooks that are acknowledged, and applied.
    Webhooks,
    /// What webhooks add to a placement.
    WebhookCost,
    /// Lost replies, until they are settled.
    Settle,
    /// Very many of them at once, in a world with paused time.
    Uncertain,
}

impl Section {
    /// Every section, in the order in which they are measured.
    pub const ALL: [Self; 10] = [
        Self::Placements,
        Self::Latency,
        Self::Replays,
        Self::Ringing,
        Self::RingingTls,
        Self::Start,
        Self::Webhooks,
        Self::WebhookCost,
        Self::Settle,
        Self::Uncertain,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Placements => "placements",
            Self::Latency => "latency",
            Self::Replays => "replays",
            Self::Ringing => "ringing",
            Self::RingingTls => "ringing-tls",
            Self::Start => "start",
            Self::Webhooks => "webhooks",
            Self::WebhookCost => "webhook-cost",
            Self::Settle => "settle",
            Self::Uncertain => "uncertain",
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Blocks of each kind.
    pub blocks: usize,
    /// How long a block lasts.
    pub block: Duration,
    /// Placements that are under way at once: enough that each group of commits is worth its
    /// `fsync`, and below the thousand that `dial.in_flight` allows.
    pub in_flight: usize,
    /// Placements a second of the open loop.
    pub rate: f64,
    /// Replays that are under way at once.
    pub replays_in_flight: usize,
    /// Attempts that are replayed.
    pub known: u64,
    /// Calls that ring at once, few and many: memory is the slope between the two.
    pub ringing: [u64; 2],
    /// How long they ring. They are asked for evenly in the first half of it.
    pub ring: Duration,
    /// Attempts in the store at the start.
    pub stored: u64,
    /// Starts that are measured.
    pub starts: usize,
    /// Webhooks that are under way at once.
    pub webhooks_in_flight: usize,
    /// Webhooks in a second, for the time that one takes.
    pub webhook_rate: f64,
    /// Replies that are lost, of each kind.
    pub lost: u64,
    /// UNCERTAIN attempts at once.
    pub uncertain: u32,
    /// Whether this is a short look, whose figures say little.
    pub quick: bool,
}

impl Plan {
    /// What the published figures are made of, with blocks of this length.
    #[must_use]
    pub const fn full(block: Duration) -> Self {
        Self {
            blocks: 5,
            block,
            in_flight: 256,
            rate: 500.0,
            replays_in_flight: 64,
            known: 1_000,
            ringing: [2_000, 10_000],
            ring: Duration::from_secs(45),
            stored: 100_000,
            starts: 5,
            webhooks_in_flight: 64,
            webhook_rate: 5_000.0,
            lost: 50,
            uncertain: 10_000,
            quick: false,
        }
    }

    /// A few hundred calls, within seconds: for counts, not for speed.
    #[must_use]
    pub const fn quick() -> Self {
        Self {
            blocks: 2,
            block: Duration::from_millis(500),
            in_flight: 32,
            rate: 50.0,
            replays_in_flight: 16,
            known: 50,
            ringing: [20, 60],
            ring: Duration::from_secs(12),
            stored: 1_000,
            starts: 2,
            webhooks_in_flight: 16,
            webhook_rate: 300.0,
            lost: 3,
            uncertain: 300,
            quick: true,
        }
    }
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process could not be started or asked.
    #[error(transparent)]
    Stack(#[from] stack::Error),
    /// The service refused what it should have done.
    #[error("the service refused: {0}")]
    Refused(String),
    /// The platform refused what it should have done.
    #[error("the platform refused: {0}")]
    Bare(String),
    /// The store could not be filled or read.
    #[error("the store failed: {0}")]
    Store(#[from] store::Error),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] store::sqlite::OpenError),
    /// The kernel or the disk could not be asked.
    #[error("the host cannot be measured")]
    Host(#[from] std::io::Error),
    /// Something did not come about in time.
    #[error("{0} did not come about in time")]
    Late(&'static str),
}

/// What every section stands on.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The program whose `sandbox` and `serve` are measured.
    pub program: Program,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub ids: Arc<dyn Ids>,
    /// Where the load's tasks run.
    pub tasks: Tasks,
}

/// Measures `sections`; `say` hears which one begins.
///
/// # Errors
///
/// See [`Error`]. A target that is missed is none.
pub async fn run(
    ground: &Ground,
    plan: &Plan,
    sections: &[Section],
    mut say: impl FnMut(Section),
) -> Result<Report, Error> {
    let files = measure::raise_files();
    let folder = stack::Folder::new()?;
    let mut report = Report {
        quick: plan.quick,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        folder: folder
            .path()
            .parent()
            .unwrap_or(folder.path())
            .display()
            .to_string(),
        ..Report::default()
    };
    report.notes.push(format!(
        "Requests of a placement: CreateRoom, CreateDispatch, CreateSIPParticipant, DeleteRoom; \
         the agent is not waited for (agent.gate = DISPATCHED). Open files: {files}."
    ));
    drop(folder);
    for section in Section::ALL {
        if !sections.contains(&section) {
            continue;
        }
        say(section);
        // One future of each size: the sections differ much.
        let measured: BoxFuture<'_, Result<(), Error>> = match section {
            Section::Placements => Box::pin(placements::measure(ground, plan, &mut report)),
            Section::Latency => Box::pin(latency::measure(ground, plan, &mut report)),
            Section::Replays => Box::pin(replays::measure(ground, plan, &mut report)),
            Section::Ringing => Box::pin(ringing::measure(ground, plan, &mut report, false)),
            Section::RingingTls => Box::pin(ringing::measure(ground, plan, &mut report, true)),
            Section::Start => Box::pin(start::measure(ground, plan, &mut report)),
            Section::Webhooks => Box::pin(webhooks::measure(ground, plan, &mut report)),
            Section::WebhookCost => Box::pin(cost::measure(ground, plan, &mut report)),
            Section::Settle => Box::pin(settle::measure(ground, plan, &mut report)),
            Section::Uncertain => Box::pin(async { uncertain::measure(plan, &mut report) }),
        };
        measured.await?;
    }
    Ok(report)
}
