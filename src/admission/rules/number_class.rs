//! Emergency, short, premium and invalid numbers, and countries that are not allowed.

use super::{Answer, Facts};
use crate::model::attempt::Rule;
use crate::model::phone;

pub(super) fn ask(facts: &Facts<'_>) -> Answer {
    let Some(number) = facts.to else {
        return Answer::Pass;
    };
    match phone::allowed(number, facts.numbers) {
        Ok(()) => Answer::Pass,
        Err(class) => Answer::never(Rule::Number(class)),
    }
}
