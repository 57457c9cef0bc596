//! Why an attempt waits or is refused.

use serde::{Deserialize, Serialize};

use crate::model::id::AttemptId;
use crate::model::phone::NumberClass;
use crate::model::time::Time;

/// Why an attempt waits, and until when at the latest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The rule that stands in the way.
    pub reason: Reason,
    /// When it is asked again.
    pub until: Time,
    /// Not before this: a back-off, never shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// How often the same refusal was given.
    #[serde(default)]
    pub count: u32,
    /// When it was first given.
    pub first: Time,
    /// When it was last given.
    pub last: Time,
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// The attempt that holds what this one needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<AttemptId>,
    /// When the rule may let it pass, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Reason {
    /// The rule alone: nobody holds what is needed, and no time is known.
    #[must_use]
    pub const fn of(rule: Rule) -> Self {
        Self {
            rule,
            holder: None,
            until: None,
        }
    }
}

impl Waiting {
    /// A reason that is given for the first time, at `now`.
    #[must_use]
    pub const fn first(reason: Reason, until: Time, not_before: Option<Time>, now: Time) -> Self {
        Self {
            reason,
            until,
            not_before,
            count: 1,
            first: now,
            last: now,
        }
    }
}

/// A rule of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The intent is older than what this store remembers.
    HistoryLost,
    /// Its time passed.
    Expired,
    /// The number is of a class that is not dialed.
    Number(NumberClass),
    /// Another attempt holds the contact.
    ContactReserved,
    /// Another attempt has a leg to the number, or may have.
    NumberInUse,
    /// The pace of the trunk or of this process.
    Pace,
    /// A try failed; the next one waits.
    NextTry,
}

impl Rule {
    /// Its name in the API: `CONTACT_RESERVED`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HistoryLost => "HISTORY_LOST",
            Self::Expired => "EXPIRED",
            Self::Number(NumberClass::Invalid) => "NUMBER_INVALID",
            Self::Number(NumberClass::Emergency) => "NUMBER_EMERGENCY",
            Self::Number(NumberClass::Premium) => "NUMBER_PREMIUM",
            Self::Number(NumberClass::Country) => "NUMBER_COUNTRY",
            Self::ContactReserved => "CONTACT_RESERVED",
            Self::NumberInUse => "NUMBER_IN_USE",
            Self::Pace => "PACE",
            Self::NextTry => "NEXT_TRY",
        }
    }

    /// One sentence for a person: what stands in the way and what to do.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::HistoryLost => {
                "this store does not remember the time of the intent, so it may have rung before; if it surely has not, stop the service, run `ringonce store adopt --since TIME --store STORE`, and start it again"
            }
            Self::Expired => "its time passed before it could be dialed; nothing was dialed",
            Self::Number(NumberClass::Invalid) => "no such number can exist; nothing was dialed",
            Self::Number(NumberClass::Emergency) => "emergency and short numbers are never dialed",
            Self::Number(NumberClass::Premium) => {
                "premium-rate numbers are not allowed (numbers.allow_premium)"
            }
            Self::Number(NumberClass::Country) => {
                "the number's country is not allowed (numbers.countries)"
            }
            Self::ContactReserved => "another attempt has this contact",
            Self::NumberInUse => "another attempt has this number",
            Self::Pace => "the trunk or this process dials as fast as it may",
            Self::NextTry => {
                "the last try failed before anything was dialed; the next one waits a little"
            }
        }
    }
}
