//! Class a: a second ring, however it may come about.

use ringonce::admission::place::PlaceError;
use ringonce::lab::platform::{Fault, Trunk};
use ringonce::model::attempt::{Attempt, State};
use ringonce::model::disposition::Disposition;
use ringonce::provider::wire::{Answer, Lost, Method};
use tokio::time::sleep;

use super::tap::{Made, Tap, ms, page, refused, s};
use crate::world::Lab;

const ANSWERS: &str = "+12025550100";
/// Rings eight seconds, or as long as the world is set, then answers.
const ANSWERS_LATE: &str = "+12025550111";

/// What must hold once everything is over, however it went.
async fn over(lab: &Lab, attempt: &Attempt) {
    lab.until_no_rooms(s(900)).await;
    sleep(s(450)).await;
    lab.assert_promises();
    lab.assert_true(attempt);
    assert!(lab.seen().rooms.is_empty(), "a room came back");
    lab.rooms.assert_paired();
}

/// The phone rings, the reply is one of those that say nothing, and the message is delivered
/// again and again.
#[tokio::test(start_paused = true)]
async fn r01_an_unclear_reply_is_never_dialed_again() {
    let replies = || {
        [
            Answer::Lost(Lost::Broken),
            Answer::Lost(Lost::Unreadable),
            page(500, ""),
            Answer::Done(Vec::new()),
            page(200, "not json"),
        ]
    };
    for reply in replies() {
        let lab = Lab::new(1);
        let what = format!("{reply:?}");
        let (alive, tap) = Tap::on(&lab, Method::Dial, move |_| {
            Made::Answered(s(2), reply.clone())
        })
        .await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_settled("a").await;
        assert_eq!(attempt.state, State::Uncertain, "{what}");
        for _ in 0..20 {
            sleep(s(5)).await;
            alive.place(lab.call("a", ANSWERS)).await;
        }
        // The leg that talked was seen: it is the proof that settles it.
        let attempt = alive.until_state("a", State::Ended).await;
        alive.place(lab.call("a", ANSWERS)).await;
        over(&lab, &attempt).await;
        assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (1, 1), "{what}");
    }
}

/// The platform says that its time ran out, and starts the call two seconds later.
#[tokio::test(start_paused = true)]
async fn r02_a_call_that_starts_after_its_refusal_is_adopted() {
    let lab = Lab::with(1, "", |settings| settings.times.slow_answer = ms(11_900));
    lab.fault(Fault {
        millis: Some(5_700),
        ..Fault::on("late", "CreateSIPParticipant")
    });
    let (alive, tap) = Tap::on(&lab, Method::Dial, |_| {
        let text = "twirp error unknown: context deadline exceeded";
        Made::Answered(ms(3_600), refused(408, "canceled", text))
    })
    .await;
    alive.place(lab.call("a", ANSWERS_LATE)).await;
    let unclear = alive.until_settled("a").await;
    assert_eq!(unclear.state, State::Uncertain, "{unclear:?}");
    assert_eq!(lab.sip_calls(), 0, "it has not begun");
    for _ in 0..8 {
        let again = alive.place(lab.call("a", ANSWERS_LATE)).await;
        assert_eq!(again.state, State::Uncertain);
        sleep(s(1)).await;
    }
    assert_eq!(lab.sip_calls(), 1, "now it rings");
    let answered = alive.until_state("a", State::Answered).await;
    let answer = answered.placed.unwrap().answer.unwrap();
    assert!(answer.proof.contains("listed as answered"), "{answer:?}");
    let ended = alive.until_state("a", State::Ended).await;
    over(&lab, &ended).await;
    assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (1, 1));
}

