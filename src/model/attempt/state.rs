//! The transition table of the attempt.
//!
//! [`transition`] is the specification: every pair of state and event is written out.
//! `src/docs/states.md` is generated from it by a test.

use serde::{Deserialize, Serialize};

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Accepted and kept; waits for the contact, the hours, a slot of the pace or the next try.
    Queued,
    /// Not now, and the caller keeps it; asked anew by the next `PlaceCall`.
    Deferred,
    /// Never, for this id.
    Refused,
    /// Room and agent may exist; nothing was dialed.
    Reserved,
    /// The attempt marker is written; the phone may be ringing.
    Dialing,
    /// The placement marker is written: 200 OK, may be voicemail.
    Answered,
    /// Was answered, is over.
    Ended,
    /// A SIP call was started and ended without an answer.
    NotConnected,
    /// Proved that no SIP call was started, and no try or time is left.
    NotDialed,
    /// Whether the platform accepted it is unknown; the reconciler owns it.
    Uncertain,
    /// Evidence cannot settle it; a person must.
    NeedsReview,
    /// Stopped by request, final for the id.
    Canceled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Deferred,
        Self::Refused,
        Self::Reserved,
        Self::Dialing,
        Self::Answered,
        Self::Ended,
        Self::NotConnected,
        Self::NotDialed,
        Self::Uncertain,
        Self::NeedsReview,
        Self::Canceled,
    ];

    /// Whether it will not change any more, but for ANSWERED → ENDED and a REFUSED whose
    /// history was lost (which `PlaceCall` decides anew after `store adopt`).
    #[must_use]
    pub const fn settled(self) -> bool {
        match self {
            Self::Refused
            | Self::Answered
            | Self::Ended
            | Self::NotConnected
            | Self::NotDialed
            | Self::Canceled => true,
            Self::Queued
            | Self::Deferred
            | Self::Reserved
            | Self::Dialing
            | Self::Uncertain
            | Self::NeedsReview => false,
        }
    }

    /// Whether it holds the contact and the number: a leg may be, or soon be, alive.
    #[must_use]
    pub const fn holds(self) -> bool {
        match self {
            Self::Reserved
            | Self::Dialing
            | Self::Answered
            | Self::Uncertain
            | Self::NeedsReview => true,
            Self::Queued
            | Self::Deferred
            | Self::Refused
            | Self::Ended
            | Self::NotConnected
            | Self::NotDialed
            | Self::Canceled => false,
        }
    }

    /// Its name in records, logs and indexes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Deferred => "deferred",
            Self::Refused => "refused",
            Self::Reserved => "reserved",
            Self::Dialing => "dialing",
            Self::Answered => "answered",
            Self::Ended => "ended",
            Self::NotConnected => "not_connected",
            Self::NotDialed => "not_dialed",
            Self::Uncertain => "uncertain",
            Self::NeedsReview => "needs_review",
            Self::Canceled => "canceled",
        }
    }
}

/// What can happen to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A rule says "not now", or a try failed and others are left; we keep it.
    Wait,
    /// The same, and the caller keeps it.
    Defer,
    /// A rule says "never", or its time passed.
    Refuse,
    /// Admitted: a new try begins.
    Reserve,
    /// The attempt marker is written.
    Dial,
    /// A try failed without a call and none is left; or a proof of no call settles it.
    GiveUp,
    /// The platform confirmed an answer.
    Answer,
    /// The answered call is over.
    End,
    /// The call ended without an answer.
    NotConnect,
    /// What became of the dial is not known.
    LoseSight,
    /// Evidence cannot settle it.
    AskReview,
    /// Stopped by request, and nothing of it may ring any more.
    Cancel,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 12] = [
        Self::Wait,
        Self::Defer,
        Self::Refuse,
        Self::Reserve,
        Self::Dial,
        Self::GiveUp,
        Self::Answer,
        Self::End,
        Self::NotConnect,
        Self::LoseSight,
        Self::AskReview,
        Self::Cancel,
    ];
}

/// What a transition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It goes to this state (which may be the one it is in).
    Applied(State),
    /// It happened late or twice and changes nothing, and this is why.
    Ignored(&'static str),
    /// It cannot happen: a fault of ours.
    Illegal,
}

const LATE: &str = "it is settled; what comes later is evidence, no change";
const DIALED: &str = "a marker is written; what is not yet dialed does not apply to it";
const TWICE: &str = "it is so already";

