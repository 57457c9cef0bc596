//! What the service adds to the platform's own time, in an open loop.
//!
//! A placement's time runs from its planned beginning to the answer that its dial is over.
//! From it goes what the platform itself took for that placement's room, as the platform
//! measured it: from the last byte of a request to its answer, `CreateRoom`,
//! `CreateDispatch` and `CreateSIPParticipant` together. All that is left counts as added:
//! the commits, gRPC, and HTTP and connections on both sides. Bare shows how much of that
//! is HTTP.

use super::bare::Bare;
use super::load::{self, Act, Callee, Done};
use super::placements::no_rooms;
use super::report::{Report, Target, share};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section, measure};
use crate::api::proto;
use crate::lab::platform::Timings;

const SECTION: &str = Section::Latency.name();

/// The requests that come before the answer.
const BEFORE: [&str; 3] = ["CreateRoom", "CreateDispatch", "CreateSIPParticipant"];

#[derive(Default)]
struct Blocks {
    count: u64,
    p50: Vec<f64>,
    p99: Vec<f64>,
    late: Vec<f64>,
}

impl Blocks {
    fn take(&mut self, done: &Done, timings: &Timings) {
        let added: Vec<f64> = (done.each.iter())
            .map(|one| one.took.as_secs_f64() * 1e3 - inside_ms(timings, &one.room))
            .collect();
        self.count += done.count();
        self.p50.push(share(&added, 0.5));
        self.p99.push(share(&added, 0.99));
        self.late.push(load::late_ms(done, 0.99));
    }
}

/// What the platform itself took, up to the answer of the dial.
#[expect(clippy::cast_precision_loss, reason = "no request takes 2^52 µs")]
fn inside_ms(timings: &Timings, room: &str) -> f64 {
    let methods = timings.answers.get(room);
    let micros = |method| {
        let told = methods.and_then(|methods| methods.get(method));
        told.copied().unwrap_or_default()
    };
    BEFORE.into_iter().map(micros).sum::<u64>() as f64 / 1e3
}

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let stand = Stand::start(ground, Kind::Plain).await?;
    let bare = Bare::new(ground, stand.platform()).await?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few thousand"
    )]
    let count = (plan.rate * plan.block.as_secs_f64()) as u64;
    let placing = load::placing(
        stand.clients(),
        Callee::Busy,
        proto::Wait::DialOver,
        plan.ring,
        ground.clock.now(),
    );
    one(ground, plan, &stand, count / 4, placing.clone()).await?;
    let (mut without, mut with, mut syncs) = (Blocks::default(), Blocks::default(), Vec::new());
    for _ in 0..plan.blocks {
        syncs.push(measure::sync_times(stand.folder.path())?.0);
        let done = one(ground, plan, &stand, count, bare.act(ground, false)).await?;
        without.take(&done, &stand.timings().await?);
        let done = one(ground, plan, &stand, count, placing.clone()).await?;
        with.take(&done, &stand.timings().await?);
    }
    let most = |value| Some(Target::AtMost(value));
    let mut add =
        |name, count, values, target| report.add(SECTION, (name, "ms"), count, values, target);
    add("added, p50", with.count, with.p50, most(2.0));
    add("added, p99", with.count, with.p99, most(8.0));
    add("bare, p50", without.count, without.p50, None);
    add("bare, p99", without.count, without.p99, None);
    add("late beginnings, p99", with.count, with.late, None);
    add("fsync of the disk, p50", 100, syncs, None);
    Ok(())
}

async fn one(
    ground: &Ground,
    plan: &Plan,
    stand: &Stand,
    count: u64,
    act: Act,
) -> Result<Done, Error> {
    let done = load::open(ground, stand.take(count), count, plan.rate, act).await?;
    no_rooms(stand).await?;
    Ok(done)
}
