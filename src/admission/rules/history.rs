//! Forgotten history must not ring again.
//!
//! An unknown attempt whose intent is older than what the store remembers may have rung
//! before. A store that came back empty, older or from a backup is a new epoch; what it
//! believed to be waiting may have rung since, too.

use super::{Answer, Facts};
use crate::model::attempt::Rule;

pub(super) fn ask(facts: &Facts<'_>) -> Answer {
    let unknown = !facts.known || facts.attempt.history_lost();
    let forgotten = if unknown {
        facts.attempt.spec.intend_time < facts.remembered_since
    } else {
        facts.attempt.epoch != facts.epoch
    };
    if forgotten {
        Answer::never(Rule::HistoryLost)
    } else {
        Answer::Pass
    }
}
