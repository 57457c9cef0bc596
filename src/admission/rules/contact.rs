//! One person, one leg: while an attempt holds the contact, no other rings it.

use super::{Answer, Facts};
use crate::ledger::record::Held;
use crate::model::attempt::{Reason, Rule};

pub(super) fn ask(facts: &Facts<'_>) -> Answer {
    held(facts, facts.contact, Rule::ContactReserved)
}

/// Whether another attempt holds the contact or the number.
pub(super) fn held(facts: &Facts<'_>, held: &Held, rule: Rule) -> Answer {
    match held.other(&facts.attempt.id, facts.now) {
        None => Answer::Pass,
        Some(taken) => Answer::NotNow(Reason {
            rule,
            holder: Some(taken.attempt.clone()),
            // A time that has passed tells nothing: an uncertain holder has no time of its own.
            until: (taken.due > facts.now).then_some(taken.due),
        }),
    }
}
