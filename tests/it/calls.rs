//! One call each, in a simulated world: what the callee does, and what becomes of it.

use std::time::Duration;

use ringonce::model::attempt::State;
use ringonce::model::disposition::Disposition;

use super::world::Lab;

#[tokio::test(start_paused = true)]
async fn each_scripted_callee_ends_as_documented() {
    for (to, state, disposition) in [
        ("+12025550100", State::Answered, Some(Disposition::Answered)),
        ("+12025550186", State::NotConnected, Some(Disposition::Busy)),
        (
            "+12025550103",
            State::NotConnected,
            Some(Disposition::Declined),
        ),
        (
            "+12025550108",
            State::NotConnected,
            Some(Disposition::NoAnswer),
        ),
        (
            "+12025550104",
            State::NotConnected,
            Some(Disposition::WrongNumber),
        ),
        (
            "+12025550153",
            State::NotConnected,
            Some(Disposition::CarrierFailure),
        ),
        ("+12025550199", State::Uncertain, None),
        ("+12025550198", State::Uncertain, None),
    ] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", to)).await;
        let attempt = alive.until_settled("a").await;
        assert_eq!(attempt.state, state, "{to}: {attempt:?}");
        assert_eq!(attempt.settled.map(|s| s.disposition), disposition, "{to}");
        assert_eq!(lab.sip_calls(), 1, "{to}");
        lab.assert_promises();
        lab.until_no_rooms(Duration::from_hours(2)).await;
    }
}
