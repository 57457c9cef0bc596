//! `expire_time` is the last moment at which a marker may be written.

use super::{Answer, Facts};
use crate::model::attempt::Rule;

pub(super) fn ask(facts: &Facts<'_>) -> Answer {
    if facts.now > facts.attempt.spec.expire_time {
        Answer::never(Rule::Expired)
    } else {
        Answer::Pass
    }
}
