//! People: those who change their minds, those who use a key twice, and those who say what
//! became of a call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::calls::Wanted;
use super::chance::Chance;
use super::queue::{PATIENCE, deliver};
use super::stage::{Alive, Stage};
use crate::admission::CancelCommand;
use crate::ledger::Filter;
use crate::model::attempt::{Mode, Resolution, State};
use crate::node::Resolve;

/// States that a cancel waits for: the rare and the short ones, which a random moment misses.
const SOUGHT: [State; 7] = [
    State::Deferred,
    State::Reserved,
    State::Dialing,
    State::Answered,
    State::Uncertain,
    State::NeedsReview,
    State::NotConnected,
];

/// How long somebody waits for a state that may never come.
const AWAITED: Duration = Duration::from_mins(20);

/// The most attempts of one page of a campaign.
const PAGE: usize = 50;

/// Somebody changes their mind about a call, at some moment of it, or in some state.
pub(super) async fn cancel(stage: Arc<Stage>, call: Wanted, begun: Instant, chance: Chance) {
    sleep_until(begun + call.at).await;
    let most = if chance.hits(0.5) {
        let sought = chance.of(State::Queued, &SOUGHT);
        if !stage.judge.reaches(&call.key(), sought, AWAITED).await {
            return;
        }
        chance.of(0, &[0, 5, 1_000])
    } else {
        chance.of(800, &[3_000, 30_000, 120_000])
    };
    sleep(chance.millis(0, most)).await;
    for _ in 0..=chance.below(2) {
        let Some(alive) = stage.any(&chance) else {
            return;
        };
        let Some(command) = command(&call, &chance) else {
            return;
        };
        let (key, mode) = (call.key(), command.mode);
        stage.judge.cancels_at(&key);
        stage
            .judge
            .did(Duration::ZERO, || format!("cancel {key} {mode:?}"));
        canceled(&alive, command).await;
        sleep(chance.millis(0, 20_000)).await;
    }
}

fn command(call: &Wanted, chance: &Chance) -> Option<CancelCommand> {
    Some(CancelCommand {
        workspace: call.workspace().parse().ok()?,
        attempt: call.id().parse().ok()?,
        mode: mode(chance),
        allow_missing: chance.hits(0.5),
        reason: "the contact asked for it".to_owned(),
        requested_by: "scheduler".to_owned(),
    })
}

fn mode(chance: &Chance) -> Mode {
    chance.of(Mode::BeforeDial, &[Mode::StopRinging, Mode::HangUp])
}

async fn canceled(alive: &Alive, command: CancelCommand) {
    let (tell, told) = oneshot::channel();
    let admission = Arc::clone(alive.node.admission());
    alive.node.tasks().spawn("cancel", async move {
        let _gone = tell.send(admission.cancel(&command).await.is_ok());
    });
    // What came of it is seen in the ledger.
    drop(timeout(PATIENCE, told).await);
}

/// Somebody cancels what a campaign has open, a page at a time.
pub(super) async fn cancel_campaign(stage: Arc<Stage>, chance: Chance) {
    sleep(chance.span(Duration::ZERO, stage.plan.span)).await;
    let Some(alive) = stage.any(&chance) else {
        return;
    };
    let workspace = if chance.hits(0.5) { "w" } else { "v" };
    let campaign = format!("campaign-{}", chance.below(5));
    let (Ok(workspace), Ok(campaign_id)) = (workspace.parse(), campaign.parse()) else {
        return;
    };
    let filter = Filter {
        workspace,
        contact: None,
        campaign: Some(campaign_id),
        outreach: None,
        states: Vec::new(),
        from: None,
        to: None,
        descending: false,
    };
    let mode = mode(&chance);
    stage
        .judge
        .did(Duration::ZERO, || format!("cancel {campaign} {mode:?}"));
    let mut after = None;
    while let Ok((found, next)) = alive.node.ledger().list(&filter, after, PAGE).await {
        let each = found.into_iter().map(|(attempt, _)| {
            stage
                .judge
                .cancels_at(&attempt.id.in_workspace(&attempt.workspace));
            let command = CancelCommand {
                workspace: attempt.workspace,
                attempt: attempt.id,
                mode,
                allow_missing: false,
                reason: "the campaign is over".to_owned(),
                requested_by: "scheduler".to_owned(),
            };
            canceled(&alive, command)
        });
        join_all(each).await;
        if next.is_none() {
            return;
        }
        after = next;
    }
}

/// Somebody uses the key of a call for another one.
pub(super) async fn reuse(stage: Arc<Stage>, call: Wanted, begun: Instant, chance: Chance) {
    let after = chance.millis(0, chance.of(100, &[10_000, 300_000]));
    sleep_until(begun + call.at + after).await;
    let other = call.of_another_contact();
    if let Ok(request) = other.request(stage.now()) {
        // What came of it is seen in the ledger: what the first one fixed stays.
        drop(deliver(&stage, &chance, request).await);
    }
}

/// Somebody knows what became of a call that waits for a person, and says so.
pub(super) async fn resolve(stage: Arc<Stage>, call: Wanted, begun: Instant, chance: Chance) {
    sleep_until(begun + call.at).await;
    let key = call.key();
    if !stage.judge.reaches(&key, State::NeedsReview, AWAITED).await {
        return;
    }
    sleep(chance.millis(0, 60_000)).await;
    // Nobody says that it is over while the phone rings.
    let resolution = loop {
        let (calls, legs, answered) = stage.judge.truth(&key);
        match (calls, legs, answered) {
            (_, 0, true) => break Resolution::Answered,
            (0, ..) => break Resolution::NotDialed,
            (_, 0, false) => break Resolution::RangUnanswered,
            (_, _, _) => sleep(Duration::from_secs(10)).await,
        }
    };
    let (Ok(workspace), Ok(attempt)) = (call.workspace().parse(), call.id().parse()) else {
        return;
    };
    let Some(alive) = stage.any(&chance) else {
        return;
    };
    stage
        .judge
        .did(Duration::ZERO, || format!("resolve {key} {resolution:?}"));
    let say = Resolve {
        workspace,
        attempt,
        resolution,
        reason: "the contact was asked".to_owned(),
        by: "operator".to_owned(),
    };
    let reconciler = Arc::clone(alive.node.reconciler());
    alive.node.tasks().spawn("resolve", async move {
        // What came of it is seen in the ledger.
        drop(reconciler.resolve(&say).await);
    });
}
