//! What webhooks add to the time of a placement, at half the load that it can carry: three
//! services, measured in turn. The platform of the first sends none, that of the second sends
//! them to somebody who throws them away, and the third is told everything. On one host the
//! platform takes its processor time from the service, so the second tells the sender's share
//! from the service's own.

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

    /// By how many percent the last one took longer than the last of `others`.
    fn above(&self, others: &Self) -> f64 {
        let last = |blocks: &Self| blocks.p50.last().copied().unwrap_or_default();
        (last(self) / last(others).max(1e-9) - 1.0) * 100.0
    }
}

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let quiet = Stand::start(ground, Kind::Plain).await?;
    let unheard = Stand::start(ground, Kind::Unheard).await?;
    let told = Stand::start(ground, Kind::Told).await?;
    let act = |stand: &Stand| {
        let (clients, now) = (stand.clients(), ground.clock.now());
        load::placing(clients, Callee::Busy, proto::Wait::DialOver, plan.ring, now)
    };
    let (without, thrown, with) = (act(&quiet), act(&unheard), act(&told));
    // What it can carry, with webhooks: half of that is the load of all.
    let (numbers, in_flight) = (told.numbers(), plan.in_flight);
    let most = load::closed(ground, numbers, in_flight, plan.block, with.clone()).await?;
    no_rooms(&told).await?;
    let rate = most.rate() / 2.0;
    one(ground, plan, &quiet, rate, without.clone()).await?;
    one(ground, plan, &unheard, rate, thrown.clone()).await?;
    let (mut bare, mut sent, mut full) = (Blocks::default(), Blocks::default(), Blocks::default());
    let (mut added, mut own) = (Vec::new(), Vec::new());
    for _ in 0..plan.blocks {
        bare.take(&one(ground, plan, &quiet, rate, without.clone()).await?);
        sent.take(&one(ground, plan, &unheard, rate, thrown.clone()).await?);
        full.take(&one(ground, plan, &told, rate, with.clone()).await?);
        added.push(full.above(&bare));
        own.push(full.above(&sent));
    }
    let heard = told.status().await?.webhooks.unwrap_or_default();
    let kept = heard.counts.get("kept").copied().unwrap_or_default();
    let kept = u64::try_from(kept).unwrap_or_default();
    let mut add = |name, count, values, target| report.add(SECTION, name, count, values, target);
    let target = Some(Target::AtMost(10.0));
    add(("added by webhooks, p50", "%"), full.count, added, target);
    add(("added by hearing them, p50", "%"), full.count, own, None);
    add(("without webhooks, p50", "ms"), bare.count, bare.p50, None);
    add(
        ("webhooks thrown away, p50", "ms"),
        sent.count,
        sent.p50,
        None,
    );
    add(("with webhooks, p50", "ms"), full.count, full.p50, None);
    add(("without webhooks, p99", "ms"), bare.count, bare.p99, None);
    add(
        ("webhooks thrown away, p99", "ms"),
        sent.count,
        sent.p99,
        None,
    );
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
