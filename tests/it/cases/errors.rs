//! Class d: what a dial's answer says, and what it does not.

use livekit_protocol as lk;
use prost::Message as _;
use ringonce::model::attempt::{Attempt, ReviewCause, State};
use ringonce::model::disposition::{Disposition, Permission, Rang};
use ringonce::provider::wire::{Answer, Method};
use tokio::time::{Instant, sleep};

use super::tap::{Made, Tap, carrier, ms, page, refused, s};
use super::webhooks::{of_leg, told_by};
use crate::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";
const ANSWERS_LATE: &str = "+12025550111";
const RINGS: &str = "+12025550108";
/// Rings on, while the caller's connection breaks.
const CUT: &str = "+12025550199";

fn disposition(attempt: &Attempt) -> Disposition {
    attempt.settled.as_ref().unwrap().disposition
}

/// Dials once, and gets this answer after so many milliseconds.
async fn answered(after: u64, answer: Answer) -> (Lab, Alive, Attempt) {
    let lab = Lab::new(1);
    let (alive, tap) = Tap::on(&lab, Method::Dial, move |before| {
        if before == 0 {
            Made::Instead(ms(after), answer.clone())
        } else {
            Made::Through
        }
    })
    .await;
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(tap.count(Method::Dial), 1);
    (lab, alive, attempt)
}

/// Code, phrase and moment together say who refused; all three are kept.
#[tokio::test(start_paused = true)]
async fn r16_code_phrase_and_moment_say_who_refused() {
    let unavailable = || carrier(429, "resource_exhausted", 480, "Temporarily Unavailable");
    let denied = |code, phrase| carrier(403, "permission_denied", code, phrase);
    for (after, answer, code, phrase, wanted) in [
        (
            150,
            unavailable(),
            480,
            "Temporarily Unavailable",
            Disposition::CarrierCapacity,
        ),
        (
            12_000,
            unavailable(),
            480,
            "Temporarily Unavailable",
            Disposition::Unavailable,
        ),
        (
            8_000,
            denied(603, "Decline"),
            603,
            "Decline",
            Disposition::Declined,
        ),
        (
            400,
            denied(603, "Network Blocked"),
            603,
            "Network Blocked",
            Disposition::Blocked,
        ),
        (
            1_000,
            denied(607, "Unwanted"),
            607,
            "Unwanted",
            Disposition::Blocked,
        ),
        (
            1_000,
            denied(608, "Rejected"),
            608,
            "Rejected",
            Disposition::Blocked,
        ),
    ] {
        let (_lab, _alive, attempt) = answered(after, answer).await;
        assert_eq!(attempt.state, State::NotConnected);
        let settled = attempt.settled.as_ref().unwrap();
        assert_eq!(settled.disposition, wanted);
        let sip = settled.sip.as_ref().unwrap();
        assert_eq!((sip.code, sip.phrase.as_str()), (code, phrase));
        let never = settled.permission == Permission::Never;
        assert_eq!(never, wanted == Disposition::Blocked, "{attempt:?}");
        let last = attempt.history.last().unwrap();
        let elapsed = format!("SIP {code} from the carrier), after {after} ms");
        assert!(last.evidence.contains(&elapsed), "{last:?}");
    }
}

