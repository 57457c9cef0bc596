//! Simulation: whole worlds of nodes, platform, store and queue in paused time, from one seed.
//!
//! ```text
//!  queue (at least once) ──▶ nodes 1..3 ──▶ platform (the sandbox's machine)
//!                              │    ▲            │
//!       crash, pause, step ────┤    └─ webhooks ─┤ lost, doubled, late
//!                              ▼                 ▼
//!                      one store ──commits──▶ judge ◀── phones
//! ```
//!
//! A [`Plan`] says what its seed makes of a world, [`play()`] plays it, and [`fleet`] plays many on
//! all cores. The judge hears of each commit and of each phone at the moment at which it
//! happens and ends the world where a promise breaks ([`Invariant`]). The same seed replays
//! exactly: the hash over all that happened is the same.

mod armed;
mod calls;
mod chance;
pub mod fleet;
mod judge;
mod mail;
#[cfg(test)]
mod mutants;
mod people;
mod plan;
mod play;
mod queue;
mod stage;
mod store;
mod violation;
mod weather;

pub use plan::{CALLS_MAX, Plan, Storm};
pub use play::{Played, play};
pub use violation::{Invariant, Violation};
