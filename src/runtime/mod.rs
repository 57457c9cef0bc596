//! What every part stands on: time, chance, tasks and the way a process ends.
//!
//! Nothing here knows of calls. Wall clock and chance are arguments everywhere, so
//! that a simulation can own both; monotonic time is `tokio::time::Instant`, which
//! tests pause.

pub mod budget;
pub mod clock;
pub mod files;
pub mod ids;
pub mod life;
pub(crate) mod mutant;
pub mod stop;
pub mod streak;
pub mod tasks;