/// The transport, a gateway or a limit answers the dial: nobody below or above repeats it, but
/// where the platform itself says that no bridge had it.
#[tokio::test(start_paused = true)]
async fn r03_nothing_repeats_a_dial_that_was_not_refused_for_certain() {
    for reply in [
        page(500, ""),
        page(502, ""),
        page(503, ""),
        page(504, ""),
        page(429, "slow down"),
        page(408, ""),
        refused(503, "unavailable", "twirp error unknown: other"),
        Answer::Lost(Lost::Broken),
    ] {
        let lab = Lab::new(1);
        let what = format!("{reply:?}");
        let (alive, tap) = Tap::on(&lab, Method::Dial, move |_| {
            Made::Instead(ms(10), reply.clone())
        })
        .await;
        alive.place(lab.call("a", ANSWERS)).await;
        let attempt = alive.until_settled("a").await;
        assert_eq!(attempt.state, State::Uncertain, "{what}");
        let attempt = alive.until("a", |a| a.state != State::Uncertain).await;
        assert_eq!(
            attempt.settled.as_ref().unwrap().disposition,
            Disposition::NoTrace
        );
        over(&lab, &attempt).await;
        assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (1, 0), "{what}");
    }
}

/// Two replicas on one store; the queue hands the message out again and again while it rings.
#[tokio::test(start_paused = true)]
async fn r05_redelivery_while_ringing() {
    let lab = Lab::with(1, "", |settings| settings.times.slow_answer = s(44));
    let (a, b) = (lab.node().await, lab.node().await);
    let call = lab.call("a", ANSWERS_LATE);
    a.place(call.clone()).await;
    sleep(ms(500)).await;
    let at_once = (0..20).map(|n| {
        let replica = if n % 2 == 0 { &a } else { &b };
        replica.place(call.clone())
    });
    for known in futures_util::future::join_all(at_once).await {
        assert!(
            matches!(known.state, State::Reserved | State::Dialing),
            "{known:?}"
        );
    }
    sleep(ms(29_500)).await;
    assert_eq!(b.place(call.clone()).await.state, State::Dialing);
    let answered = a.until_state("a", State::Answered).await;
    assert_eq!(b.attempt("a").await.state, State::Answered);
    let placed = answered.placed.unwrap();
    let rang = placed.answer.unwrap().at.since(placed.marker.unwrap().at);
    assert!((s(44)..s(46)).contains(&rang), "{rang:?}");
    let mut other = call.clone();
    other.private.to = "+12025550143".parse().unwrap();
    for replica in [&a, &b] {
        let refused = replica.node.admission().place(other.clone()).await;
        let Err(PlaceError::IdReused { fields }) = refused else {
            panic!("another number under the same id: {refused:?}");
        };
        assert_eq!(fields, ["to"]);
    }
    sleep(s(60)).await;
    let ended = b.attempt("a").await;
    assert_eq!(ended.state, State::Ended);
    assert_eq!(a.place(call).await.state, State::Ended);
    over(&lab, &ended).await;
    assert_eq!((lab.dials(), lab.sip_calls()), (1, 1));
}

/// Another trunk would be there, but a person who said no, or did not answer, has been rung.
#[tokio::test(start_paused = true)]
async fn r07_no_other_trunk_after_a_refusal() {
    for (to, wanted, sip) in [
        ("+12025550103", Disposition::Declined, Some(603)),
        ("+12025550186", Disposition::Busy, Some(486)),
        ("+12025550180", Disposition::Unavailable, Some(480)),
        ("+12025550108", Disposition::NoAnswer, None),
    ] {
        let lab = Lab::with(1, "", |settings| {
            settings.times.refuse_after = s(12);
            settings.trunks.push(Trunk {
                name: "second".to_owned(),
                address: "127.0.0.2:5080".to_owned(),
                numbers: vec!["+12025550001".to_owned()],
            });
        });
        let alive = lab.node().await;
        alive.place(lab.call("a", to)).await;
        let attempt = alive.until_settled("a").await;
        assert_eq!(attempt.state, State::NotConnected);
        let settled = attempt.settled.clone().unwrap();
        assert_eq!(settled.disposition, wanted);
        assert_eq!(settled.sip.map(|sip| sip.code), sip);
        assert_eq!(alive.place(lab.call("a", to)).await.state, attempt.state);
        over(&lab, &attempt).await;
        assert_eq!((lab.dials(), lab.sip_calls(), attempt.tries), (1, 1, 1));
    }
}
