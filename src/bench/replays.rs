//! Known attempts that are asked for again: they are answered from the store, and nothing is
//! written.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::load::{self, Act, Callee};
use super::placements::{float, no_rooms, per};
use super::report::{Report, Target};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;

const SECTION: &str = Section::Replays.name();

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stand = Stand::start(ground, Kind::Plain).await?;
    let intended = ground.clock.now();
    let placing = |wait| load::placing(stand.clients(), Callee::Busy, wait, plan.ring, intended);
    let first = stand.take(plan.known);
    let rate = plan.rate;
    let over = placing(proto::Wait::DialOver);
    load::open(ground, first, plan.known, rate, over).await?;
    no_rooms(&stand).await?;
    // Any of them, again and again.
    let (known, again) = (plan.known.max(1), placing(proto::Wait::Accepted));
    let replay: Act = Arc::new(move |n| again(first + n % known));
    let (mut rates, mut p99, mut cpu, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut written = Vec::new();
    for _ in 0..plan.blocks {
        let (commits, used) = (stand.commits()?, stand.processor_time()?);
        let numbers = Arc::new(AtomicU64::new(0));
        let done = load::closed(
            ground,
            numbers,
            plan.replays_in_flight,
            plan.block,
            Arc::clone(&replay),
        )
        .await?;
        let used = stand.processor_time()?.saturating_sub(used);
        count += done.count();
        rates.push(done.rate());
        p99.push(load::share_ms(&done, 0.99));
        cpu.push(used.as_secs_f64() * 1e6 * per(done.count()));
        written.push(float(stand.commits()? - commits));
    }
    let mut add = |name, values, target| report.add(SECTION, name, count, values, target);
    add(("replays", "1/s"), rates, Some(Target::AtLeast(25_000.0)));
    add(("time, p99", "ms"), p99, Some(Target::AtMost(10.0)));
    add(("cpu of serve", "µs each"), cpu, None);
    add(("commits", "count"), written, Some(Target::AtMost(0.0)));
    Ok(())
}
