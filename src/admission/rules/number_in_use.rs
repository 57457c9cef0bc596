//! One number, one leg, whichever contact it is written down for.

use super::contact::held;
use super::{Answer, Facts};
use crate::model::attempt::Rule;

pub(super) fn ask(facts: &Facts<'_>) -> Answer {
    held(facts, facts.number, Rule::NumberInUse)
}
