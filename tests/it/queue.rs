//! What waits: for whom, until when, in which order, and how it goes on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ringonce::admission::place::PlaceError;
use ringonce::lab::platform::{Behaviour, Fault, Worker};
use ringonce::ledger::store::Store;
use ringonce::ledger::store::memory::{Call, Fate, Scripted};
use ringonce::model::attempt::{Attempt, Keep, Rule, State};
use ringonce::model::disposition::Disposition;
use ringonce::model::request::Request;
use ringonce::model::verdict::TryFailure;
use ringonce::runtime::life::Life;
use tokio::time::sleep;

use super::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";
const BUSY: &str = "+12025550186";
const RINGS: &str = "+12025550108";
/// The carrier is silent until the transaction times out.
const SILENT: &str = "+12025550116";

fn rule(attempt: &Attempt) -> Option<Rule> {
    attempt.waiting.as_ref().map(|w| w.reason.rule)
}

fn holder(attempt: &Attempt) -> Option<String> {
    let reason = &attempt.waiting.as_ref()?.reason;
    reason.holder.as_ref().map(ToString::to_string)
}

/// Two campaigns that call one contact, and two that call one number.
fn pairs(lab: &Lab, first: &str) -> [(Request, Request, Rule); 2] {
    let a = lab.call("a", first);
    let mut same_contact = lab.call("b", BUSY);
    same_contact.spec.contact = a.spec.contact.clone();
    same_contact.private.to = "+12025550189".parse().unwrap();
    let same_number = lab.call("b", first);
    [
        (a.clone(), same_contact, Rule::ContactReserved),
        (a, same_number, Rule::NumberInUse),
    ]
}

#[tokio::test(start_paused = true)]
async fn of_two_attempts_for_one_contact_or_number_one_rings_and_the_other_follows() {
    for which in 0..2 {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        let (a, b, why) = pairs(&lab, BUSY)[which].clone();
        let first = alive.place(a).await;
        assert_eq!(first.state, State::Reserved);
        let second = alive.place(b).await;
        assert_eq!(second.state, State::Queued);
        assert_eq!(rule(&second), Some(why));
        assert_eq!(holder(&second).as_deref(), Some("a"));
        let first = alive.until_settled("a").await;
        let second = alive.until_settled("b").await;
        assert_eq!(second.state, State::NotConnected, "{second:?}");
        let waited = second
            .placed
            .as_ref()
            .unwrap()
            .reserved_at
            .since(first.settled.unwrap().at);
        assert!(waited < Duration::from_secs(1), "it waited {waited:?}");
        assert_eq!(lab.sip_calls(), 2);
        lab.assert_promises();
        lab.until_no_rooms(Duration::from_mins(1)).await;
        lab.rooms.assert_paired();
    }
}

