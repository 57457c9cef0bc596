//! Class b: what *not found* means, and trunks that no list can heal.

use ringonce::lab::platform::Fault;
use ringonce::model::attempt::State;
use ringonce::model::disposition::Disposition;
use ringonce::model::verdict::TryFailure;
use ringonce::provider::wire::Method;
use tokio::time::sleep;

use super::tap::{Made, Tap, carrier, ms, page, refused, s};
use crate::world::Lab;

const ANSWERS: &str = "+12025550100";

const MISSING: [&str; 4] = [
    "requested sip trunk does not exist",
    "twirp error unknown: requested sip trunk does not exist",
    "object cannot be found",
    "twirp error unknown: object cannot be found",
];

/// The trunk was made anew: one list, one repetition, one SIP call.
#[tokio::test(start_paused = true)]
async fn r08_a_trunk_that_is_gone_is_looked_up_once() {
    for text in MISSING {
        let lab = Lab::new(1);
        let (alive, tap) = Tap::on(&lab, Method::Dial, move |before| {
            if before == 0 {
                Made::Instead(ms(5), refused(404, "not_found", text))
            } else {
                Made::Through
            }
        })
        .await;
        // What the process knows is the old id; what is listed is another one.
        alive.place(lab.call("a", ANSWERS)).await;
        sleep(ms(300)).await;
        lab.fault(Fault::named("trunk_flush"));
        let attempt = alive.until_state("a", State::Answered).await;
        let heals = attempt.placed.unwrap().heals;
        assert_eq!((attempt.tries, heals), (1, 1), "{text}");
        assert_eq!(tap.count(Method::ListTrunks), 2, "the first, and one more");
        assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (2, 1));
    }
}

/// The list still has the very id that was not found: a repetition would be the same again.
#[tokio::test(start_paused = true)]
async fn r08_a_trunk_that_is_listed_as_it_was_is_not_dialed_again_in_the_try() {
    for text in MISSING {
        let lab = Lab::new(1);
        let (alive, tap) = Tap::on(&lab, Method::Dial, move |_| {
            Made::Instead(ms(5), refused(404, "not_found", text))
        })
        .await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_state("a", State::NotDialed).await;
        assert_eq!(attempt.last_failure, Some(TryFailure::TrunkNotFound));
        let tries = usize::try_from(attempt.tries).unwrap();
        assert_eq!(tap.count(Method::Dial), tries, "one a try");
        assert!(tap.count(Method::ListTrunks) <= tries + 1);
        lab.until_no_rooms(s(60)).await;
        lab.rooms.assert_paired();
    }
}

/// It is gone again right after it was looked up: two dials, and that was the try.
#[tokio::test(start_paused = true)]
async fn r08_a_second_time_in_one_try_is_the_end_of_the_try() {
    let lab = Lab::with(1, "[attempt]\ntries = 1\n", |_| {});
    let (alive, tap) = Tap::on(&lab, Method::Dial, |_| {
        Made::Instead(ms(5), refused(404, "not_found", MISSING[0]))
    })
    .await;
    alive.place(lab.call("a", ANSWERS)).await;
    sleep(ms(300)).await;
    lab.fault(Fault::named("trunk_flush"));
    let attempt = alive.until_state("a", State::NotDialed).await;
    assert_eq!(attempt.last_failure, Some(TryFailure::TrunkNotFound));
    assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (2, 0));
    assert_eq!(tap.count(Method::ListTrunks), 2);
}

/// The four other kinds of *not found* look nothing up. Those of another server are no fault of
/// the call, and it waits.
#[tokio::test(start_paused = true)]
async fn r08_other_404s_are_no_missing_trunk() {
    let number = (State::NotConnected, Some(Disposition::WrongNumber));
    let request = (State::NotDialed, Some(Disposition::RequestRejected));
    let waits = (State::Queued, None);
    for (answer, wanted) in [
        (carrier(404, "not_found", 404, "Not Found"), number),
        (
            refused(404, "not_found", "requested room does not exist"),
            request,
        ),
        (page(404, "<h1>404 page not found</h1>"), waits),
        (refused(404, "bad_route", "no handler"), waits),
    ] {
        let lab = Lab::with(1, "[attempt]\ntries = 1\n", |_| {});
        let (alive, tap) = Tap::on(&lab, Method::Dial, move |_| {
            Made::Instead(ms(5), answer.clone())
        })
        .await;
        alive.place(lab.call("a", ANSWERS)).await;
        sleep(s(120)).await;
        let attempt = alive.attempt("a").await;
        let disposition = attempt.settled.as_ref().map(|settled| settled.disposition);
        assert_eq!((attempt.state, disposition), wanted, "{attempt:?}");
        assert_eq!(tap.count(Method::Dial) > 1, wanted == waits);
        assert_eq!(tap.count(Method::ListTrunks), 1, "the first look-up alone");
    }
}

/// Nothing can heal it: the list cannot be had, or says what it said before. A hundred calls
/// at once ask few times, make no trunk, ring nobody and leave no room.
#[tokio::test(start_paused = true)]
async fn r09_what_no_list_heals_is_listed_few_times() {
    for unlisted in [false, true] {
        let lab = Lab::with(1, "[attempt]\ntries = 1\n", |_| {});
        let (alive, tap) = Tap::node(&lab, move |request, before| {
            if request.method == Method::Dial {
                Made::Instead(ms(5), refused(404, "not_found", MISSING[0]))
            } else if request.method == Method::ListTrunks && unlisted && before > 0 {
                Made::Instead(ms(50), refused(503, "unavailable", "no"))
            } else {
                Made::Through
            }
        })
        .await;
        let calls = (0..100).map(|n| lab.call(&format!("a{n}"), &format!("+999{n:08}00")));
        let placing = calls.map(|call| alive.place(call));
        futures_util::future::join_all(placing).await;
        sleep(s(5)).await;
        let lists = tap.count(Method::ListTrunks);
        assert!(lists < 20, "{lists} lists for 100 calls");
        assert_eq!(lab.sip_calls(), 0);
        for n in 0..100 {
            let attempt = alive.attempt(&format!("a{n}")).await;
            let wanted = if unlisted {
                // The platform may be well again in a moment.
                State::Queued
            } else {
                State::NotDialed
            };
            assert_eq!(attempt.state, wanted, "{attempt:?}");
        }
        lab.until_no_rooms(s(60)).await;
    }
}