/// Where `event` takes an attempt that is in `state`; `None` is an attempt that is new.
#[must_use]
pub const fn transition(state: Option<State>, event: Event) -> Outcome {
    match state {
        None => from_new(event),
        Some(State::Queued) => from_queued(event),
        Some(State::Deferred) => from_deferred(event),
        Some(State::Refused) => from_refused(event),
        Some(State::Reserved) => from_reserved(event),
        Some(State::Dialing) => from_dialing(event),
        Some(State::Answered) => from_answered(event),
        Some(State::Uncertain) => from_uncertain(event),
        Some(State::NeedsReview) => from_needs_review(event),
        Some(State::Ended | State::NotConnected | State::NotDialed | State::Canceled) => {
            from_settled(event)
        }
    }
}

/// A new attempt is admitted, waits, is refused, or is a tombstone of a cancel.
const fn from_new(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Applied(State::Deferred),
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Reserve => Outcome::Applied(State::Reserved),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::Dial
        | Event::GiveUp
        | Event::Answer
        | Event::End
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview => Outcome::Illegal,
    }
}

/// What waits is asked again, gives up when no try or time is left, or is stopped.
const fn from_queued(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Ignored("we said that we keep it"),
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Reserve => Outcome::Applied(State::Reserved),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::Dial
        | Event::Answer
        | Event::End
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview => Outcome::Illegal,
    }
}

/// As what waits, but a caller who no longer keeps it hands it over.
const fn from_deferred(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Applied(State::Deferred),
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Reserve => Outcome::Applied(State::Reserved),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::Dial
        | Event::Answer
        | Event::End
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview => Outcome::Illegal,
    }
}

/// Final, but for history that was lost and is adopted: such a one is decided anew. The
/// caller of this table asks that first.
const fn from_refused(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Applied(State::Deferred),
        Event::Reserve => Outcome::Applied(State::Reserved),
        // For another reason: it may have expired before the history was adopted.
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Cancel
        | Event::GiveUp
        | Event::Answer
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview => Outcome::Ignored(LATE),
        Event::Dial | Event::End => Outcome::Illegal,
    }
}

/// Nothing was dialed: it may wait again, give up, be refused or stopped, or be dialed.
const fn from_reserved(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Applied(State::Deferred),
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Dial => Outcome::Applied(State::Dialing),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::Reserve => Outcome::Ignored("another process runs this try"),
        // In one commit with the reservation: LiveKit has told of a call of this attempt that
        // this store does not know.
        Event::LoseSight => Outcome::Applied(State::Uncertain),
        Event::Answer | Event::End | Event::NotConnect | Event::AskReview => Outcome::Illegal,
    }
}

/// The phone may ring. It goes back only on proof that no call was started.
const fn from_dialing(event: Event) -> Outcome {
    match event {
        Event::Wait => Outcome::Applied(State::Queued),
        Event::Defer => Outcome::Applied(State::Deferred),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::Answer => Outcome::Applied(State::Answered),
        Event::NotConnect => Outcome::Applied(State::NotConnected),
        Event::LoseSight => Outcome::Applied(State::Uncertain),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::End => Outcome::Applied(State::Ended),
        // The second send of the heal writes a marker of its own.
        Event::Dial => Outcome::Applied(State::Dialing),
        Event::Refuse => Outcome::Applied(State::Refused),
        Event::Reserve => Outcome::Ignored(DIALED),
        Event::AskReview => Outcome::Illegal,
    }
}

/// Answered: it can only end.
const fn from_answered(event: Event) -> Outcome {
    match event {
        Event::End => Outcome::Applied(State::Ended),
        Event::Answer => Outcome::Ignored(TWICE),
        Event::Wait
        | Event::Defer
        | Event::Refuse
        | Event::Reserve
        | Event::Dial
        | Event::GiveUp
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview
        | Event::Cancel => Outcome::Ignored(LATE),
    }
}

/// Settled by evidence or by a late verdict of the dial path; never dialed again.
const fn from_uncertain(event: Event) -> Outcome {
    match event {
        Event::Answer => Outcome::Applied(State::Answered),
        Event::End => Outcome::Applied(State::Ended),
        Event::NotConnect => Outcome::Applied(State::NotConnected),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::AskReview => Outcome::Applied(State::NeedsReview),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::LoseSight => Outcome::Ignored(TWICE),
        Event::Wait | Event::Defer | Event::Refuse | Event::Reserve | Event::Dial => {
            Outcome::Ignored(DIALED)
        }
    }
}