#[tokio::test(start_paused = true)]
async fn requests_at_the_same_moment_reserve_one() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let calls: Vec<Request> = (0..20)
        .map(|n| {
            let mut call = lab.call(&format!("a{n}"), BUSY);
            call.spec.contact = "one".parse().unwrap();
            call
        })
        .collect();
    let placing = calls.iter().map(|call| alive.place(call.clone()));
    let placed = futures_util::future::join_all(placing).await;
    let reserved = placed.iter().filter(|a| a.state == State::Reserved).count();
    assert_eq!(reserved, 1);
    for call in &calls {
        let attempt = alive.until_settled(call.attempt.as_str()).await;
        assert_eq!(attempt.state, State::NotConnected);
    }
    assert_eq!(lab.sip_calls(), 20);
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_keeps_is_deferred_and_can_be_handed_over() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let (a, mut b, why) = pairs(&lab, BUSY)[0].clone();
    alive.place(a).await;
    b.spec.keep = Keep::Return;
    let deferred = alive.place(b.clone()).await;
    assert_eq!(
        (deferred.state, rule(&deferred)),
        (State::Deferred, Some(why))
    );
    assert!(deferred.waiting.unwrap().until > lab.now());
    alive.until_settled("a").await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(alive.attempt("b").await.state, State::Deferred);
    b.spec.keep = Keep::UntilExpiry;
    let placed = alive.place(b).await;
    assert_eq!(placed.state, State::Reserved);
    let over = alive.until_settled("b").await;
    assert_eq!(over.state, State::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn what_waits_too_long_is_refused_as_expired_whoever_keeps_it() {
    for keep in [Keep::UntilExpiry, Keep::Return] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        let (a, mut b, _) = pairs(&lab, RINGS)[0].clone();
        alive.place(a).await;
        b.spec.keep = keep;
        b.spec.expire_time = lab.now().plus(Duration::from_secs(5));
        alive.place(b).await;
        sleep(Duration::from_secs(7)).await;
        let attempt = alive.attempt("b").await;
        assert_eq!(attempt.state, State::Refused, "{keep:?}");
        let settled = attempt.settled.unwrap();
        assert_eq!(settled.disposition, Disposition::Expired);
        assert_eq!(lab.sip_calls_of("b"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_higher_priority_goes_first_and_among_equals_the_older() {
    let lab = Lab::with(1, "[trunks.main]\nconcurrent = 1\n", |_| {});
    let alive = lab.node().await;
    alive.place(lab.call("first", BUSY)).await;
    for (name, priority) in [("low", 0), ("mid", 4), ("high", 9), ("mid2", 4)] {
        let n = u8::try_from(name.len()).unwrap() + priority;
        let mut call = lab.call(name, &format!("+999000000{n:02}86"));
        call.spec.priority = priority;
        let placed = alive.place(call).await;
        assert_eq!(rule(&placed), Some(Rule::Pace));
        sleep(Duration::from_millis(1)).await;
    }
    let mut begun = Vec::new();
    for name in ["low", "mid", "high", "mid2"] {
        let attempt = alive.until_settled(name).await;
        begun.push((attempt.placed.unwrap().reserved_at, name));
    }
    begun.sort();
    let order: Vec<&str> = begun.into_iter().map(|(_, name)| name).collect();
    assert_eq!(order, ["high", "mid", "mid2", "low"]);
}

/// Places `count` calls to `script` and returns when each try was reserved, in seconds.
async fn reserved_after(lab: &Lab, alive: &Alive, count: u32, script: u8) -> Vec<f64> {
    let begun = lab.now();
    for n in 0..count {
        alive
            .place(lab.call(&format!("a{n}"), &format!("+999{n:08}{script:02}")))
            .await;
    }
    let mut times = Vec::new();
    for n in 0..count {
        let attempt = alive.until_settled(&format!("a{n}")).await;
        assert_eq!(attempt.tries, 1);
        times.push(
            attempt
                .placed
                .unwrap()
                .reserved_at
                .since(begun)
                .as_secs_f64(),
        );
    }
    times.sort_by(f64::total_cmp);
    lab.assert_promises();
    times
}

#[tokio::test(start_paused = true)]
async fn calls_per_second_are_kept() {
    let lab = Lab::with(1, "[trunks.main]\ncalls_per_second = 2.0\n", |_| {});
    let alive = lab.node().await;
    let times = reserved_after(&lab, &alive, 8, 86).await;
    // Two at once, then two a second.
    assert!(times[1] < 0.1 && times[2] >= 0.4, "{times:?}");
    for three in times.windows(4) {
        assert!(three[3] - three[0] >= 0.9, "{times:?}");
    }
    assert!(times[7] < 6.0, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_counts_against_its_trunk_until_it_ends() {
    let lab = Lab::with(1, "[trunks.main]\nconcurrent = 2\n", |_| {});
    let alive = lab.node().await;
    let times = reserved_after(&lab, &alive, 3, 0).await;
    // The callee talks for twenty seconds.
    assert!(times[1] < 0.1 && times[2] > 20.0, "{times:?}");
    // What is counted is known again after a restart.
    alive.kill().await;
    let alive = lab.node().await;
    let placed = [lab.call("x", BUSY), lab.call("y", "+12025550189")];
    let first = alive.place(placed[0].clone()).await;
    let second = alive.place(placed[1].clone()).await;
    assert_eq!(first.state, State::Reserved);
    assert_eq!(rule(&second), Some(Rule::Pace));
}

#[tokio::test(start_paused = true)]
async fn the_process_has_a_limit_of_its_own() {
    let lab = Lab::with(1, "[dial]\nin_flight = 1\n", |_| {});
    let alive = lab.node().await;
    let times = reserved_after(&lab, &alive, 4, 86).await;
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= 1.0, "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_pace_after_a_failed_try_is_asked_each_second() {
    let lab = Lab::with(1, "[trunks.main]\nconcurrent = 1\n", |_| {});
    let alive = lab.node().await;
    lab.fault(Fault::named("agent_absent"));
    alive.place(lab.call("b", BUSY)).await;
    alive.until_state("b", State::Queued).await;
    alive.place(lab.call("a", RINGS)).await;
    sleep(Duration::from_secs(20)).await;
    let asked = alive.attempt("b").await.waiting.unwrap().count;
    assert!((5..=25).contains(&asked), "{asked} times");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_platform_is_dialed_more_slowly_and_every_call_is_placed() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    lab.fault(Fault {
        times: Some(5),
        ..Fault::named("overload")
    });
    for n in 0..20 {
        alive
            .place(lab.call(&format!("a{n}"), &format!("+999{n:08}86")))
            .await;
    }
    sleep(Duration::from_secs(1)).await;
    let rate = alive.node.pace().adaptive_rate();
    assert!(rate.is_some_and(|rate| rate <= 11.0), "{rate:?}");
    for n in 0..20 {
        let attempt = alive.until_settled(&format!("a{n}")).await;
        assert_eq!(attempt.state, State::NotConnected);
    }
    assert_eq!(lab.sip_calls(), 20);
    lab.assert_promises();
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_decides_nothing() {
    let lab = Lab::with(
        1,
        "[queue]\nlimit = 2\n[trunks.main]\nconcurrent = 1\n",
        |_| {},
    );
    let alive = lab.node().await;
    for n in 0..3 {
        alive
            .place(lab.call(&format!("a{n}"), &format!("+999{n:08}86")))
            .await;
    }
    let full = alive.node.admission().place(lab.call("b", BUSY)).await;
    assert!(
        matches!(full, Err(PlaceError::QueueFull { limit: 2 })),
        "{full:?}"
    );
    alive.until_settled("a2").await;
    let placed = alive.place(lab.call("b", BUSY)).await;
    assert!(matches!(placed.state, State::Reserved | State::Queued));
    assert_eq!(alive.until_settled("b").await.state, State::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn failed_tries_are_repeated_with_a_growing_pause_until_none_is_left() {
    let lab = Lab::with(1, "", |settings| {
        settings.workers = vec![Worker::new("caller", Behaviour::Absent)];
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.state, State::NotDialed);
    assert_eq!((attempt.tries, attempt.failed), (5, 5));
    assert_eq!(attempt.last_failure, Some(TryFailure::AgentUnavailable));
    let entered = |state| {
        let of = attempt.history.iter().filter(move |t| t.to == state);
        of.map(|t| t.at).collect::<Vec<_>>()
    };
    let (failed, begun) = (entered(State::Queued), entered(State::Reserved));
    let pauses: Vec<f64> = failed
        .iter()
        .zip(&begun[1..])
        .map(|(failed, next)| next.since(*failed).as_secs_f64())
        .collect();
    for (pause, least) in pauses.iter().zip([5.0, 10.0, 20.0, 40.0]) {
        assert!(*pause >= least && *pause <= least * 1.2 + 1.0, "{pauses:?}");
    }
    assert_eq!((pauses.len(), lab.sip_calls()), (4, 0));
    lab.until_no_rooms(Duration::from_secs(10)).await;
    sleep(Duration::from_mins(5)).await;
    lab.rooms.assert_paired();
    assert_eq!(lab.rooms.causes().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn after_silence_contact_and_number_are_held_three_minutes() {
    for which in 0..2 {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        let (a, b, _) = pairs(&lab, SILENT)[which].clone();
        alive.place(a).await;
        alive.place(b).await;
        let first = alive.until_settled("a").await;
        assert_eq!(first.state, State::NotConnected);
        let second = alive.until("b", |attempt| attempt.placed.is_some());
        let held = second
            .await
            .placed
            .unwrap()
            .reserved_at
            .since(first.settled.unwrap().at);
        let held = held.as_secs_f64();
        assert!((180.0..184.0).contains(&held), "{held}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_uncertain_holder_asks_seldom() {
    let lab = Lab::new(1);
    let commits = Arc::new(AtomicU32::new(0));
    let alive = lab
        .node_on(counted(&lab, &commits), None, Life::new())
        .await;
    // Rings, and the connection breaks: uncertain, for hours.
    let (a, b, _) = pairs(&lab, "+12025550199")[0].clone();
    alive.place(a).await;
    alive.until_settled("a").await;
    alive.place(b).await;
    sleep(Duration::from_mins(10)).await;
    let before = commits.load(Ordering::SeqCst);
    sleep(Duration::from_mins(10)).await;
    let asked = commits.load(Ordering::SeqCst) - before;
    assert!(asked <= 30, "{asked} commits in ten minutes");
    assert_eq!(alive.attempt("b").await.state, State::Queued);
}

/// The world's store, which counts its commits.
fn counted(lab: &Lab, commits: &Arc<AtomicU32>) -> Arc<dyn Store> {
    let count = Arc::clone(commits);
    let script = Scripted(move |call: Call<'_>| {
        if let Call::Commit(..) = call {
            count.fetch_add(1, Ordering::SeqCst);
        }
        Fate::default()
    });
    Arc::new(lab.store.reopen().scripted(Arc::new(script)))
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_writes_nothing_in_any_state() {
    let lab = Lab::new(1);
    let commits = Arc::new(AtomicU32::new(0));
    let alive = lab
        .node_on(counted(&lab, &commits), None, Life::new())
        .await;
    let (a, b, _) = pairs(&lab, RINGS)[0].clone();
    alive.place(a.clone()).await;
    alive.place(b.clone()).await;
    for wait in [0, 5, 50, 300] {
        sleep(Duration::from_secs(wait)).await;
        for call in [&a, &b] {
            let before = commits.load(Ordering::SeqCst);
            let ledger = alive.node.ledger();
            let seen = ledger
                .attempt(&call.workspace, &call.attempt)
                .await
                .unwrap();
            let (attempt, version) = alive.node.admission().place(call.clone()).await.unwrap();
            assert_eq!(seen, Some((attempt, version)));
            assert_eq!(commits.load(Ordering::SeqCst), before);
        }
    }
    assert_eq!(lab.sip_calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_id_for_another_call_is_refused_with_the_fields() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let call = lab.call("a", BUSY);
    alive.place(call.clone()).await;
    let mut other = call.clone();
    other.spec.contact = "somebody".parse().unwrap();
    other.private.to = ANSWERS.parse().unwrap();
    for _ in 0..2 {
        let reused = alive.node.admission().place(other.clone()).await;
        let Err(PlaceError::IdReused { fields }) = reused else {
            panic!("{reused:?}");
        };
        assert_eq!(fields, ["contact_id", "to"]);
        alive.until_settled("a").await;
    }
    assert_eq!(lab.sip_calls(), 1);
}
