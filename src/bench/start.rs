//! The start on a large store, after a `kill -9` while phones rang.

use std::time::Duration;

use super::fill;
use super::load::{self, Callee};
use super::placements::float;
use super::report::{Report, Target};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;

const SECTION: &str = Section::Start.name();

/// Calls that ring when the service is killed.
const RINGING: u64 = 100;

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stand = Stand::start(ground, Kind::Plain).await?;
    stand.stop().await?;
    fill::fill(ground, &stand.folder.file("bench.db"), plan.stored).await?;
    stand.start_again(ground).await?;
    let (mut ready, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..plan.starts {
        let placing = load::placing(
            stand.clients(),
            Callee::Rings,
            proto::Wait::Accepted,
            plan.ring,
            ground.clock.now(),
        );
        let first = stand.take(RINGING);
        load::open(ground, first, RINGING, plan.rate, placing).await?;
        stand
            .until("phones that ring", |tally| tally.legs > 0)
            .await?;
        stand.kill().await?;
        ready.push(stand.start_again(ground).await?.as_secs_f64() * 1e3);
        // Recovery has begun what it found; what it then holds is what it holds idle.
        tokio::time::sleep(Duration::from_secs(1)).await;
        memory.push(float(stand.resident()?) / 1024.0);
    }
    let count = plan.stored;
    let most = |value| Some(Target::AtMost(value));
    report.add(
        SECTION,
        ("ready after kill -9", "ms"),
        count,
        ready,
        most(200.0),
    );
    report.add(SECTION, ("resident, idle", "MB"), count, memory, most(30.0));
    Ok(())
}
