//! The fields that occur in many messages, and the list of what is wrong.

use std::fmt::Display;
use std::time::Duration;

use crate::api::limits::Limits;
use crate::model::time::Time;
use crate::model::written::{has_marked_number, has_number};

/// What is said of a text with a number in it.
pub(super) const NUMBER: &str = "has what looks like a phone number in it, and is kept and shown as it is: \
                      leave the number out";

/// What is wrong with a field. Never carries the field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field's path, as `agent.metadata`.
    pub field: String,
    /// A sentence whose subject is the field, as "must not be empty".
    pub description: String,
}

/// All that is wrong with a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// The list, in the order of the fields.
    #[must_use]
    pub fn list(&self) -> &[Violation] {
        &self.0
    }

    pub(super) fn add(&mut self, field: impl Into<String>, description: impl Display) {
        self.0.push(Violation {
            field: field.into(),
            description: description.to_string(),
        });
    }

    /// `value`, if nothing is wrong.
    pub(super) fn unless_any<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            Some(_) | None => Err(self),
        }
    }

    /// A field that must be there.
    pub(super) fn required<T>(&mut self, field: &str, text: String) -> Option<T>
    where
        T: TryFrom<String>,
        T::Error: Display,
    {
        match T::try_from(text) {
            Ok(value) => Some(value),
            Err(bad) => {
                self.add(field, bad);
                None
            }
        }
    }

    /// A field that may be empty. `None` also if it is wrong: the violation is kept.
    pub(super) fn optional<T>(&mut self, field: &str, text: String) -> Option<T>
    where
        T: TryFrom<String>,
        T::Error: Display,
    {
        if text.is_empty() {
            None
        } else {
            self.required(field, text)
        }
    }

    /// The id of something new: it is kept, shown and logged as it is. Where what there is
    /// already is only looked up, the id's form is enough.
    pub(super) fn new_id<T>(&mut self, field: &str, text: String) -> Option<T>
    where
        T: TryFrom<String>,
        T::Error: Display,
    {
        let marked = has_marked_number(&text);
        let id = self.required(field, text)?;
        if marked {
            self.add(field, NUMBER);
            return None;
        }
        Some(id)
    }

    /// A text of at most `limit` bytes without control characters.
    pub(super) fn text(&mut self, field: &str, text: &str, limit: usize) {
        let length = text.len();
        if length > limit {
            self.add(
                field,
                format_args!("is {length} bytes long; at most {limit} are allowed"),
            );
        } else if text.chars().any(char::is_control) {
            self.add(field, "has control characters");
        }
    }

    /// A text that a person wrote and that is kept as it is and shown, so that it must have no
    /// phone number in it, however grouped.
    pub(super) fn open_text(&mut self, field: &str, text: &str, limit: usize) {
        self.text(field, text, limit);
        if has_number(text) {
            self.add(
                field,
                format_args!("{NUMBER}, and put letters before a long number that is none"),
            );
        }
    }

    /// A value of a program that is kept as it is and shown: it may have many digits, but none
    /// that are marked as a number, as ids may.
    pub(super) fn open_value(&mut self, field: &str, value: &str, limit: usize) {
        self.text(field, value, limit);
        if has_marked_number(value) {
            self.add(field, NUMBER);
        }
    }

    /// An enum's value; `unspecified` stands for `default`.
    pub(super) fn one_of<P, T>(
        &mut self,
        field: &str,
        value: i32,
        map: impl FnOnce(P) -> T,
    ) -> Option<T>
    where
        P: TryFrom<i32>,
    {
        if let Ok(known) = P::try_from(value) {
            Some(map(known))
        } else {
            self.add(field, format_args!("has the unknown value {value}"));
            None
        }
    }

    /// How many on a page: the default if 0, and never more than the limit.
    pub(super) fn page_size(&mut self, size: i32, limits: &Limits) -> usize {
        match usize::try_from(size) {
            Ok(0) => limits.page_default,
            Ok(size) => size.min(limits.page_max),
            Err(_) => {
                self.add("page_size", "must not be negative");
                0
            }
        }
    }

    /// A moment.
    pub(super) fn time(
        &mut self,
        field: &str,
        value: Option<pbjson_types::Timestamp>,
    ) -> Option<Time> {
        let value = value?;
        let time = moment(value);
        if time.is_none() {
            self.add(
                field,
                "is no Timestamp: years 1970 to 9999, nanos 0 to 999,999,999",
            );
        }
        time
    }

    /// A span from `min` to `max`, `default` if absent.
    pub(super) fn span(
        &mut self,
        field: &str,
        value: Option<pbjson_types::Duration>,
        default: Duration,
        (min, max): (Duration, Duration),
    ) -> Option<Duration> {
        let Some(value) = value else {
            return Some(default);
        };
        let span = Duration::try_from(value).ok();
        match span {
            Some(span) if (min..=max).contains(&span) => Some(span),
            Some(_) | None => {
                self.add(
                    field,
                    format_args!(
                        "must be from {} to {}",
                        humantime::format_duration(min),
                        humantime::format_duration(max)
                    ),
                );
                None
            }
        }
    }
}