/// A 5xx is the carrier's, the platform's or nobody's.
#[tokio::test(start_paused = true)]
async fn r17_each_5xx_by_what_it_carries() {
    let failed = carrier(500, "internal", 500, "SIP_STATUS_INTERNAL_SERVER_ERROR");
    let limited = carrier(412, "failed_precondition", 503, "CPS limit exceeded");
    for (after, answer, wanted) in [
        (2_000, failed, Disposition::CarrierFailure),
        (1_000, limited, Disposition::CarrierCapacity),
    ] {
        let (_lab, _alive, attempt) = answered(after, answer).await;
        assert_eq!(attempt.state, State::NotConnected);
        assert_eq!(disposition(&attempt), wanted);
    }
    for (after, answer) in [
        (
            10,
            page(
                503,
                "upstream connect error or disconnect/reset before headers",
            ),
        ),
        (10, page(502, "")),
        (44_000, page(504, "<html>504</html>")),
    ] {
        let (lab, alive, attempt) = answered(after, answer).await;
        assert_eq!(attempt.state, State::Uncertain);
        let over = alive.until("a", |a| a.state != State::Uncertain).await;
        if after < 5_000 {
            assert_eq!(disposition(&over), Disposition::NoTrace);
        } else {
            // Nobody looked from the dial on, so that an absence proves nothing.
            assert_eq!(over.review, Some(ReviewCause::LookedLate));
        }
        assert_eq!((lab.sip_calls(), over.tries), (0, 1));
    }
    // No bridge had it: the only one that is dialed again, under the same id.
    let lab = Lab::new(1);
    let (alive, tap) = Tap::on(&lab, Method::Dial, |before| {
        if before == 0 {
            {
                let text = "twirp error unknown: no response from servers";
                Made::Instead(s(1), refused(503, "unavailable", text))
            }
        } else {
            Made::Through
        }
    })
    .await;
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = alive.until_state("a", State::Answered).await;
    assert_eq!((attempt.tries, tap.count(Method::Dial)), (2, 2));
    lab.assert_promises();
}

/// Two calls to one person: each has a room and an identity of its own, so that neither can
/// throw the other one out.
#[tokio::test(start_paused = true)]
async fn r19_no_two_calls_share_room_or_identity() {
    let lab = Lab::new(1);
    let (alive, tap) = Tap::node(&lab, |_, _| Made::Through).await;
    let mut second = lab.call("b", "+12025550186");
    second.spec.contact = "a".parse().unwrap();
    alive.place(lab.call("a", "+12025550189")).await;
    alive.place(second).await;
    alive.until_settled("a").await;
    alive.until_settled("b").await;
    let dials: Vec<_> = tap
        .asked(Method::Dial)
        .iter()
        .map(|body| lk::CreateSipParticipantRequest::decode(body.as_slice()).unwrap())
        .collect();
    assert_eq!(dials.len(), 2);
    assert_ne!(dials[0].room_name, dials[1].room_name);
    assert_ne!(dials[0].participant_identity, dials[1].participant_identity);
    lab.assert_promises();
}

/// Something else takes the callee's identity, and the platform cancels the ringing call. It
/// is nothing that the person did, or did not do.
#[tokio::test(start_paused = true)]
async fn r19_a_duplicate_identity_is_never_taken_for_no_answer() {
    let (lab, alive, ear) = told_by(Method::Dial, |_| {
        let text = "twirp error unknown: canceled";
        Made::Answered(s(6), refused(408, "canceled", text))
    })
    .await;
    alive.place(lab.call("a", RINGS)).await;
    sleep(s(5)).await;
    let placed = alive.attempt("a").await.placed.unwrap();
    let mut left = of_leg(&placed, "participant_left", "EV_left");
    left["participant"]["disconnectReason"] = "DUPLICATE_IDENTITY".into();
    assert_eq!(ear.post(&lab, &alive, &left).await, 200);
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
    let unclear = alive.until_settled("a").await;
    assert_eq!(unclear.state, State::Uncertain, "{unclear:?}");
    let over = alive.until("a", |a| a.state != State::Uncertain).await;
    let ended = over.settled.as_ref().map(|settled| settled.disposition);
    assert_ne!(ended, Some(Disposition::NoAnswer), "{over:?}");
    assert_eq!((lab.dials(), lab.sip_calls()), (1, 1));
}

/// The leg joins, and is even told as answered, while the dial's own answer is awaited; and
/// that says busy.
#[tokio::test(start_paused = true)]
async fn r20_what_is_seen_while_it_rings_is_no_answer() {
    let (lab, alive, _ear) = told_by(Method::Dial, |_| {
        let busy = carrier(429, "resource_exhausted", 486, "Busy Here");
        Made::Answered(s(12), busy)
    })
    .await;
    alive.place(lab.call("a", ANSWERS_LATE)).await;
    sleep(ms(11_500)).await;
    let talks = lab.seen().sip_calls.iter().any(|c| c.status == "active");
    assert!(talks, "the attribute says so: {:?}", lab.seen());
    assert_eq!(alive.attempt("a").await.state, State::Dialing);
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::NotConnected);
    assert_eq!(disposition(&attempt), Disposition::Busy);
    let steps: Vec<_> = attempt.history.iter().map(|step| step.to).collect();
    assert_eq!(
        steps,
        [State::Reserved, State::Dialing, State::NotConnected]
    );
}

