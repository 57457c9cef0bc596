//! What befalls the platform, the store, the nodes and their clocks, until the sky clears.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::armed::Blow;
use super::chance::Chance;
use super::stage::{Alive, Slot, Stage};
use crate::lab::platform::Fault;

/// The methods of the platform that we use.
const METHODS: [&str; 9] = [
    "ListSIPOutboundTrunk",
    "CreateRoom",
    "CreateDispatch",
    "ListDispatch",
    "ListParticipants",
    "CreateSIPParticipant",
    "CreateSIPParticipant",
    "DeleteRoom",
    "ListRooms",
];

/// How long a lost request may hold a pass of the reconciler up: its sends, their timeouts,
/// and the request after it.
const REACH: Duration = Duration::from_secs(80);

/// How long the tasks of a process that ends have to let go.
const SLACK: Duration = Duration::from_secs(5);

/// The names of faults that are lifted when the sky clears.
const LIFTED: [&str; 12] = [
    "overload",
    "no_bridge",
    "lose_request",
    "lose_reply",
    "slow",
    "late",
    "refuse",
    "room_create_500",
    "dispatch_503",
    "delete_500",
    "agent_absent",
    "webhook_outage",
];

/// Requests to the platform are lost, late or refused.
pub(super) async fn wire(stage: Arc<Stage>, mean: Duration) {
    let chance = Chance::new(stage.plan.seed, "wire");
    while next(&stage, &chance, mean).await {
        let fault = a_wire_fault(&chance);
        let held = fault
            .millis
            .and_then(|m| u64::try_from(m).ok())
            .unwrap_or(0);
        throw(&stage, Duration::from_millis(held) + REACH, fault);
    }
    for name in LIFTED {
        let lifted = Fault {
            times: Some(0),
            ..Fault::named(name)
        };
        throw(&stage, REACH, lifted);
    }
}

fn a_wire_fault(chance: &Chance) -> Fault {
    let method = chance.of("CreateRoom", &METHODS);
    let times = Some(1 + u32::try_from(chance.below(4)).unwrap_or(0));
    let named = |name| Fault {
        times,
        ..Fault::named(name)
    };
    let held = |name, least, most| Fault {
        times,
        millis: i64::try_from(chance.millis(least, most).as_millis()).ok(),
        ..Fault::on(name, method)
    };
    let on = |name| Fault {
        times,
        ..Fault::on(name, method)
    };
    match chance.below(12) {
        0 => on("lose_request"),
        1 => on("lose_reply"),
        2 => held("slow", 100, 200_000),
        3 => held("late", 100, 200_000),
        4 => Fault {
            status: Some(chance.of(503, &[400, 401, 429, 500])),
            code: Some("unavailable".to_owned()),
            msg: Some("no".to_owned()),
            ..on("refuse")
        },
        5 => named("overload"),
        6 => named("no_bridge"),
        7 => named("room_create_500"),
        8 => named("dispatch_503"),
        9 => named("delete_500"),
        10 => named("agent_absent"),
        _ => named("webhook_outage"),
    }
}

/// Something of the platform dies or forgets.
pub(super) async fn breaks(stage: Arc<Stage>, mean: Duration) {
    let chance = Chance::new(stage.plan.seed, "breaks");
    let all = [
        "redis_flush",
        "bridge_killed",
        "bridge_killed",
        "server_crash",
        "server_restart",
        "clock_skew",
    ];
    while next(&stage, &chance, mean).await {
        let name = chance.of("trunk_flush", &all);
        let fault = Fault {
            millis: Some(chance.signed(Duration::from_secs(20)) / 1_000),
            ..Fault::named(name)
        };
        throw(&stage, REACH, fault);
    }
    let right = Fault {
        millis: Some(0),
        ..Fault::named("clock_skew")
    };
    throw(&stage, REACH, right);
}

fn throw(stage: &Stage, reach: Duration, fault: Fault) {
    stage.judge.did(reach, || {
        let Fault {
            name,
            method,
            times,
            millis,
            ..
        } = &fault;
        format!("the platform: {name} {method:?} {times:?} {millis:?}")
    });
    // Every name is one that the platform knows; its own test says so.
    drop(stage.world.fault(fault));
}

/// The store refuses everything for a while.
pub(super) async fn outages(stage: Arc<Stage>, mean: Duration) {
    let chance = Chance::new(stage.plan.seed, "outages");
    while next(&stage, &chance, mean).await {
        let span = chance.millis(100, 30_000);
        stage.sky.store_out(span);
        let reach = span + super::store::LEASE;
        stage
            .judge
            .did(reach, || format!("the store is out for {span:?}"));
        sleep(span).await;
    }
}

