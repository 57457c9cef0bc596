//! What a node says of a LiveKit that is away, refuses its key, or has another clock.

use std::time::Duration;

use ringonce::lab::platform::Fault;
use ringonce::model::attempt::State;
use ringonce::model::disposition::Disposition;
use ringonce::node::health::Trouble;
use tokio::time::sleep;

use super::{ANSWERS, BUSY, RINGS, listen};
use crate::world::Lab;

/// Nothing is asked for it: the sweep of rooms is what notices, and what sees that it is over.
#[tokio::test(start_paused = true)]
async fn an_outage_of_livekit_is_known_without_a_call_and_its_end_too() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    sleep(Duration::from_secs(65)).await;
    let health = alive.node.status().platform;
    assert!(health.answered.is_some() && health.failed.is_none());
    let lists = |times| {
        lab.fault(Fault {
            times: Some(times),
            ..Fault::on("lose_request", "ListRooms")
        });
    };
    lists(u32::MAX);
    let begun = lab.now();
    sleep(Duration::from_mins(3)).await;
    let health = alive.node.status().platform;
    let since = health.failing_since.expect("every list fails");
    assert!(since.since(begun) <= Duration::from_mins(2), "{health:?}");
    assert_eq!(health.failed.unwrap().why, Trouble::Broken);
    let outages = ear.heard("livekit.outage");
    assert_eq!(outages.len(), 1, "once: {outages:?}");
    assert_eq!(outages[0]["failure"], "BROKEN");
    assert!(ear.heard("livekit.recovered").is_empty());
    lists(0);
    sleep(Duration::from_mins(2)).await;
    let health = alive.node.status().platform;
    assert_eq!(health.failing_since, None, "{health:?}");
    assert!(health.failed.is_some(), "the last failure is remembered");
    let over = ear.heard("livekit.recovered");
    assert_eq!(over.len(), 1, "once: {over:?}");
    assert!(
        over[0]["lasted_s"].parse::<u64>().unwrap() >= 120,
        "{over:?}"
    );
    assert_eq!(ear.heard("livekit.outage").len(), 1);
}

/// A single lost request, after which nobody asks anything, is no outage.
#[tokio::test(start_paused = true)]
async fn a_single_request_that_is_lost_is_no_outage() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    sleep(Duration::from_secs(65)).await;
    // A list and its repetitions.
    lab.fault(Fault {
        times: Some(3),
        ..Fault::on("lose_request", "ListRooms")
    });
    sleep(Duration::from_secs(75)).await;
    assert_eq!(alive.node.status().platform.failures, 3);
    assert!(ear.heard("livekit.outage").is_empty());
    sleep(Duration::from_mins(3)).await;
    assert!(ear.heard("livekit.outage").is_empty());
    assert!(ear.heard("livekit.recovered").is_empty());
}

/// Whoever is refused is refused with every request, and told once a minute at most.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_is_told_once_a_minute_and_when_it_is_taken_again() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    lab.fault(Fault {
        times: Some(u32::MAX),
        status: Some(401),
        body: Some("invalid token".to_owned()),
        ..Fault::named("refuse")
    });
    for n in 0..8 {
        let call = lab.call(&format!("a{n}"), &format!("+9990000000{n}00"));
        alive.place(call).await;
    }
    sleep(Duration::from_mins(5)).await;
    let failures = alive.node.status().platform.failures;
    assert!(failures > 40, "{failures}");
    let said = ear.heard("livekit.token_refused");
    assert!((4..=6).contains(&said.len()), "{}: {said:?}", said.len());
    assert!(said[0]["message"].contains("livekit.api_key"), "{said:?}");
    let counts: Vec<u64> = said
        .iter()
        .map(|s| s["failures"].parse().unwrap())
        .collect();
    assert!(counts.is_sorted() && counts[4 - 1] > 10, "{counts:?}");
    lab.fault(Fault {
        times: Some(0),
        ..Fault::named("refuse")
    });
    alive.until_state("a0", State::Ended).await;
    let over = ear.heard("livekit.request_done");
    assert_eq!(over.len(), 1, "{over:?}");
    assert_eq!(over[0]["failure"], "KEY_REFUSED");
    assert_eq!(alive.attempt("a0").await.failed, 0, "no try has counted");
}

/// Beyond `livekit.clock_skew_max` nothing is dialed and nothing is used up; once the clocks
/// agree what waited is dialed, and what has expired was not.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_is_said_loudly_and_uses_up_no_try() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let skew = |seconds: i64| {
        lab.fault(Fault {
            millis: Some(seconds * 1_000),
            ..Fault::named("clock_skew")
        });
    };
    for off in [20_i64, -20, 3_600] {
        skew(off);
        let alive = lab.node().await;
        let (waits, ends) = (format!("waits{off}"), format!("ends{off}"));
        let mut short = lab.call(&ends, BUSY);
        short.spec.expire_time = lab.now().plus(Duration::from_mins(8));
        alive.place(lab.call(&waits, ANSWERS)).await;
        alive.place(short).await;
        sleep(Duration::from_mins(10)).await;
        let attempt = alive.attempt(&waits).await;
        assert_eq!(
            (attempt.failed, attempt.state),
            (0, State::Queued),
            "{attempt:?}"
        );
        let tries = attempt.tries;
        assert!(tries > 5, "it was tried {tries} times");
        let over = alive.attempt(&ends).await;
        assert_eq!(over.state, State::NotDialed, "{over:?}");
        let told = over.settled.as_ref().map(|settled| settled.disposition);
        assert_eq!(told, Some(Disposition::PlatformClock), "{over:?}");
        let clock = alive.node.status().platform.clock.unwrap();
        assert!(clock.is_too_far(), "{clock:?}");
        assert!(
            (clock.ahead_us - off * 1_000_000).abs() <= 1_000_000,
            "{clock:?}"
        );
        skew(0);
        alive.until_state(&waits, State::Ended).await;
        let clock = alive.node.status().platform.clock.unwrap();
        assert_eq!(clock.ahead_us, 0, "{clock:?}");
        alive.kill().await;
    }
    let said = ear.heard("livekit.clock");
    assert!((27..=33).contains(&said.len()), "{}", said.len());
    for (nth, words) in [(0, "20 s ahead of"), (said.len() - 1, "3600 s ahead of")] {
        assert!(said[nth]["message"].contains(words), "{:?}", said[nth]);
        assert!(said[nth]["message"].contains("NTP"), "{:?}", said[nth]);
    }
    assert_eq!(ear.heard("livekit.clock_agrees").len(), 3);
    assert_eq!(lab.sip_calls(), 3, "nothing else was dialed");
    assert_eq!(lab.requests("CreateRoom"), 3, "nor was a room made in vain");
}

#[tokio::test(start_paused = true)]
async fn rooms_that_were_never_made_are_one_warning_of_an_outage_and_no_leak() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    lab.fault(Fault {
        times: Some(u32::MAX),
        ..Fault::named("lose_request")
    });
    for (id, to) in [("a", ANSWERS), ("b", BUSY), ("c", RINGS)] {
        alive.place(lab.call(id, to)).await;
    }
    sleep(Duration::from_mins(20)).await;
    assert!(ear.heard("room.stuck").is_empty());
    let said = ear.heard("livekit.unreachable");
    assert_eq!(said.len(), 1, "once for the outage: {said:?}");
    assert!(said[0]["rooms"].parse::<u32>().unwrap() >= 3, "{said:?}");
    assert_eq!(lab.sip_calls(), 0);
}