const YEAR_10000: i64 = 253_402_300_800;

/// A moment of the domain, if it is a valid one from 1970 on.
fn moment(value: pbjson_types::Timestamp) -> Option<Time> {
    let nanos = u32::try_from(value.nanos).ok()?;
    if !(0..YEAR_10000).contains(&value.seconds) || nanos >= 1_000_000_000 {
        return None;
    }
    Some(Time::from_micros(
        value.seconds * 1_000_000 + i64::from(nanos / 1_000),
    ))
}

/// A moment of the proto, within the years that its JSON form has.
#[must_use]
pub fn timestamp(time: Time) -> pbjson_types::Timestamp {
    let seconds = time.as_secs().clamp(-62_135_596_800, YEAR_10000 - 1);
    let micros = time.as_micros().rem_euclid(1_000_000);
    pbjson_types::Timestamp {
        seconds,
        nanos: i32::try_from(micros * 1_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_pass_there_and_back() {
        for micros in [0, 1, 999_999, 1_796_000_000_123_456] {
            let time = Time::from_micros(micros);
            assert_eq!(moment(timestamp(time)), Some(time));
        }
        for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1_000_000_000), (YEAR_10000, 0)] {
            assert_eq!(moment(pbjson_types::Timestamp { seconds, nanos }), None);
        }
    }

    #[test]
    fn a_number_in_an_open_text_is_refused_and_not_repeated() {
        let mut wrong = Violations::default();
        wrong.open_text("reason", "wrong list", 40);
        assert_eq!(wrong, Violations::default());
        wrong.open_text("reason", "call +1 202 555 0186 instead", 40);
        assert_eq!(wrong.list().len(), 1);
        assert!(!wrong.list()[0].description.contains("555"), "{wrong:?}");
    }

    #[test]
    fn an_id_may_be_of_digits_alone_and_no_address_of_a_phone() {
        use crate::model::id::ContactId;
        let mut wrong = Violations::default();
        let digits: Option<ContactId> = wrong.new_id("contact_id", "12345678901".to_owned());
        assert!(digits.is_some() && wrong == Violations::default());
        let tel: Option<ContactId> = wrong.new_id("contact_id", "tel:12025550186".to_owned());
        assert_eq!((tel, wrong.list().len()), (None, 1));
        assert!(wrong.list()[0].description.contains("phone number"));
        assert!(!wrong.list()[0].description.contains("555"), "{wrong:?}");
    }

    #[test]
    fn spans_keep_to_their_bounds() {
        let bounds = (Duration::from_secs(5), Duration::from_secs(80));
        let mut wrong = Violations::default();
        let mut of = |seconds, nanos| {
            let value = Some(pbjson_types::Duration { seconds, nanos });
            wrong.span("f", value, Duration::from_secs(45), bounds)
        };
        assert_eq!(of(5, 0), Some(Duration::from_secs(5)));
        assert_eq!(of(80, 0), Some(Duration::from_secs(80)));
        for (seconds, nanos) in [
            (0, 0),
            (4, 999_999_999),
            (80, 1),
            (-5, 0),
            (600, 0),
            (6, -1),
        ] {
            assert_eq!(of(seconds, nanos), None, "{seconds} {nanos}");
        }
        assert_eq!(wrong.list().len(), 6);
    }
}
