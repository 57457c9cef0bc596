//! `[pace]`, `[trunks.NAME]` and `[numbers]`: how fast, over what, and to whom.

use std::time::Duration;

use phonenumber::country;

use super::fault::Wrong;
use super::reader::{Reader, Section};
use super::typed::{Shape, list, text};
use super::units::{HOUR, MILLISECOND};

/// The adaptive limit: off until the platform says that it is overloaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// The least calls per second that it goes down to.
    pub minimum: f64,
    /// Halvings are at least this far apart.
    pub halve_interval: Duration,
    /// What each second without an overload adds, in calls per second.
    pub growth: f64,
}

impl Pace {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("pace");
        Self {
            minimum: s.decimal("minimum", 0.001..=10_000.0),
            halve_interval: s.duration("halve_interval", MILLISECOND..=HOUR),
            growth: s.decimal("growth", 0.001..=10_000.0),
        }
    }
}

/// One trunk that may be named: `[trunks.NAME]`, NAME as in LiveKit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trunk {
    /// Dials that may begin in a second; `None`: no limit.
    pub calls_per_second: Option<f64>,
    /// Calls at once, ringing and answered; `None`: no limit.
    pub concurrent: Option<u32>,
    /// The numbers to call from, in E.164; empty: the trunk's own.
    pub from: Vec<String>,
}

impl Trunk {
    pub(super) fn read(s: &mut Section<'_>) -> Self {
        Self {
            calls_per_second: s.optional_decimal("calls_per_second", 0.001..=10_000.0),
            concurrent: s.optional_number("concurrent", 1..=1_000_000),
            from: s
                .optional("from", Shape::Secret, |value| {
                    list(value, |item| number(text(item)?))
                })
                .unwrap_or_default(),
        }
    }
}

/// Which numbers may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// Countries that may be called; empty: all.
    pub countries: Vec<country::Id>,
    /// Prefixes of numbers that are accepted without being valid anywhere, as `+999`.
    pub test_prefixes: Vec<String>,
    /// Whether numbers may be called that cost the person called or us a premium.
    pub allow_premium: bool,
}

impl Numbers {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("numbers");
        Self {
            countries: s
                .optional("countries", Shape::List, |value| {
                    list(value, |item| country(text(item)?))
                })
                .unwrap_or_default(),
            test_prefixes: s
                .optional("test_prefixes", Shape::List, |value| {
                    list(value, |item| prefix(text(item)?))
                })
                .unwrap_or_default(),
            allow_premium: s.flag("allow_premium"),
        }
    }
}

fn country(text: &str) -> Result<country::Id, Wrong> {
    text.parse().map_err(|_| {
        Wrong::new(
            format!("{text:?} is no country"),
            "write the two letters of ISO 3166, as \"DE\"",
        )
    })
}

fn digits(text: &str, len: std::ops::RangeInclusive<usize>) -> bool {
    text.strip_prefix('+').is_some_and(|rest| {
        len.contains(&rest.len())
            && !rest.starts_with('0')
            && rest.bytes().all(|b| b.is_ascii_digit())
    })
}

// The number itself is not repeated: no phone number in any error.
fn number(text: &str) -> Result<String, Wrong> {
    if digits(text, 7..=15) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        "has a number that is not E.164",
        "write + and 7 to 15 digits, without blanks",
    ))
}

fn prefix(text: &str) -> Result<String, Wrong> {
    if digits(text, 1..=15) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        "has something that begins no number",
        "write + and digits, as \"+999\"",
    ))
}