/// Wall clocks step.
pub(super) async fn clocks(stage: Arc<Stage>, mean: Duration) {
    let chance = Chance::new(stage.plan.seed, "clocks");
    let mut off = vec![0_i64; stage.slots.len()];
    while next(&stage, &chance, mean).await {
        let at = chance.index(stage.slots.len());
        let most = chance.of(4, &[4, 4, 60]);
        let to = chance.signed(Duration::from_secs(most));
        step(&stage, at, &mut off, to);
    }
    for at in 0..stage.slots.len() {
        step(&stage, at, &mut off, 0);
    }
}

fn step(stage: &Stage, at: usize, off: &mut [i64], to: i64) {
    let (Some(slot), Some(off)) = (stage.slots.get(at), off.get_mut(at)) else {
        return;
    };
    slot.clock.step(to - *off);
    *off = to;
    stage.judge.skewed(Duration::from_micros(to.unsigned_abs()));
    stage.judge.did(super::store::LEASE, || {
        format!("the clock of node {at} is off by {to} us")
    });
}

/// A node is struck at one of its polls, by one blow at a time.
pub(super) async fn blows(stage: Arc<Stage>, at: usize, mean: Duration, kinds: Vec<Kind>) {
    let chance = Chance::new(stage.plan.seed, &format!("blows {at}"));
    while next(&stage, &chance, mean).await {
        let Some(alive) = stage.slots.get(at).and_then(Slot::alive) else {
            continue;
        };
        let Some(kind) = kinds.get(chance.index(kinds.len())) else {
            return;
        };
        let span = chance.millis(100, chance.of(20_000, &[100_000, 400_000]));
        let blow = match kind {
            Kind::Crash => Blow::Crash,
            Kind::Drop => Blow::Drop,
            Kind::Marked => Blow::HoldMarked(span),
            Kind::Panic => Blow::Panic,
            Kind::Drain => {
                drain(&stage, at, &alive, &chance).await;
                continue;
            }
            Kind::Pause if chance.hits(0.5) => Blow::Halt(span),
            Kind::Pause => Blow::Hold(span),
        };
        alive.armed.arm(blow, chance.below(40));
        let patience = mean.max(Duration::from_secs(5));
        if timeout(patience, alive.armed.struck()).await.is_err() && alive.armed.disarm() {
            continue;
        }
        let halted = match blow {
            Blow::Halt(span) => span,
            Blow::Hold(_) | Blow::HoldMarked(_) | Blow::Crash | Blow::Drop | Blow::Panic => {
                Duration::ZERO
            }
        };
        let reach = halted + super::store::LEASE;
        stage
            .judge
            .did(reach, || format!("node {at} is struck: {blow:?}"));
        if let Blow::Hold(span) | Blow::HoldMarked(span) = blow {
            // One placement stands still; the next blow does not wait for it.
            stage.tasks.spawn("wakes", async move {
                sleep(span).await;
                alive.node.tasks().wake_paused();
            });
            continue;
        }
        sleep(halted).await;
        alive.node.tasks().wake_paused();
    }
}

/// What a node is struck with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Crash,
    Pause,
    Drop,
    Marked,
    Panic,
    Drain,
}

/// A process is told to end: it admits nothing more, waits a while for its dials, and ends.
async fn drain(stage: &Stage, at: usize, alive: &Alive, chance: &Chance) {
    let patience = Duration::from_secs(chance.of(90, &[1, 10]));
    let reach = patience + SLACK + super::store::LEASE;
    stage
        .judge
        .did(reach, || format!("node {at} drains for {patience:?}"));
    alive.node.begin_drain();
    let settled = alive.node.settle(patience).await;
    alive.node.shut_down(SLACK).await;
    stage.judge.did(super::store::LEASE, || {
        format!("node {at} has drained, dials settled: {settled}")
    });
    alive.armed.leave();
}

/// Waits for the next blow; whether there is one.
async fn next(stage: &Stage, chance: &Chance, mean: Duration) -> bool {
    sleep(chance.span(Duration::from_millis(10), mean * 2)).await;
    !stage.sky.is_clear()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::platform::fault_names;

    #[test]
    fn every_fault_that_is_thrown_has_a_name() {
        let known = fault_names();
        let chance = Chance::new(1, "names");
        for _ in 0..200 {
            let fault = a_wire_fault(&chance);
            assert!(known.contains(&fault.name.as_str()), "{}", fault.name);
        }
        assert!(LIFTED.iter().all(|name| known.contains(name)));
    }
}
