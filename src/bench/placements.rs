//! Durable placements a second, in a closed loop, and what one costs.
//!
//! A placement is done when its caller hears that the dial is over: the commits up to the
//! verdict are on the disk then. The deletion of its room follows while the next one runs.

use super::bare::Bare;
use super::load::{self, Callee, Done};
use super::report::{Report, Target};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section, measure};
use crate::api::proto;
use crate::lab::platform::Tally;

const SECTION: &str = Section::Placements.name();

/// What the blocks of the service showed.
#[derive(Default)]
struct Blocks {
    count: u64,
    rate: Vec<f64>,
    ratio: Vec<f64>,
    cpu_us: Vec<f64>,
    p50_ms: Vec<f64>,
    p99_ms: Vec<f64>,
    requests: Vec<f64>,
    sync_p50: Vec<f64>,
    sync_p99: Vec<f64>,
    bare_count: u64,
    bare_rate: Vec<f64>,
}

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stand = Stand::start(ground, Kind::Plain).await?;
    let bare = Bare::new(ground, stand.platform()).await?;
    // What is made only once (the trunk's id, connections, the store's first pages) is none
    // of a placement's cost.
    let begun = stand.commits()?;
    let mut placed = run(ground, plan, &stand, plan.block / 4).await?.count();
    no_rooms(&stand).await?;
    let mut blocks = Blocks::default();
    for _ in 0..plan.blocks {
        let (sync_p50, sync_p99) = measure::sync_times(stand.folder.path())?;
        blocks.sync_p50.push(sync_p50);
        blocks.sync_p99.push(sync_p99);
        let without = load::closed(
            ground,
            stand.numbers(),
            plan.in_flight,
            plan.block,
            bare.act(ground, true),
        )
        .await?;
        blocks.bare_count += without.count();
        blocks.bare_rate.push(without.rate());
        let requests = no_rooms(&stand).await?;
        let cpu = stand.processor_time()?;
        let with = run(ground, plan, &stand, plan.block).await?;
        let requested = sum(&no_rooms(&stand).await?) - sum(&requests);
        let cpu = stand.processor_time()?.saturating_sub(cpu);
        placed += with.count();
        let each = per(with.count());
        blocks.count += with.count();
        blocks.rate.push(with.rate());
        blocks.ratio.push(with.rate() / without.rate());
        blocks.cpu_us.push(cpu.as_secs_f64() * 1e6 * each);
        blocks.p50_ms.push(load::share_ms(&with, 0.5));
        blocks.p99_ms.push(load::share_ms(&with, 0.99));
        blocks.requests.push(float(requested) * each);
    }
    // Counted over its whole life: when a room is gone for the platform, its last commit may
    // still be under way, and a service that has stopped has none.
    let (commits, transactions) = stand.stop().await?;
    tell(report, blocks);
    let written = float(commits - begun) * per(placed);
    let syncs = float(transactions) * per(placed);
    for (name, value) in [("commits", written), ("fsyncs", syncs)] {
        report.add(SECTION, (name, "each"), placed, vec![value], None);
    }
    Ok(())
}

async fn run(
    ground: &Ground,
    plan: &Plan,
    stand: &Stand,
    span: std::time::Duration,
) -> Result<Done, Error> {
    let act = load::placing(
        stand.clients(),
        Callee::Busy,
        proto::Wait::DialOver,
        plan.ring,
        ground.clock.now(),
    );
    load::closed(ground, stand.numbers(), plan.in_flight, span, act).await
}

/// Waits until every room is deleted; the counts then.
pub(super) async fn no_rooms(stand: &Stand) -> Result<Tally, Error> {
    stand
        .until("the deletion of all rooms", |tally| tally.rooms == 0)
        .await
}

pub(super) fn sum(tally: &Tally) -> u64 {
    tally.requests.values().sum()
}

/// One part of `count`.
pub(super) fn per(count: u64) -> f64 {
    1.0 / float(count.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "no section counts to 2^52")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

fn tell(report: &mut Report, blocks: Blocks) {
    let (count, bare) = (blocks.count, blocks.bare_count);
    let mut add = |name, count, values, target| report.add(SECTION, name, count, values, target);
    let least = |value| Some(Target::AtLeast(value));
    let most = |value| Some(Target::AtMost(value));
    add(
        ("durable placements", "1/s"),
        count,
        blocks.rate,
        least(2_000.0),
    );
    add(("bare", "1/s"), bare, blocks.bare_rate, None);
    add(("ratio to bare", "1"), count, blocks.ratio, least(0.5));
    add(
        ("cpu of serve", "µs each"),
        count,
        blocks.cpu_us,
        most(500.0),
    );
    add(("time, p50", "ms"), count, blocks.p50_ms, None);
    add(("time, p99", "ms"), count, blocks.p99_ms, None);
    add(("requests", "each"), count, blocks.requests, None);
    add(("fsync of the disk, p50", "ms"), 100, blocks.sync_p50, None);
    add(("fsync of the disk, p99", "ms"), 100, blocks.sync_p99, None);
}
