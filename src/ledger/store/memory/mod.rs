//! A store in memory, for simulation.
//!
//! It keeps the port's promises except durability, awaits at least once in every call,
//! and lets a [`Script`] decide what becomes of each call: delayed, not done, done with a
//! lost answer, done late, or refused as a conflict. It is deterministic: it has no
//! thread, no clock of its own and no chance. What is to be done late is done before the
//! first later call that could see it, which nobody can tell from having been done on time.

mod handle;
mod script;
mod shelf;

pub use handle::{Memory, Witness};
pub use script::{Call, Faithful, Fate, Outcome, Script, Scripted};
