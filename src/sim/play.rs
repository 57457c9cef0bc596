//! One world, from its seed to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::calls::wanted;
use super::chance::Chance;
use super::mail::Mail;
use super::people;
use super::plan::Plan;
use super::queue;
use super::stage::Stage;
use super::violation::{Invariant, Violation};
use super::weather::{self, Kind};
use crate::model::attempt::State;

/// How often the judge looks at what time alone breaks.
const LOOK: Duration = Duration::from_secs(5);

/// The least quiet at the end: longer than the horizon and the longest hold together.
const QUIET: Duration = Duration::from_secs(400);

/// The longest: whatever is not over by then has wedged.
const LONGEST: Duration = Duration::from_mins(45);

/// Whether uncertain attempts settle by themselves, or come to wait for a person.
const SETTLES: bool = true;

/// What came of a world.
#[derive(Debug, Clone)]
pub struct Played {
    /// How many attempts are in each state.
    pub states: BTreeMap<State, u64>,
    /// SIP calls that were started.
    pub started: u64,
    /// Cancels by the state of their attempt at that moment.
    pub cancels: BTreeMap<State, u64>,
    /// The hash over all that happened: the same for the same seed.
    pub digest: [u8; 32],
    /// The broken promise that ended it.
    pub violation: Option<Violation>,
}

/// Plays the world of `plan`, in the paused time of the present runtime.
///
/// # Errors
///
/// If the configuration of the simulation is none.
pub async fn play(plan: Plan) -> anyhow::Result<Played> {
    let stage = Stage::new(plan, SETTLES)?;
    let begun = Instant::now();
    stage.tasks.spawn("world", Arc::clone(&stage.world).run());
    stage.world.tell(Arc::new(Mail {
        stage: Arc::downgrade(&stage),
        chance: Chance::new(stage.plan.seed, "mail"),
    }));
    for at in 0..stage.slots.len() {
        stage.tasks.spawn("node", Arc::clone(&stage).keep(at));
    }
    storm(&stage);
    callers(&stage, begun);
    let judge = Arc::clone(&stage.judge);
    tokio::select! {
        biased;
        () = judge.violated() => {}
        () = until_over(&stage) => {}
    }
    let panics = stage.tasks.panics();
    if panics > 0 {
        let what = format!("{panics} tasks of the simulation panicked");
        judge.broken(Invariant::NoPanic, what);
    }
    stage.strike();
    Ok(Played {
        states: judge.states(),
        started: judge.started(),
        cancels: judge.cancels(),
        digest: judge.digest(),
        violation: judge.violation(),
    })
}

fn storm(stage: &Arc<Stage>) {
    let storm = stage.plan.storm.clone();
    let of = || Arc::clone(stage);
    let tasks = &stage.tasks;
    if let Some(mean) = storm.wire {
        tasks.spawn("wire", weather::wire(of(), mean));
    }
    if let Some(mean) = storm.breaks {
        tasks.spawn("breaks", weather::breaks(of(), mean));
    }
    if let Some(mean) = storm.outage {
        tasks.spawn("outages", weather::outages(of(), mean));
    }
    if let Some(mean) = storm.clocks {
        tasks.spawn("clocks", weather::clocks(of(), mean));
    }
    let all = [
        (storm.crash, Kind::Crash),
        (storm.pause, Kind::Pause),
        (storm.drop, Kind::Drop),
        (storm.marked, Kind::Marked),
        (storm.panic, Kind::Panic),
        (storm.drain, Kind::Drain),
    ];
    let there: Vec<(Duration, Kind)> = all
        .into_iter()
        .filter_map(|(mean, kind)| Some((mean?, kind)))
        .collect();
    let Some(mean) = there.iter().map(|(mean, _)| *mean).min() else {
        return;
    };
    let kinds: Vec<Kind> = there.into_iter().map(|(_, kind)| kind).collect();
    for at in 0..stage.slots.len() {
        tasks.spawn("blows", weather::blows(of(), at, mean, kinds.clone()));
    }
}

fn callers(stage: &Arc<Stage>, begun: Instant) {
    let calls = wanted(&stage.plan);
    let chance = Chance::new(stage.plan.seed, "queue");
    for call in calls {
        let of = Arc::clone(stage);
        if chance.hits(stage.plan.cancels) {
            let cancel = people::cancel(Arc::clone(stage), call.clone(), begun, chance.clone());
            stage.tasks.spawn("cancels", cancel);
        }
        if chance.hits(stage.plan.resolves) {
            let resolve = people::resolve(Arc::clone(stage), call.clone(), begun, chance.clone());
            stage.tasks.spawn("resolves", resolve);
        }
        if chance.hits(stage.plan.reuses) {
            let reuse = people::reuse(Arc::clone(stage), call.clone(), begun, chance.clone());
            stage.tasks.spawn("reuses", reuse);
        }
        let message = queue::message(of, call, begun, chance.clone());
        stage.tasks.spawn("message", message);
    }
    let bulk = Chance::new(stage.plan.seed, "bulk");
    for _ in 0..stage.plan.bulk {
        let cancel = people::cancel_campaign(Arc::clone(stage), bulk.clone());
        stage.tasks.spawn("bulk", cancel);
    }
}

/// Until everything has come right after the storm, or must have.
async fn until_over(stage: &Stage) {
    let clear = stage.sky.clear_from();
    loop {
        sleep(LOOK).await;
        let living = stage.world.living();
        stage.judge.look(&living);
        let (open, legs) = stage.judge.open();
        let over = open == 0 && legs == 0 && living.is_empty();
        if over && Instant::now() >= clear + QUIET {
            return;
        }
        if Instant::now() >= clear + LONGEST {
            let what = format!("{open} attempts pass on, {legs} phones ring, rooms: {living:?}");
            stage.judge.broken(Invariant::Moves, what);
            return;
        }
    }
}
