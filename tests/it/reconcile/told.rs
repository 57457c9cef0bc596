//! The same with webhooks: what they tell settles what looks alone could not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringonce::inbox::Inbox;
use ringonce::lab::platform::{Behaviour, Worker};
use ringonce::lab::world::Hears;
use ringonce::model::attempt::{EndCause, State};
use ringonce::model::disposition::{Disposition, Rang};
use tokio::time::sleep;

use crate::world::{Alive, Lab};

const ANSWERED_UNHEARD: &str = "+12025550198";
const CUT: &str = "+12025550199";
const ANSWERS: &str = "+12025550100";
const RINGS: &str = "+12025550108";

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[derive(Debug)]
struct Ear(Arc<Inbox>);

#[async_trait]
impl Hears for Ear {
    async fn hear(&self, authorization: &str, body: &[u8]) -> Option<u16> {
        let taken = self.0.take(Some(authorization.as_bytes()), body).await;
        Some(taken.status())
    }
}

async fn listening(lab: &Lab) -> Alive {
    let alive = lab.node().await;
    lab.world
        .tell(Arc::new(Ear(Arc::clone(alive.node.inbox()))));
    alive
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_settled_by_what_was_told_within_its_horizon() {
    for to in [ANSWERED_UNHEARD, CUT] {
        let lab = Lab::new(1);
        let alive = listening(&lab).await;
        alive.place(lab.call("a", to)).await;
        alive.until_state("a", State::Uncertain).await;
        let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
        let horizon = attempt.placed.as_ref().unwrap().horizon().unwrap();
        assert!(attempt.since <= horizon.plus(s(5)));
        if to == CUT {
            let settled = attempt.settled.clone().unwrap();
            assert_eq!(attempt.state, State::NotConnected);
            assert_eq!(settled.disposition, Disposition::Unreached);
            assert_eq!(settled.rang, Rang::Rang);
        } else {
            assert_eq!(attempt.state, State::Answered);
            let attempt = alive.until_state("a", State::Ended).await;
            assert_eq!(attempt.settled.unwrap().end_cause, Some(EndCause::LegLeft));
        }
        lab.until_no_rooms(s(60)).await;
        sleep(s(300)).await;
        lab.assert_promises();
        lab.rooms.assert_paired();
        let gaps = alive.node.reconciler().gaps().counted();
        assert!(gaps.values().all(|n| *n == 0), "{gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_is_missed_at_once() {
    for (to, after, state) in [
        (RINGS, s(8), State::NotConnected),
        (ANSWERS, s(12), State::Ended),
    ] {
        let leaves = Behaviour::Leaves {
            join: Duration::from_millis(400),
            after,
        };
        let lab = Lab::with(1, "", |settings| {
            settings.workers = vec![Worker::new("caller", leaves)];
            settings.times.talk = s(600);
        });
        let alive = listening(&lab).await;
        let begun = lab.now();
        alive.place(lab.call("a", to)).await;
        let attempt = alive.until_state("a", state).await;
        let settled = attempt.settled.clone().unwrap();
        let took = lab.now().since(begun);
        if state == State::Ended {
            assert_eq!(settled.end_cause, Some(EndCause::AgentLost));
            assert!((s(22)..s(26)).contains(&took), "{took:?}");
        } else {
            assert_eq!(settled.disposition, Disposition::AgentLost);
            assert!((s(8)..s(12)).contains(&took), "{took:?}");
        }
        lab.until_no_rooms(s(10)).await;
        sleep(s(200)).await;
        lab.assert_promises();
        assert_eq!(lab.rooms.causes(), ["agent_lost"]);
        lab.rooms.assert_paired();
    }
}
