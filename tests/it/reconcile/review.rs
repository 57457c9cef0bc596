//! What evidence cannot settle waits for a person, and for no longer than it says.

use std::time::Duration;

use ringonce::lab::platform::Fault;
use ringonce::model::attempt::{Cause, Resolution, State};
use ringonce::model::disposition::{Disposition, Permission, Rang};
use ringonce::node::{NotResolved, Resolve};
use tokio::time::sleep;

use crate::world::{Alive, Lab, workspace};

/// Rings on, while the caller's connection breaks.
const CUT: &str = "+12025550199";
const BUSY: &str = "+12025550186";

fn say(resolution: Resolution) -> Resolve {
    Resolve {
        workspace: workspace(),
        attempt: "a".parse().unwrap(),
        resolution,
        reason: "the carrier's call record".to_owned(),
        by: "kim".to_owned(),
    }
}

async fn in_review(lab: &Lab) -> Alive {
    let alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    alive.until_state("a", State::NeedsReview).await;
    alive
}

/// Nobody could look while it rang, so that nobody knows whether it did.
async fn in_review_unseen(lab: &Lab) -> Alive {
    let blind = |times| {
        lab.fault(Fault {
            times: Some(times),
            ..Fault::on("lose_request", "ListParticipants")
        });
    };
    let alive = lab.node().await;
    alive.place(lab.call("a", CUT)).await;
    alive.until_state("a", State::Dialing).await;
    blind(u32::MAX);
    sleep(Duration::from_secs(90)).await;
    blind(0);
    let attempt = alive.until_state("a", State::NeedsReview).await;
    assert_eq!(attempt.rang(), Rang::NoEvidence, "{attempt:?}");
    alive
}

/// Another attempt for the same contact, which waits for it.
async fn waits(lab: &Lab, alive: &Alive) {
    let mut other = lab.call("b", BUSY);
    other.spec.contact = "a".parse().unwrap();
    other.spec.expire_time = lab.now().plus(Duration::from_hours(48));
    assert_eq!(alive.place(other).await.state, State::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_person_settles_it_with_name_and_reason_and_frees_the_contact() {
    for (resolution, state, disposition) in [
        (Resolution::Answered, State::Ended, Disposition::Answered),
        (
            Resolution::NotDialed,
            State::NotDialed,
            Disposition::NotDialed,
        ),
        (
            Resolution::RangUnanswered,
            State::NotConnected,
            Disposition::NoAnswer,
        ),
    ] {
        let lab = Lab::new(1);
        let alive = match resolution {
            Resolution::NotDialed => in_review_unseen(&lab).await,
            Resolution::Answered | Resolution::RangUnanswered => in_review(&lab).await,
        };
        waits(&lab, &alive).await;
        let reconciler = alive.node.reconciler();
        let (attempt, _) = reconciler.resolve(&say(resolution)).await.unwrap();
        assert_eq!(attempt.state, state);
        let settled = attempt.settled.clone().unwrap();
        assert_eq!(settled.disposition, disposition);
        assert_eq!(settled.permission, Permission::Permitted);
        let last = attempt.history.last().unwrap();
        assert_eq!(last.cause, Cause::Resolved);
        assert_eq!(last.evidence, "kim says: the carrier's call record");
        alive.until_state("b", State::NotConnected).await;
        // Said twice by one who did not hear the answer; and by another who comes late.
        let (again, _) = reconciler.resolve(&say(resolution)).await.unwrap();
        assert_eq!(again.history, attempt.history);
        let mut late = say(resolution);
        late.by = "sam".to_owned();
        let refused = reconciler.resolve(&late).await;
        assert!(matches!(refused, Err(NotResolved::NotInReview(_))));
        assert_eq!(alive.place(lab.call("a", CUT)).await.state, state);
        sleep(Duration::from_mins(10)).await;
        assert_eq!(lab.sip_calls_of("a"), 1, "the id never dials again");
        lab.assert_promises();
        lab.rooms.assert_paired();
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_to_ring_cannot_be_called_not_dialed() {
    let lab = Lab::new(1);
    let alive = in_review(&lab).await;
    let before = alive.attempt("a").await;
    let reconciler = alive.node.reconciler();
    let refused = reconciler.resolve(&say(Resolution::NotDialed)).await;
    assert!(matches!(refused, Err(NotResolved::Rang)), "{refused:?}");
    assert_eq!(alive.attempt("a").await, before);
    let rang = reconciler.resolve(&say(Resolution::RangUnanswered)).await;
    assert_eq!(rang.unwrap().0.state, State::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn nobody_settles_it_and_it_closes_by_itself() {
    let lab = Lab::with(1, "[attempt]\nreview_hold = \"10h\"\n", |_| {});
    let alive = in_review(&lab).await;
    waits(&lab, &alive).await;
    let begun = lab.now();
    let attempt = alive
        .until_within("a", Duration::from_hours(20), |a| {
            a.state != State::NeedsReview
        })
        .await;
    assert_eq!(attempt.state, State::NotConnected);
    assert_eq!(
        attempt.settled.unwrap().disposition,
        Disposition::Unresolved
    );
    let took = lab.now().since(begun);
    let hold = Duration::from_hours(10);
    assert!(
        took > hold.saturating_sub(Duration::from_mins(1)) && took < hold + Duration::from_mins(1),
        "{took:?}"
    );
    alive.until_state("b", State::NotConnected).await;
    assert_eq!(lab.sip_calls_of("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn reviews_are_listed_and_counted_by_cause() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        let to = format!("+9990000000{n}99");
        alive.place(lab.call(name, &to)).await;
    }
    let mut wrong = lab.call("d", CUT);
    wrong.workspace = "elsewhere".parse().unwrap();
    alive.place(wrong).await;
    for name in ["a", "b", "c"] {
        alive.until_state(name, State::NeedsReview).await;
    }
    let first = alive
        .node
        .reviews(&workspace(), None, None, 2)
        .await
        .unwrap();
    assert_eq!(first.groups.len(), 1);
    assert_eq!(first.groups[0].count, 3);
    assert_eq!(first.groups[0].cause.name(), "SEEN_THEN_GONE");
    assert_eq!(first.attempts.len(), 2);
    let rest = alive
        .node
        .reviews(&workspace(), Some(first.groups[0].cause), first.next, 10)
        .await
        .unwrap();
    assert_eq!(rest.attempts.len(), 1);
    assert!(rest.next.is_none());
}
