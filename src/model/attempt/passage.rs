//! How far an attempt's dial has come by its two markers: the one function that a redelivered
//! request, a webhook, the reconciler and a restart ask.

use super::record::Attempt;
use super::state::State;
use crate::model::disposition::Disposition;
use crate::model::time::Time;

/// Where an attempt stands between the attempt marker and the placement marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passage {
    /// No marker is written: nothing of the present try was dialed.
    Open,
    /// The attempt marker is written and its window has not ended: the phone may be ringing,
    /// and a second entry meets it.
    InFlight,
    /// The window has ended, and whether the call was placed is not known: the reconciler's.
    Unclear,
    /// The platform confirmed that the call was placed, whatever came of it.
    Placed,
    /// Settled, without a confirmation that a call was placed.
    Over,
}

impl Passage {
    /// Every one, in order.
    pub const ALL: [Self; 5] = [
        Self::Open,
        Self::InFlight,
        Self::Unclear,
        Self::Placed,
        Self::Over,
    ];

    /// Its name in logs and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::InFlight => "in_flight",
            Self::Unclear => "unclear",
            Self::Placed => "placed",
            Self::Over => "over",
        }
    }
}

impl Attempt {
    /// How far its dial has come at `now`.
    #[must_use]
    pub fn passage(&self, now: Time) -> Passage {
        match self.state {
            State::Queued | State::Deferred | State::Reserved => Passage::Open,
            State::Dialing | State::Uncertain | State::NeedsReview => {
                let marker = self.placed.as_ref().and_then(|p| p.marker.as_ref());
                match marker {
                    Some(marker) if now < marker.window_end => Passage::InFlight,
                    Some(_) | None => Passage::Unclear,
                }
            }
            State::Answered | State::Ended => Passage::Placed,
            State::NotConnected | State::Canceled if self.is_confirmed() => Passage::Placed,
            State::NotConnected | State::Canceled | State::NotDialed | State::Refused => {
                Passage::Over
            }
        }
    }

    /// Whether it ended with a call of which the platform told. `NO_TRACE` and `UNRESOLVED`
    /// say that nobody did.
    fn is_confirmed(&self) -> bool {
        self.settled.as_ref().is_some_and(|settled| {
            settled.call_started
                && settled.disposition != Disposition::NoTrace
                && settled.disposition != Disposition::Unresolved
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::attempt::{Keyed, Placed, Settled, Spec};
    use crate::model::disposition::Rang;
    use crate::model::id::{Nonce, Partition, SessionId};
    use crate::model::window::{Marker, Slacks, Spans};

    const NOW: Time = Time::from_secs(1_000);

    fn attempt(state: State) -> Attempt {
        let slacks = Slacks::sample();
        let (workspace, id) = ("w".parse().unwrap(), "a".parse().unwrap());
        let session = SessionId::of(&"d-1".parse().unwrap(), &workspace, &id, 1);
        let spec = Spec::sample(NOW);
        let keyed = Keyed::default();
        let mut attempt = Attempt::new(workspace, id, spec, keyed, uuid::Uuid::nil(), NOW);
        let nonce = Nonce(uuid::Uuid::nil());
        let room = session.room(Partition(0));
        let mut placed = Placed::reserved(session, room, nonce, NOW, NOW);
        let spans = Spans::new(Duration::from_secs(45), "", &slacks);
        placed.marker = Some(Marker::new(NOW, NOW, &spans, &slacks));
        (attempt.state, attempt.placed) = (state, Some(placed));
        attempt
    }

    #[test]
    fn a_marker_is_in_flight_until_its_window_ends_whatever_the_answer_left_unclear() {
        let end = NOW.plus(Duration::from_secs(80));
        for state in [State::Dialing, State::Uncertain, State::NeedsReview] {
            let attempt = attempt(state);
            let before = end.minus(Duration::from_millis(1));
            assert_eq!(attempt.passage(before), Passage::InFlight);
            assert_eq!(attempt.passage(end), Passage::Unclear);
        }
        let mut unmarked = attempt(State::Dialing);
        unmarked.placed = None;
        assert_eq!(unmarked.passage(NOW), Passage::Unclear, "never open");
    }

    #[test]
    fn what_was_confirmed_is_placed_and_what_was_not_is_over() {
        let with = |state, disposition, started| {
            let mut attempt = attempt(state);
            attempt.settled = Some(Settled::new(disposition, Rang::NoEvidence, started, NOW));
            attempt.passage(NOW)
        };
        for (state, disposition, started, wanted) in [
            (
                State::Answered,
                Disposition::Answered,
                true,
                Passage::Placed,
            ),
            (State::Ended, Disposition::Answered, true, Passage::Placed),
            (
                State::NotConnected,
                Disposition::Busy,
                true,
                Passage::Placed,
            ),
            (
                State::NotConnected,
                Disposition::NoTrace,
                true,
                Passage::Over,
            ),
            (
                State::NotConnected,
                Disposition::Unresolved,
                true,
                Passage::Over,
            ),
            (
                State::Canceled,
                Disposition::Canceled,
                true,
                Passage::Placed,
            ),
            (State::Canceled, Disposition::Canceled, false, Passage::Over),
            (State::NotDialed, Disposition::Expired, false, Passage::Over),
        ] {
            assert_eq!(
                with(state, disposition, started),
                wanted,
                "{state:?} {disposition:?}"
            );
        }
        for state in [State::Queued, State::Deferred, State::Reserved] {
            assert_eq!(attempt(state).passage(NOW), Passage::Open);
        }
    }
}
