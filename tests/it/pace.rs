//! A queue that waits for the pace of a trunk: who goes first, and what waiting costs.

use std::time::Duration;

use ringonce::model::attempt::{Attempt, State};
use tokio::time::sleep;

use super::world::Lab;

const CALLS: usize = 40;

/// They were asked one by one, each at its own time, so that whoever was asked when a call
/// became free went first, and a queue of thousands was written anew every second.
#[tokio::test(start_paused = true)]
async fn those_that_wait_for_a_trunk_go_in_their_order_and_are_not_asked_one_by_one() {
    let lab = Lab::with(1, "[trunks.main]\ncalls_per_second = 1.0\n", |_| {});
    let alive = lab.node().await;
    for n in 0..CALLS {
        let mut call = lab.call(&format!("a{n}"), &format!("+999{n:08}86"));
        call.spec.priority = u8::try_from(n % 10).unwrap();
        alive.place(call).await;
    }
    sleep(Duration::from_secs(10)).await;
    let mut all = Vec::new();
    for n in 0..CALLS {
        all.push(alive.attempt(&format!("a{n}")).await);
    }
    // The very first went at once, when nobody waited.
    let (waiting, gone): (Vec<&Attempt>, Vec<&Attempt>) =
        all.iter().skip(1).partition(|a| a.state == State::Queued);
    assert!((8..=12).contains(&gone.len()), "{} went", gone.len());
    let least = gone.iter().map(|a| a.spec.priority).min();
    let most = waiting.iter().map(|a| a.spec.priority).max();
    assert!(least >= most, "{least:?} went before {most:?}");
    let asked: u32 = waiting
        .iter()
        .map(|a| a.waiting.as_ref().unwrap().count)
        .sum();
    let once_each = u32::try_from(waiting.len()).unwrap();
    assert!(asked <= once_each + 12, "asked {asked} times");
    for n in 0..CALLS {
        let attempt = alive.until_settled(&format!("a{n}")).await;
        assert_eq!(attempt.state, State::NotConnected);
    }
    lab.assert_promises();
}
