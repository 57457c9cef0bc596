//! The promises, from the ledger and from the platform's own counters.

use std::collections::BTreeMap;
use std::time::Duration;

use ringonce::api::proto;
use ringonce::api::proto::attempt::{Disposition, State};
use ringonce::lab::platform::State as Seen;
use ringonce::model::attempt::{self, Attempt};
use ringonce::runtime::clock::{Clock as _, SystemClock};

use tokio::time::{Instant, sleep};

use super::campaign::Campaign;
use super::ms;
use super::stand::Stand;

/// How long after its due time a passing state may last.
const OVERDUE: Duration = Duration::from_secs(10);
/// How long a process may take to see that, on a host that is busy.
const TAKEN_UP: Duration = Duration::from_secs(15);

/// What holds at any moment, and what holds once a process has lived for a moment: what the
/// dead ones left lying is taken up.
pub(super) async fn under_way(stand: &Stand) {
    once_each(&stand.sandbox.state().await.unwrap());
    let end = Instant::now() + TAKEN_UP;
    loop {
        let now = SystemClock.now();
        let overdue = |attempt: &Attempt| {
            passes(attempt.state) && attempt.due().is_some_and(|due| due.plus(OVERDUE) < now)
        };
        let mut attempts = stand.file().attempts();
        attempts.retain(overdue);
        let Some(first) = attempts.first() else {
            return;
        };
        assert!(
            Instant::now() < end,
            "P5: it is {now}, and {} are overdue: {first:?}",
            attempts.len()
        );
        sleep(ms(100)).await;
    }
}

/// P1 and P2: one SIP call an attempt, one leg a contact and a number.
pub(super) fn once_each(seen: &Seen) {
    for (attempt, count) in calls(seen) {
        assert!(count <= 1, "P1: {attempt} rang {count} times");
    }
    for (who, legs) in seen.legs_by_contact.iter().chain(&seen.legs_by_number) {
        assert!(legs.most <= 1, "P2: {} legs at once to {who}", legs.most);
    }
}

fn calls(seen: &Seen) -> BTreeMap<&str, u32> {
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    for call in &seen.sip_calls {
        assert!(!call.attempt.is_empty(), "a call of nobody: {call:?}");
        *calls.entry(&call.attempt).or_default() += call.count;
    }
    calls
}

/// Each message is an attempt, and no answer that a caller had was forgotten.
pub(super) fn nothing_lost(campaign: &Campaign, known: &[proto::Attempt]) {
    let ids: Vec<&str> = known.iter().map(|a| a.attempt_id.as_str()).collect();
    for decided in campaign.decided() {
        assert!(ids.contains(&decided.as_str()), "{decided} was forgotten");
    }
    assert_eq!(ids.len(), campaign.messages());
}

/// P4: what the ledger says of each attempt is what the platform did. Counts the ends.
pub(super) fn true_ends(known: &[proto::Attempt], seen: &Seen) -> BTreeMap<String, u32> {
    let calls = calls(seen);
    let mut ends = BTreeMap::new();
    for attempt in known {
        let rang = calls.get(attempt.attempt_id.as_str()).copied();
        let rang = rang.unwrap_or(0);
        // What nobody saw, or nobody could find out, may have rung or not.
        let unknown = [Disposition::NoTrace, Disposition::Unresolved];
        let is_true = match attempt.state() {
            State::NotConnected if unknown.contains(&attempt.disposition()) => rang <= 1,
            State::Ended | State::NotConnected => rang == 1,
            State::Refused | State::NotDialed => rang == 0,
            State::Canceled
            | State::Unspecified
            | State::Queued
            | State::Deferred
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Uncertain
            | State::NeedsReview => false,
        };
        assert!(is_true, "P4: {rang} SIP calls, and {attempt:?}");
        let named = [State::NotConnected, State::NotDialed].contains(&attempt.state());
        let word = if named {
            attempt.disposition().as_str_name()
        } else {
            attempt.state().as_str_name()
        };
        let word = word.trim_start_matches("DISPOSITION_");
        *ends.entry(word.to_owned()).or_default() += 1;
    }
    ends
}

/// Whether the state ends by itself, by its own due time.
const fn passes(state: attempt::State) -> bool {
    match state {
        attempt::State::Queued
        | attempt::State::Deferred
        | attempt::State::Reserved
        | attempt::State::Dialing => true,
        attempt::State::Refused
        | attempt::State::Answered
        | attempt::State::Ended
        | attempt::State::NotConnected
        | attempt::State::NotDialed
        | attempt::State::Uncertain
        | attempt::State::NeedsReview
        | attempt::State::Canceled => false,
    }
}
