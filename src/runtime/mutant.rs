//! Deliberate faults of the product, which show that the simulation can fail.
//!
//! Each site is one line that asks [`is`]. Only where the library is compiled for its own unit
//! tests is that a question; everywhere else it is a constant `false`, so that nothing of them
//! is in a program that serves, and nothing there could choose one.

/// A deliberate fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mutant {
    /// The dial leaves before the attempt marker is written.
    MarkerAfterDial,
    /// A try's session is no fence: an old try settles and marks what a new one became.
    NoFence,
    /// The dial's token is minted at the send, and lives as long as it takes.
    TokenAtSend,
    /// Any 404 of a dial is read as a missing trunk.
    HealAnyNotFound,
    /// The room's guard fires after the marker too.
    GuardAfterMarker,
    /// Whoever finds a DIALING attempt past its window dials it again.
    LeaseHandsOverDialing,
    /// A dial without an answer is read as one that started nothing.
    SilenceIsProof,
    /// A dial without an answer is sent again.
    DialAgain,
    /// A commit does not expect the contact as it was read.
    ExpectWithoutContact,
    /// A new try takes the session and the room of the last one.
    RoomUsedAgain,
    /// A webhook that was kept before is kept and applied again.
    ReceiptTwice,
    /// A webhook writes the placement marker.
    WebhookWritesMarker,
    /// The marker is written although the attempt was canceled.
    CancelIgnoredAtMarker,
    /// A stop that reaches ringing alone deletes the room without a look.
    StopUnlooked,
    /// A phone that may ring on does not hold its contact and number.
    NoHoldAfterEnd,
    /// An attempt whose outcome is unknown frees its contact and number.
    UncertainFreesHold,
    /// A room that its placement left is not deleted by the reconciler.
    RoomNotDeleted,
    /// A change of state is written without its event.
    EventLeftOut,
}

/// Whether this fault is committed: never, outside the library's own tests.
#[cfg(not(test))]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "nothing of a mutant may be in a program that serves"
)]
pub(crate) const fn is(_mutant: Mutant) -> bool {
    false
}

#[cfg(test)]
pub(crate) use chosen::{choose, is};

#[cfg(test)]
mod chosen {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static CHOSEN: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    impl Mutant {
        /// All of them, those that need the most worlds first.
        pub(crate) const ALL: [Self; 18] = [
            Self::NoHoldAfterEnd,
            Self::NoFence,
            Self::TokenAtSend,
            Self::RoomNotDeleted,
            Self::UncertainFreesHold,
            Self::CancelIgnoredAtMarker,
            Self::StopUnlooked,
            Self::ReceiptTwice,
            Self::MarkerAfterDial,
            Self::HealAnyNotFound,
            Self::GuardAfterMarker,
            Self::LeaseHandsOverDialing,
            Self::SilenceIsProof,
            Self::DialAgain,
            Self::ExpectWithoutContact,
            Self::RoomUsedAgain,
            Self::WebhookWritesMarker,
            Self::EventLeftOut,
        ];
    }

    /// Whether this fault is committed on this thread.
    pub(crate) fn is(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(mutant)
    }

    /// From now on this thread commits this fault, or none.
    pub(crate) fn choose(mutant: Option<Mutant>) {
        CHOSEN.set(mutant);
    }
}
