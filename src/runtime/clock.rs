//! The wall clock, as an argument.
//!
//! A wall clock may step. It stamps records and decides expiry; it never measures a
//! wait. Waits use `tokio::time::Instant`.

use crate::model::time::Time;
use std::fmt::Debug;

/// Tells the present moment of the wall clock.
pub trait Clock: Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the machine's clock is read"
    )]
    fn now(&self) -> Time {
        Time::from_micros(jiff::Timestamp::now().as_microsecond())
    }
}
