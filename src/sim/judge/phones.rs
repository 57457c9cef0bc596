//! What a phone must not do.

use std::time::Duration;

use sha2::Digest;
use tokio::time::Instant;

use super::{Case, Thing, denies_a_call};
use crate::lab::platform::{Phone, PhoneEvent};
use crate::model::attempt::{Attempt, Placed, State};
use crate::model::id::SessionId;
use crate::sim::violation::Invariant;

/// How long a deletion may be under way: as long as a request to the platform may take.
const UNDER_WAY: Duration = Duration::from_secs(10);

impl Case {
    pub(super) fn heard(&mut self, phone: &Phone) {
        if let PhoneEvent::Listed { answered } = phone.what {
            return self.listed(phone, answered);
        }
        let at = self.begun.elapsed().as_micros();
        self.digest.update(at.to_be_bytes());
        self.digest.update(phone.session.as_bytes());
        self.digest.update(format!("{:?}", phone.what).as_bytes());
        let key = SessionId::parse(&phone.session).and_then(|id| self.sessions.get(&id).cloned());
        let Some(key) = key else {
            let what = format!("a phone rings for the unknown session {}", phone.session);
            return self.violated(Invariant::MarkedFirst, what);
        };
        self.remember_of(&key, Thing::Phone(key.clone(), phone.clone()));
        match phone.what {
            PhoneEvent::Starts => self.starts(&key, phone),
            PhoneEvent::Answered => {
                if let Some(known) = self.attempts.get_mut(&key) {
                    known.answered = true;
                }
            }
            PhoneEvent::Listed { .. } => {}
            PhoneEvent::Ends { answered, put_out } => self.ends(&key, phone, answered && put_out),
        }
    }

    /// Nothing happened: only what somebody knows from now on.
    fn listed(&mut self, phone: &Phone, answered: bool) {
        let session = SessionId::parse(&phone.session);
        let key = session.and_then(|id| self.sessions.get(&id));
        if let Some(known) = key.and_then(|key| self.attempts.get_mut(key)) {
            known.listed = Some(answered);
        }
    }

    fn starts(&mut self, key: &str, phone: &Phone) {
        let Some(known) = self.attempts.get_mut(key) else {
            return;
        };
        known.calls += 1;
        known.legs += 1;
        let (calls, attempt) = (known.calls, known.attempt.clone());
        if calls > 1 {
            let what = format!("{key} rings for the {calls}. time");
            self.failed(key, Invariant::OneCall, what);
        }
        let contact = contact_of(&attempt);
        let legs = self.contacts.entry(contact).or_default();
        *legs += 1;
        if *legs > 1 {
            let what = format!("{key} rings a contact whose phone rings already");
            self.failed(key, Invariant::OneLegPerContact, what);
        }
        let number = format!("{}/{}", attempt.workspace, phone.to);
        let legs = self.numbers.entry(number).or_default();
        *legs += 1;
        if *legs > 1 {
            let what = format!("{key} rings a number that rings already");
            self.failed(key, Invariant::OneLegPerNumber, what);
        }
        self.is_marked(key, &attempt, phone);
    }

    fn is_marked(&mut self, key: &str, attempt: &Attempt, phone: &Phone) {
        let placed = attempt.placed.as_ref();
        let own = placed.filter(|placed| placed.session.to_string() == phone.session);
        let marked = own.is_some_and(|placed| placed.marker.is_some());
        let state = attempt.state;
        let denies = denies_a_call(attempt);
        if !marked {
            let what = format!("{key} rings without a marker of this try");
            self.failed(key, Invariant::MarkedFirst, what);
        } else if denies {
            let what = format!("{key} rings while it is {}", state.name());
            self.failed(key, Invariant::PlacedIsKnown, what);
        }
        let horizon = own.and_then(Placed::horizon);
        if let Some(horizon) = horizon
            && self.wall() > horizon.plus(self.skew)
        {
            let what = format!("{key} rings after {horizon}, its horizon");
            self.failed(key, Invariant::WithinHorizon, what);
        }
    }

    fn ends(&mut self, key: &str, phone: &Phone, cut: bool) {
        let Some(known) = self.attempts.get_mut(key) else {
            return;
        };
        known.legs = known.legs.saturating_sub(1);
        let (attempt, listed) = (known.attempt.clone(), known.listed);
        let spared = known.spared;
        let number = format!("{}/{}", attempt.workspace, phone.to);
        for (legs, who) in [
            (&mut self.contacts, contact_of(&attempt)),
            (&mut self.numbers, number),
        ] {
            if let Some(legs) = legs.get_mut(&who) {
                *legs = legs.saturating_sub(1);
            }
        }
        // One that contradicts how its attempt ended may be cut once nobody hears it.
        let contradicts = match attempt.state {
            State::NotConnected | State::Canceled => true,
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview => false,
        };
        // Who answers between a look and the deletion that it allowed is cut; nobody else is by
        // a stop that reaches ringing alone.
        let reached = match attempt.stop {
            // It was under way when the answer came, and may be for as long as a request.
            None => {
                let late = spared.is_some_and(|at| at.elapsed() <= UNDER_WAY);
                late && listed == Some(false)
            }
            Some(_) => attempt.hangs_up() || listed == Some(false),
        };
        if cut && !reached && !contradicts {
            let state = attempt.state.name();
            let stop = attempt.stop.map(|stop| stop.why);
            let what = format!(
                "{key} was cut off while somebody talked; it is {state}, its stop {stop:?}"
            );
            self.failed(key, Invariant::NotCut, what);
        }
        self.watch_end(key, Instant::now());
    }
}

fn contact_of(attempt: &Attempt) -> String {
    format!("{}/{}", attempt.workspace, attempt.spec.contact)
}
