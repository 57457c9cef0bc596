//! What a test lets the memory store do with a call.

use std::fmt;
use std::time::Duration;

use crate::ledger::store::{Commit, Epoch, Failure, Key, Queue, Scan, Trim};
use crate::model::id::Partition;

/// A call, as a script sees it before it acts.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    /// `load` of these keys.
    Load(Partition, &'a [Key]),
    /// `commit`.
    Commit(Partition, &'a Commit),
    /// `scan`.
    Scan(Partition, &'a Scan),
    /// `claim_due` of a queue.
    ClaimDue(Partition, Queue),
    /// `next_due` of a queue.
    NextDue(Partition, Queue),
    /// `changes_since`.
    ChangesSince(Partition),
    /// `log_bounds`.
    LogBounds(Partition),
    /// `trim`.
    Trim(Partition, Trim),
    /// `info`.
    Info,
    /// `begin_epoch`.
    BeginEpoch(Epoch),
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fate {
    /// How long it is on its way before it acts, by tokio's time.
    pub delay: Duration,
    /// How it ends.
    pub outcome: Outcome,
    /// How long its answer is on its way.
    pub reply: Duration,
}

/// How a call ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// As the port promises.
    #[default]
    Done,
    /// Nothing is done; the answer is `NotApplied`.
    NotApplied(Failure),
    /// It is done; the answer is `Unknown`. For a call that only reads: `NotApplied`.
    Lost(Failure),
    /// The answer is `Unknown`; a commit is done so much later, against what stands then.
    /// Any other call is never done.
    Late(Failure, Duration),
    /// Nothing is done; a commit answers `Conflict` with what stands, as a store may when
    /// it cannot tell. Any other call is done.
    Conflict,
}

impl Fate {
    /// Acts after `delay`.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// Ends as `outcome`, at once.
    #[must_use]
    pub fn ends(outcome: Outcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }

    /// Nothing is done, and that is known.
    #[must_use]
    pub fn not_applied() -> Self {
        Self::ends(Outcome::NotApplied(injected()))
    }

    /// Done, and the answer is lost.
    #[must_use]
    pub fn lost() -> Self {
        Self::ends(Outcome::Lost(injected()))
    }

    /// Unknown now, done `later`.
    #[must_use]
    pub fn late(later: Duration) -> Self {
        Self::ends(Outcome::Late(injected(), later))
    }
}

fn injected() -> Failure {
    Failure::Other("injected".to_owned())
}

/// Decides the fate of each call. It must itself be deterministic.
pub trait Script: fmt::Debug + Send + Sync {
    /// Asked once for each call, in the order in which calls begin.
    fn fate(&self, call: Call<'_>) -> Fate;
}

/// Every call is done as the port promises.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faithful;

impl Script for Faithful {
    fn fate(&self, _call: Call<'_>) -> Fate {
        Fate::default()
    }
}

/// A script that is a function.
pub struct Scripted<F>(pub F);

impl<F> fmt::Debug for Scripted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl<F: Fn(Call<'_>) -> Fate + Send + Sync> Script for Scripted<F> {
    fn fate(&self, call: Call<'_>) -> Fate {
        self.0(call)
    }
}
