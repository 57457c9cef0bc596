//! What says something else than what is settled: kept beside it as evidence, and alarmed.

use super::{Decided, Finding, Settler, Settling, Try};
use crate::ledger::{Decision, Error};
use crate::model::attempt::{Cause, Event, State};
use crate::model::verdict::Leg;

impl Settler {
    /// The callee's leg was seen answered, though its try is settled otherwise: kept beside it
    /// as contradicting evidence, once, and alarmed. A try that is open, or was answered, is
    /// left alone.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn contradict(
        &self,
        of: &Try,
        leg: &Leg,
        cause: Cause,
        told: &str,
    ) -> Result<(), Error> {
        self.settle(of, cause, None, |attempt| match attempt.state {
            State::NotConnected | State::NotDialed | State::Canceled
                if !attempt.history.iter().any(|t| t.evidence.ends_with(told)) =>
            {
                // Seen, and not answered by a dial: a stop that was recorded ends nothing of it.
                Some((Finding::Adopted(leg.clone()), told.to_owned()))
            }
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => None,
        })
        .await?;
        Ok(())
    }
}

impl Settling<'_> {
    /// A finding that the table ignores. One that contradicts what is settled is kept beside
    /// it and alarmed; one that only comes late or twice is dropped.
    pub(super) fn ignored(mut self, event: Event, why: &'static str) -> Decided {
        let state = self.before.state;
        if !contradicts(state, event) {
            return Ok(Decision::Keep((self.before, None)));
        }
        tracing::warn!(
            event = "attempt.contradicted",
            workspace = %self.before.workspace,
            attempt = %self.before.id,
            state = state.name(),
            why,
            evidence = self.evidence,
            "a finding contradicts the settled state; it is kept as evidence"
        );
        let evidence = format!("contradicting: {}", self.evidence);
        self.attempt = self.before.clone();
        self.attempt
            .enter(Some(state), state, self.now, self.cause, evidence);
        self.write(None)
    }
}

/// Whether a finding says something else than the settled state: an answer of what was not
/// answered, or an end without an answer of what was.
const fn contradicts(state: State, event: Event) -> bool {
    match event {
        Event::Answer => !matches!(state, State::Answered | State::Ended),
        Event::NotConnect => matches!(state, State::Answered | State::Ended | State::NotDialed),
        Event::Wait
        | Event::Defer
        | Event::Refuse
        | Event::Reserve
        | Event::Dial
        | Event::GiveUp
        | Event::End
        | Event::LoseSight
        | Event::AskReview
        | Event::Cancel => false,
    }
}