/// As [`from_uncertain`], by a person or by deciding evidence that comes late.
const fn from_needs_review(event: Event) -> Outcome {
    match event {
        Event::Answer => Outcome::Applied(State::Answered),
        Event::End => Outcome::Applied(State::Ended),
        Event::NotConnect => Outcome::Applied(State::NotConnected),
        Event::GiveUp => Outcome::Applied(State::NotDialed),
        Event::Cancel => Outcome::Applied(State::Canceled),
        Event::LoseSight | Event::AskReview => Outcome::Ignored(TWICE),
        Event::Wait | Event::Defer | Event::Refuse | Event::Reserve | Event::Dial => {
            Outcome::Ignored(DIALED)
        }
    }
}

/// `ENDED`, `NOT_CONNECTED`, `NOT_DIALED` and `CANCELED` are final.
const fn from_settled(event: Event) -> Outcome {
    match event {
        Event::Wait
        | Event::Defer
        | Event::Refuse
        | Event::Reserve
        | Event::Dial
        | Event::GiveUp
        | Event::Answer
        | Event::End
        | Event::NotConnect
        | Event::LoseSight
        | Event::AskReview
        | Event::Cancel => Outcome::Ignored(LATE),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn picture() -> String {
        let mut text = String::from("stateDiagram-v2\n");
        for event in Event::ALL {
            if let Outcome::Applied(to) = transition(None, event) {
                writeln!(text, "    [*] --> {to:?}: {event:?}").unwrap();
            }
        }
        for from in State::ALL {
            for event in Event::ALL {
                if let Outcome::Applied(to) = transition(Some(from), event) {
                    writeln!(text, "    {from:?} --> {to:?}: {event:?}").unwrap();
                }
            }
        }
        for state in [
            State::Ended,
            State::NotConnected,
            State::NotDialed,
            State::Canceled,
        ] {
            writeln!(text, "    {state:?} --> [*]").unwrap();
        }
        text
    }

    /// The picture in the documentation is this table. Write it anew with
    /// `RINGONCE_WRITE=1 cargo test picture`.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch for whoever changes the table"
    )]
    fn the_picture_is_generated_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs/states.md");
        let page = format!(
            "# States of an attempt\n\nGenerated from the transition table in \
             `src/model/attempt/state.rs`; a test keeps it in step.\n\n```mermaid\n{}```\n",
            picture()
        );
        if std::env::var("RINGONCE_WRITE").is_ok() {
            std::fs::write(path, &page).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap(),
            page,
            "run with RINGONCE_WRITE=1"
        );
    }

    #[test]
    fn nothing_leaves_a_final_state() {
        for state in [
            State::Ended,
            State::NotConnected,
            State::NotDialed,
            State::Canceled,
        ] {
            for event in Event::ALL {
                assert!(matches!(
                    transition(Some(state), event),
                    Outcome::Ignored(_)
                ));
            }
        }
    }

    #[test]
    fn a_marker_is_written_only_from_reserved_or_for_the_heal() {
        for state in State::ALL {
            let dials = matches!(transition(Some(state), Event::Dial), Outcome::Applied(_));
            assert_eq!(
                dials,
                matches!(state, State::Reserved | State::Dialing),
                "{state:?}"
            );
        }
        assert_eq!(transition(None, Event::Dial), Outcome::Illegal);
    }

    #[test]
    fn no_new_try_once_the_call_may_have_been_lost_sight_of() {
        for state in [State::Answered, State::Uncertain, State::NeedsReview] {
            for event in [Event::Wait, Event::Reserve, Event::Defer, Event::Dial] {
                assert!(matches!(
                    transition(Some(state), event),
                    Outcome::Ignored(_)
                ));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_happens_an_attempt_that_was_answered_never_dials_again(
            events in proptest::collection::vec(0_usize..12, 1..40)
        ) {
            let mut state = None;
            let mut answered = false;
            for event in events.into_iter().map(|n| Event::ALL[n]) {
                let Outcome::Applied(next) = transition(state, event) else { continue };
                proptest::prop_assert!(!(answered && event == Event::Dial));
                answered |= matches!(next, State::Answered | State::Ended);
                state = Some(next);
            }
        }
    }
}
