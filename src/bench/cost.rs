//! What webhooks add to the time of a placement, at half the load that it can carry: two
//! services, of which one is told everything, measured in turn.

use super::load::{self, Act, Callee, Done};
use super::placements::{float, no_rooms};
use super::report::{Report, Target};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;

const SECTION: &str = Section::WebhookCost.name();

#[derive(Default)]
struct Blocks {
    count: u64,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Blocks {
    fn take(&mut self, done: &Done) {
        self.count += done.count();
        self.p50.push(load::share_ms(done, 0.5));
        self.p99.push(load::share_ms(done, 0.99));
    }
}

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let quiet = Stand::start(ground, Kind::Plain).await?;
    let told = Stand::start(ground, Kind::Told).await?;
    let act = |stand: &Stand| {
        let (clients, now) = (stand.clients(), ground.clock.now());
        load::placing(clients, Callee::Busy, proto::Wait::DialOver, plan.ring, now)
    };
    let (without, with) = (act(&quiet), act(&told));
    // What it can carry, with webhooks: half of that is the load of both.
    let (numbers, in_flight) = (told.numbers(), plan.in_flight);
    let most = load::closed(ground, numbers, in_flight, plan.block, with.clone()).await?;
    no_rooms(&told).await?;
    let rate = most.rate() / 2.0;
    one(ground, plan, &quiet, rate, without.clone()).await?;
    let (mut bare, mut full, mut added) = (Blocks::default(), Blocks::default(), Vec::new());
    for _ in 0..plan.blocks {
        bare.take(&one(ground, plan, &quiet, rate, without.clone()).await?);
        full.take(&one(ground, plan, &told, rate, with.clone()).await?);
        let last = |blocks: &Blocks| blocks.p50.last().copied().unwrap_or_default();
        added.push((last(&full) / last(&bare).max(1e-9) - 1.0) * 100.0);
    }
    let heard = told.status().await?.webhooks.unwrap_or_default();
    let kept = heard.counts.get("kept").copied().unwrap_or_default();
    let kept = u64::try_from(kept).unwrap_or_default();
    let mut add = |name, count, values, target| report.add(SECTION, name, count, values, target);
    let target = Some(Target::AtMost(10.0));
    add(("added by webhooks, p50", "%"), full.count, added, target);
    add(("without webhooks, p50", "ms"), bare.count, bare.p50, None);
    add(("with webhooks, p50", "ms"), full.count, full.p50, None);
    add(("without webhooks, p99", "ms"), bare.count, bare.p99, None);
    add(("with webhooks, p99", "ms"), full.count, full.p99, None);
    add(("half load", "1/s"), full.count, vec![rate], None);
    add(("webhooks kept", "count"), kept, vec![float(kept)], None);
    Ok(())
}

async fn one(
    ground: &Ground,
    plan: &Plan,
    stand: &Stand,
    rate: f64,
    act: Act,
) -> Result<Done, Error> {
    let count = load::count(rate, plan.block);
    let done = load::open(ground, stand.take(count), count, rate, act).await?;
    no_rooms(stand).await?;
    Ok(done)
}
