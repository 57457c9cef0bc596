//! The rules, in the order in which they are asked; one file each.
//!
//! A rule sees the facts and nothing else. It passes, says "not now" (the attempt waits),
//! or "never" (it is refused for good).

mod contact;
mod expiry;
mod history;
mod number_class;
mod number_in_use;

use crate::ledger::record::Held;
use crate::model::attempt::{Attempt, Reason, Rule};
use crate::model::phone::{E164, NumberRules};
use crate::model::time::Time;

/// What the rules see.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The present moment.
    pub now: Time,
    /// The attempt; for a new one as it would be accepted.
    pub attempt: &'a Attempt,
    /// Whether the ledger knew it before.
    pub known: bool,
    /// The number, where it was unsealed.
    pub to: Option<&'a E164>,
    /// Intents from before this are not remembered.
    pub remembered_since: Time,
    /// The present history of the store.
    pub epoch: uuid::Uuid,
    /// Who holds the contact.
    pub contact: &'a Held,
    /// Who holds the number.
    pub number: &'a Held,
    /// Which numbers may be dialed.
    pub numbers: &'a NumberRules,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing stands in the way.
    Pass,
    /// Not now.
    NotNow(Reason),
    /// Never, for this id.
    Never(Reason),
}

impl Answer {
    fn never(rule: Rule) -> Self {
        Self::Never(Reason::of(rule))
    }
}

/// The rules in their order. What is final comes first: an attempt that will be refused
/// must not wait for a contact that is busy.
const RULES: [fn(&Facts<'_>) -> Answer; 5] = [
    history::ask,
    expiry::ask,
    number_class::ask,
    contact::ask,
    number_in_use::ask,
];

/// The answer of the first rule that does not let it pass.
#[must_use]
pub fn ask(facts: &Facts<'_>) -> Answer {
    for rule in RULES {
        match rule(facts) {
            Answer::Pass => {}
            answer @ (Answer::NotNow(_) | Answer::Never(_)) => return answer,
        }
    }
    Answer::Pass
}
