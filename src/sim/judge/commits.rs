//! What a commit must not say.

use std::collections::VecDeque;

use serde::Deserialize;
use sha2::Digest;

use tokio::time::Instant;

use super::{Case, Known, Thing, denies_a_call, is_over};
use crate::ledger::receipt::Reading;
use crate::ledger::record::Session;
use crate::ledger::store::{Commit, Key, Kind, Put, Version};
use crate::model::attempt::{Attempt, State};
use crate::model::disposition::Disposition;
use crate::model::id::Partition;
use crate::sim::violation::Invariant;

/// What is looked at of an event: the whole of it is parsed for nobody.
#[derive(Debug, Deserialize)]
struct Told {
    attempt: Stands,
}

#[derive(Debug, Deserialize)]
struct Stands {
    state: State,
}

/// Whether something begins in this state that a cancel forbids.
const fn begins(state: State) -> bool {
    match state {
        State::Queued | State::Deferred | State::Reserved | State::Dialing => true,
        State::Refused
        | State::Answered
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Uncertain
        | State::NeedsReview
        | State::Canceled => false,
    }
}

impl Case {
    pub(super) fn committed(&mut self, p: Partition, commit: &Commit, version: Version) {
        self.digest.update(version.0.to_be_bytes());
        let last = self.commits.insert(p, version).unwrap_or(Version(0));
        if version.0 != last.0 + 1 {
            let what = format!("commit {} follows {}", version.0, last.0);
            self.violated(Invariant::EventsWhole, what);
        }
        for event in &commit.events {
            self.digest.update(&event.body);
        }
        for put in &commit.put {
            match put.key.kind() {
                Kind::Attempt => self.attempt(put, commit, version),
                Kind::Session => self.session(put),
                Kind::Receipt => self.receipt(put),
                Kind::Contact | Kind::Number | Kind::Room | Kind::Call | Kind::Meta => {}
            }
        }
    }

    fn attempt(&mut self, put: &Put, commit: &Commit, version: Version) {
        let Ok(attempt) = serde_json::from_slice::<Attempt>(&put.body) else {
            return self.violated(Invariant::NoPanic, format!("{} is unreadable", put.key));
        };
        let key = put.key.path().to_owned();
        self.event(&put.key, &attempt, commit);
        let before = self.attempts.get(&key).map(|known| known.attempt.clone());
        if let Some(before) = &before {
            self.passes(before, &attempt);
        }
        let stops = |attempt: &Attempt| attempt.stop.is_some();
        let is_spared = before.as_ref().is_some_and(stops) && !stops(&attempt);
        let now_stops = stops(&attempt) && !before.as_ref().is_some_and(stops);
        let entered = before.is_none_or(|before| before.state != attempt.state);
        let known = self.attempts.entry(key.clone()).or_insert_with(|| Known {
            attempt: attempt.clone(),
            calls: 0,
            legs: 0,
            answered: false,
            listed: None,
            spared: None,
            story: VecDeque::new(),
        });
        known.attempt = attempt.clone();
        if now_stops {
            known.listed = None;
        }
        if is_spared {
            known.spared = Some(Instant::now());
        }
        let (calls, answered) = (known.calls, known.answered);
        let thing = Thing::Committed(version, key.clone(), attempt.state, attempt.due());
        self.remember_of(&key, thing);
        self.is_true(&key, &attempt, calls, answered && entered);
        if entered {
            self.says_answered(&key, &attempt, answered);
        }
        self.follow(&key, &attempt);
        if let Some(awaited) = self.awaited.get_mut(&key) {
            for (_, tell) in awaited.extract_if(.., |(state, _)| *state == attempt.state) {
                // Whoever waited may have lost its patience.
                let _gone = tell.send(());
            }
        }
    }

