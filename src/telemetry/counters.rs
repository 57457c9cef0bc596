//! What a process counts of its calls, in one place: a node makes it, hands it to whoever
//! counts, and `GetStatus` shows it. An exporter of metrics hangs here.
//!
//! Webhooks are counted by the inbox, and gaps by the reconciler, each where it happens.

use super::histogram::Histogram;
use super::redeliveries::Redeliveries;
use crate::model::attempt::Attempt;

/// The counters of one process. They start at zero with it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests for attempts that were known.
    pub redeliveries: Redeliveries,
    /// From the attempt marker to the placement marker.
    pub between_markers: Histogram,
}

impl Counters {
    /// The placement marker of `attempt` was committed.
    pub fn placed(&self, attempt: &Attempt) {
        let Some(placed) = &attempt.placed else {
            return;
        };
        if let (Some(marker), Some(answer)) = (&placed.marker, &placed.answer) {
            self.between_markers.add(answer.at.since(marker.at));
        }
    }
}
