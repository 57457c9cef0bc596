//! What must never be, and how a world ends where it is.

use std::fmt;
use std::time::Duration;

/// A promise that the simulation watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// P1: at most one SIP call for an attempt.
    OneCall,
    /// P2: at most one leg at a time for a contact of a workspace.
    OneLegPerContact,
    /// P2: at most one leg at a time for a number of a workspace.
    OneLegPerNumber,
    /// The marker is written before the dial, by the try that dials.
    MarkedFirst,
    /// No call starts after the horizon that its marker names.
    WithinHorizon,
    /// P3: nobody who talks is cut off by us, but for a recorded stop.
    NotCut,
    /// P3: no room without an owner after the horizon.
    NoRoomLeft,
    /// P4: nothing that was placed is called not dialed, or tried again.
    PlacedIsKnown,
    /// P4: what is called answered was answered, and what is called unanswered was not.
    StateIsTrue,
    /// P4: what is uncertain is settled, or waits for a person, by its time.
    Settles,
    /// P5: no passing state beyond its due time.
    Moves,
    /// A settled state stays.
    SettledStays,
    /// After a cancel nothing of the attempt begins any more.
    CancelHolds,
    /// What the first request of an attempt fixed stays, whatever another one says.
    SameIntent,
    /// Each try has a session, and so a room, of its own.
    OwnSession,
    /// A webhook is kept once.
    KeptOnce,
    /// P6: every change of state is an event, and their order has no gap.
    EventsWhole,
    /// The simulation itself stays whole: nothing panics in it.
    NoPanic,
}

impl Invariant {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneCall => "one_call",
            Self::OneLegPerContact => "one_leg_per_contact",
            Self::OneLegPerNumber => "one_leg_per_number",
            Self::MarkedFirst => "marked_first",
            Self::WithinHorizon => "within_horizon",
            Self::NotCut => "not_cut",
            Self::NoRoomLeft => "no_room_left",
            Self::PlacedIsKnown => "placed_is_known",
            Self::StateIsTrue => "state_is_true",
            Self::Settles => "settles",
            Self::Moves => "moves",
            Self::SettledStays => "settled_stays",
            Self::CancelHolds => "cancel_holds",
            Self::SameIntent => "same_intent",
            Self::OwnSession => "own_session",
            Self::KeptOnce => "kept_once",
            Self::EventsWhole => "events_whole",
            Self::NoPanic => "no_panic",
        }
    }
}

/// A broken promise. It ends its world.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which promise.
    pub invariant: Invariant,
    /// What broke it, in words.
    pub what: String,
    /// The world's seed.
    pub seed: u64,
    /// How many calls the world was made for: with the seed, it names the world.
    pub calls: usize,
    /// When, since the world began.
    pub at: Duration,
    /// What happened to the attempt that it is about, if it is about one.
    pub story: Vec<String>,
    /// The last things that happened before, the newest last.
    pub last: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} broken after {:.3} s in the world of seed {} with {} calls: {}",
            self.invariant.name(),
            self.at.as_secs_f64(),
            self.seed,
            self.calls,
            self.what
        )?;
        for line in &self.last {
            writeln!(f, "  {line}")?;
        }
        if !self.story.is_empty() {
            writeln!(f, "and of that attempt alone:")?;
        }
        for line in &self.story {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}