    /// Every change of state is an event of the same commit.
    fn event(&mut self, key: &Key, attempt: &Attempt, commit: &Commit) {
        let told = commit.events.iter().rfind(|event| event.key == *key);
        let Some(told) = told else {
            let path = key.path();
            let before = self.attempts.get(path).map(|known| known.attempt.state);
            if before != Some(attempt.state) {
                let what = format!("{key} became {} without an event", attempt.state.name());
                self.violated(Invariant::EventsWhole, what);
            }
            return;
        };
        let same = serde_json::from_slice::<Told>(&told.body)
            .is_ok_and(|event| event.attempt.state == attempt.state);
        if !same {
            let what = format!("the event of {key} says something else than the record");
            self.violated(Invariant::EventsWhole, what);
        }
    }

    fn passes(&mut self, before: &Attempt, after: &Attempt) {
        let (from, to) = (before.state, after.state);
        if from != to && is_over(from) && !before.history_lost() {
            let what = format!("{} went from {} to {}", after.id, from.name(), to.name());
            self.violated(Invariant::SettledStays, what);
        }
        if before.cancel.is_some() && from != to && begins(to) {
            let what = format!("{} became {} after its cancel", after.id, to.name());
            self.violated(Invariant::CancelHolds, what);
        }
        let (first, now) = (&before.spec, &after.spec);
        let same = (
            &first.contact,
            &first.outreach,
            &first.campaign,
            &first.follows,
        ) == (&now.contact, &now.outreach, &now.campaign, &now.follows);
        if !before.tombstone && (!same || before.number_key != after.number_key) {
            let what = format!("{} became another call", after.id);
            self.violated(Invariant::SameIntent, what);
        }
        if after.tries < before.tries {
            let what = format!("{} has fewer tries than before", after.id);
            self.violated(Invariant::OwnSession, what);
        }
    }

    /// What was placed is not called undialed, and nothing else is tried after it.
    fn is_true(&mut self, key: &str, attempt: &Attempt, calls: u32, newly_answered: bool) {
        let state = attempt.state;
        let denies = denies_a_call(attempt);
        if denies && calls > 0 {
            let what = format!("{key} is {} after its phone rang", state.name());
            self.failed(key, Invariant::PlacedIsKnown, what);
        }
        // A stop that meets the answer is told as a stop.
        let named = attempt.settled.as_ref().map(|s| s.disposition);
        let unanswered = match state {
            State::NotConnected => {
                attempt.stop.is_none()
                    && !matches!(
                        named,
                        Some(Disposition::MediaMismatch | Disposition::Unresolved)
                    )
            }
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => false,
        };
        if unanswered && newly_answered {
            let what = format!("{key} is called {named:?}, and was answered");
            self.failed(key, Invariant::StateIsTrue, what);
        }
    }

    fn says_answered(&mut self, key: &str, attempt: &Attempt, answered: bool) {
        let says = matches!(attempt.state, State::Answered | State::Ended);
        if says && !answered {
            let what = format!("{key} is called answered, and nobody has answered");
            self.failed(key, Invariant::StateIsTrue, what);
        }
    }

    fn session(&mut self, put: &Put) {
        let Ok(session) = serde_json::from_slice::<Session>(&put.body) else {
            return self.violated(Invariant::NoPanic, format!("{} is unreadable", put.key));
        };
        let key = format!("{}/{}", session.workspace, session.attempt);
        if let Some(other) = self.sessions.insert(session.session, key.clone()) {
            let what = format!("a try of {key} took the session of a try of {other}");
            self.violated(Invariant::OwnSession, what);
        }
    }

    fn receipt(&mut self, put: &Put) {
        #[derive(Deserialize)]
        struct Kept {
            reading: Reading,
        }
        let fresh = serde_json::from_slice::<Kept>(&put.body)
            .is_ok_and(|kept| kept.reading == Reading::New);
        if fresh && !self.receipts.insert(put.key.path().to_owned()) {
            let what = format!("{} was kept a second time", put.key);
            self.violated(Invariant::KeptOnce, what);
        }
    }
}
