//! What was lost with a store, and is adopted: intents from before its memory.

use std::time::Duration;

use ringonce::ledger::store::{Epoch, Store};
use ringonce::model::attempt::{Attempt, Cause, Rule, State};
use ringonce::model::disposition::Disposition;
use tokio::time::sleep;

use super::world::Lab;

fn rule(attempt: &Attempt) -> Option<Rule> {
    attempt.waiting.as_ref().map(|w| w.reason.rule)
}

const BUSY: &str = "+12025550186";

#[tokio::test(start_paused = true)]
async fn lost_history_is_refused_and_decided_anew_once_it_is_adopted() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let mut call = lab.call("a", BUSY);
    call.spec.intend_time = lab.epoch().since.minus(Duration::from_mins(1));
    for _ in 0..2 {
        let refused = alive.place(call.clone()).await;
        assert_eq!(refused.state, State::Refused);
        assert_eq!(rule(&refused), Some(Rule::HistoryLost));
        assert!(refused.settled.is_none(), "nothing is known of the call");
    }
    alive.kill().await;
    let adopted = Epoch {
        since: call.spec.intend_time.minus(Duration::from_secs(1)),
        ..lab.epoch()
    };
    lab.store.begin_epoch(adopted).await.unwrap();
    let alive = lab.node().await;
    let placed = alive.place(call).await;
    assert_eq!(placed.state, State::Reserved);
    let over = alive.until_settled("a").await;
    assert_eq!(over.state, State::NotConnected);
    let first = over.history.first().unwrap();
    assert_eq!(first.cause, Cause::Rule(Rule::HistoryLost));
    assert_eq!(lab.sip_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_expired_before_lost_history_was_adopted_is_refused_as_expired() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let mut call = lab.call("a", BUSY);
    call.spec.intend_time = lab.epoch().since.minus(Duration::from_mins(1));
    call.spec.expire_time = lab.now().plus(Duration::from_mins(1));
    let refused = alive.place(call.clone()).await;
    assert_eq!(rule(&refused), Some(Rule::HistoryLost));
    alive.kill().await;
    let adopted = Epoch {
        since: call.spec.intend_time.minus(Duration::from_secs(1)),
        ..lab.epoch()
    };
    lab.store.begin_epoch(adopted).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    let alive = lab.node().await;
    for _ in 0..2 {
        let over = alive.place(call.clone()).await;
        assert_eq!(over.state, State::Refused);
        assert_eq!(rule(&over), Some(Rule::Expired), "{over:?}");
        let settled = over.settled.as_ref().map(|settled| settled.disposition);
        assert_eq!(settled, Some(Disposition::Expired));
    }
    assert_eq!(lab.sip_calls(), 0);
}