/// The connection breaks while it rings, and no attribute ever says how the call stands.
#[tokio::test(start_paused = true)]
async fn r20_a_leg_without_attributes_is_no_answer() {
    fn bare(answer: Answer) -> Answer {
        let Answer::Done(body) = answer else {
            return answer;
        };
        let mut listed = lk::ListParticipantsResponse::decode(body.as_slice()).unwrap();
        for person in &mut listed.participants {
            person.attributes.retain(|key, _| !key.starts_with("sip."));
        }
        Answer::Done(listed.encode_to_vec())
    }
    fn bare_one(answer: Answer) -> Answer {
        let Answer::Done(body) = answer else {
            return answer;
        };
        let mut person = lk::ParticipantInfo::decode(body.as_slice()).unwrap();
        person.attributes.retain(|key, _| !key.starts_with("sip."));
        Answer::Done(person.encode_to_vec())
    }
    let lab = Lab::new(1);
    let (alive, tap) = Tap::node(&lab, |request, _| {
        if request.method == Method::ListParticipants {
            Made::Changed(bare)
        } else if request.method == Method::GetParticipant {
            Made::Changed(bare_one)
        } else {
            Made::Through
        }
    })
    .await;
    alive.place(lab.call("a", CUT)).await;
    alive.until_state("a", State::Uncertain).await;
    let over = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(over.state, State::NeedsReview, "{over:?}");
    let answered = over.history.iter().any(|step| step.to == State::Answered);
    assert!(!answered, "{over:?}");
    assert_eq!((tap.count(Method::Dial), lab.sip_calls()), (1, 1));
}

/// A mailbox answers as a person does: what is known is that somebody or something answered,
/// and after how long.
#[tokio::test(start_paused = true)]
async fn r21_an_answer_is_an_answer_and_no_person() {
    for seconds in [28, 6] {
        let lab = Lab::with(1, "", |settings| settings.times.slow_answer = s(seconds));
        let alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS_LATE)).await;
        let attempt = alive.until_state("a", State::Answered).await;
        let placed = attempt.placed.clone().unwrap();
        let answer = placed.answer.unwrap();
        let took = answer.at.since(placed.marker.unwrap().at);
        assert!((s(seconds)..s(seconds + 1)).contains(&took), "{took:?}");
        let ended = alive.until_state("a", State::Ended).await;
        assert_eq!(disposition(&ended), Disposition::Answered);
        let told = format!("{ended:?}").to_lowercase();
        for claim in ["human", "voicemail", "machine"] {
            assert!(!told.contains(claim), "{claim}: {told}");
        }
    }
}

/// Our patience outlasts the ring, whatever becomes of it.
#[tokio::test(start_paused = true)]
async fn r22_nobody_gives_up_before_the_ring_is_over() {
    let lab = Lab::with(1, "", |settings| settings.times.slow_answer = ms(44_300));
    let (alive, tap) = Tap::node(&lab, |_, _| Made::Through).await;
    alive.place(lab.call("a", ANSWERS_LATE)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::Answered);
    let sent = tap.asked(Method::Dial).remove(0);
    let dial = lk::CreateSipParticipantRequest::decode(sent.as_slice()).unwrap();
    assert_eq!(dial.ringing_timeout.unwrap().seconds, 45);
    assert!(dial.wait_until_answered);

    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", RINGS)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(disposition(&attempt), Disposition::NoAnswer);
    assert_eq!(attempt.rang(), Rang::Rang);

    let lab = Lab::new(1);
    let (alive, tap) = Tap::on(&lab, Method::Dial, |_| Made::Silence).await;
    let begun = Instant::now();
    alive.place(lab.call("a", RINGS)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::Uncertain);
    assert!((s(65)..s(85)).contains(&begun.elapsed()), "{attempt:?}");
    let over = alive.until("a", |a| a.state != State::Uncertain).await;
    assert_eq!(over.review, Some(ReviewCause::LookedLate), "{over:?}");
    assert_eq!(tap.count(Method::Dial), 1);
}
