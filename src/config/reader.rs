//! Reads typed values out of the layers and notes every fault on the way.
//!
//! A value that does not do is noted, and the layer below it is read instead, so that one
//! pass finds all faults. What is asked for here is what is known: keys that nobody asked
//! for are unknown, and no second list of keys can drift away from the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::fault::{Fault, Wrong};
use super::layer::{KeyPath, Layers, Origin, Value};

/// One effective value, for `config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The key.
    pub key: KeyPath,
    /// The value as text; secrets are redacted.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Reads the layers.
#[derive(Debug)]
pub(super) struct Reader {
    layers: Layers,
    faults: Vec<Fault>,
    known: BTreeSet<KeyPath>,
    sections: BTreeSet<KeyPath>,
    shown: BTreeMap<KeyPath, Shown>,
}

impl Reader {
    /// Of these layers, with the faults that were found while they were read.
    pub(super) fn new(layers: Layers, faults: Vec<Fault>) -> Self {
        Self {
            layers,
            faults,
            known: BTreeSet::new(),
            sections: BTreeSet::new(),
            shown: BTreeMap::new(),
        }
    }

    /// The section of this name.
    pub(super) fn section(&mut self, name: &str) -> Section<'_> {
        self.at(KeyPath::dotted(name))
    }

    fn at(&mut self, path: KeyPath) -> Section<'_> {
        self.sections.insert(path.clone());
        Section { reader: self, path }
    }

    /// Reads every table `[name.NAME]`: the name through `T`, the rest through `read`.
    pub(super) fn named<N, T>(
        &mut self,
        name: &str,
        read: impl Fn(&mut Section<'_>) -> T,
    ) -> BTreeMap<N, T>
    where
        N: FromStr<Err: Display> + Ord,
    {
        let path = KeyPath::dotted(name);
        self.sections.insert(path.clone());
        let mut found = BTreeMap::new();
        for child in self.layers.names(&path) {
            let here = path.child(&child);
            let value = read(&mut self.at(here.clone()));
            match child.parse() {
                Ok(id) => {
                    found.insert(id, value);
                }
                Err(error) => {
                    let wrong = Wrong::new(format!("the name {error}"), "choose another name");
                    self.fault(&here, wrong);
                }
            }
        }
        found
    }

    /// Notes a fault of `key`, at the place of its winning value.
    pub(super) fn fault(&mut self, key: &KeyPath, wrong: Wrong) {
        let origin = self.origin(key);
        self.faults.push(Fault {
            origin,
            key: key.clone(),
            what: wrong.what,
            remedy: wrong.remedy,
        });
    }

    /// Where the winning value of `key` was written, or its table.
    pub(super) fn origin(&self, key: &KeyPath) -> Option<Origin> {
        let value = self.layers.of(key).next().map(|(origin, _)| origin.clone());
        value.or_else(|| {
            let table = self.layers.tables().find(|(path, _)| *path == key);
            table.map(|(_, origin)| origin.clone())
        })
    }

    /// Whether a fault of `key` was noted already.
    pub(super) fn is_faulty(&self, key: &KeyPath) -> bool {
        self.faults.iter().any(|fault| fault.key == *key)
    }

    /// Every key that was asked for.
    #[cfg(test)]
    pub(super) fn known(&self) -> &BTreeSet<KeyPath> {
        &self.known
    }

    /// Notes what nobody asked for; call it when all is read.
    pub(super) fn note_unknown(&mut self) {
        let mut unknown: Vec<KeyPath> = self
            .layers
            .keys()
            .map(|(key, _)| key)
            .filter(|key| !self.known.contains(*key))
            .cloned()
            .collect();
        let empty = self.layers.tables().map(|(path, _)| path).filter(|path| {
            !self.sections.iter().any(|section| path.covers(section))
                && !self.layers.keys().any(|(key, _)| path.covers(key))
        });
        unknown.extend(empty.cloned());
        for key in unknown {
            let wrong = self.unknown(&key);
            self.fault(&key, wrong);
        }
    }

    fn unknown(&self, key: &KeyPath) -> Wrong {
        if self.sections.contains(key) {
            return Wrong::new(
                "is a section, not a value",
                format!("write its keys under [{key}]"),
            );
        }
        if let Some(value) = self.known.iter().find(|known| known.covers(key)) {
            return Wrong::new(
                "unknown key",
                format!("`{value}` is a value, not a section"),
            );
        }
        match self.nearest(key) {
            Some(near) => Wrong::new("unknown key", format!("did you mean `{near}`?")),
            None => Wrong::new(
                "unknown key",
                "remove it; `ringonce config show` lists every key",
            ),
        }
    }

    /// The known key that was probably meant: alike as a whole, or of the same last step.
    fn nearest(&self, key: &KeyPath) -> Option<&KeyPath> {
        let text = key.to_string();
        let alike = self
            .known
            .iter()
            .map(|known| {
                (
                    strsim::damerau_levenshtein(&text, &known.to_string()),
                    known,
                )
            })
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= 3)
            .map(|(_, known)| known);
        alike.or_else(|| {
            self.known
                .iter()
                .find(|known| known.steps().last() == key.steps().last())
        })
    }

    /// The faults and the effective values.
    pub(super) fn finish(self) -> (Vec<Fault>, Vec<Shown>) {
        (self.faults, self.shown.into_values().collect())
    }
}

/// One section while it is read.
#[derive(Debug)]
pub(super) struct Section<'a> {
    reader: &'a mut Reader,
    path: KeyPath,
}

impl Section<'_> {
    /// The path of a key of this section.
    pub(super) fn key(&self, key: &str) -> KeyPath {
        self.path.child(key)
    }

    /// Notes a fault of a key of this section.
    pub(super) fn fault(&mut self, key: &str, wrong: Wrong) {
        let key = self.key(key);
        self.reader.fault(&key, wrong);
    }

    /// Where the winning value of a key of this section was written.
    pub(super) fn origin(&self, key: &str) -> Option<Origin> {
        self.reader.origin(&self.key(key))
    }

    /// The winning value that can be read; `None` if no layer has one.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Value) -> Result<T, Wrong>,
    ) -> Option<T> {
        self.look(key, read, text_of)
    }

    /// As [`Section::optional`], and never shown.
    pub(super) fn secret<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Value) -> Result<T, Wrong>,
    ) -> Option<T> {
        self.look(key, read, |_| "[redacted]".to_owned())
    }

    fn look<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Value) -> Result<T, Wrong>,
        show: impl Fn(&Value) -> String,
    ) -> Option<T> {
        let key = self.key(key);
        self.reader.known.insert(key.clone());
        let mut wrong = None;
        let mut found = None;
        for (origin, value) in self.reader.layers.of(&key) {
            match read(value) {
                Ok(good) => {
                    found = Some((good, show(value), origin.clone()));
                    break;
                }
                // Only the winner is reported: what it covers has no effect.
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        if let Some(wrong) = wrong {
            self.reader.fault(&key, wrong);
        }
        let (good, value, origin) = found?;
        self.reader
            .shown
            .insert(key.clone(), Shown { key, value, origin });
        Some(good)
    }

    fn required<T>(&mut self, key: &str, read: impl Fn(&Value) -> Result<T, Wrong>) -> T {
        self.optional(key, read)
            .expect("config/default.toml has a sound value for every required key; a test reads it")
    }

    /// A span of time within bounds, written as `45s` or `1h 30m`.
    pub(super) fn duration(&mut self, key: &str, bounds: RangeInclusive<Duration>) -> Duration {
        self.required(key, |value| {
            within(duration(value)?, &bounds, show_duration)
        })
    }

    /// A span of time within bounds, or none.
    pub(super) fn optional_duration(
        &mut self,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        self.optional(key, |value| {
            within(duration(value)?, &bounds, show_duration)
        })
    }

    /// A text that `read` takes.
    pub(super) fn required_text<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Result<T, Wrong>,
    ) -> T {
        self.required(key, |value| read(text(value)?))
    }

    /// Several spans of time, each within bounds; at least one.
    pub(super) fn durations(
        &mut self,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Vec<Duration> {
        self.required(key, |value| {
            let all = list(value, |item| {
                within(duration(item)?, &bounds, show_duration)
            })?;
            if all.is_empty() {
                return Err(Wrong::new("is empty", "give at least one, as [\"1s\"]"));
            }
            Ok(all)
        })
    }

    /// An integer within bounds.
    pub(super) fn number<T>(&mut self, key: &str, bounds: RangeInclusive<T>) -> T
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.required(key, |value| number(value, &bounds))
    }

    /// An integer within bounds, or none.
    pub(super) fn optional_number<T>(&mut self, key: &str, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.optional(key, |value| number(value, &bounds))
    }

    /// A number with a fraction, within bounds.
    pub(super) fn decimal(&mut self, key: &str, bounds: RangeInclusive<f64>) -> f64 {
        self.required(key, |value| decimal(value, &bounds))
    }

    /// A number with a fraction within bounds, or none.
    pub(super) fn optional_decimal(
        &mut self,
        key: &str,
        bounds: RangeInclusive<f64>,
    ) -> Option<f64> {
        self.optional(key, |value| decimal(value, &bounds))
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &str) -> bool {
        self.required(key, |value| match value {
            Value::Flag(flag) => Ok(*flag),
            Value::Untyped(text) if text == "true" => Ok(true),
            Value::Untyped(text) if text == "false" => Ok(false),
            other => Err(wrong_type(other, "true or false", "write true or false")),
        })
    }

    /// A text that is parsed; `example` goes into the remedy.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str, example: &str) -> T {
        self.required(key, |value| parsed(value, example))
    }

    /// A text that is parsed, or none; `example` goes into the remedy.
    pub(super) fn optional_parsed<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
        example: &str,
    ) -> Option<T> {
        self.optional(key, |value| parsed(value, example))
    }

    /// Texts, each of which is parsed; `example` goes into the remedy. None written: empty.
    pub(super) fn parsed_list<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
        example: &str,
    ) -> Vec<T> {
        self.optional(key, |value| list(value, |item| parsed(item, example)))
            .unwrap_or_default()
    }
}

/// A text as it was written.
pub(super) fn text(value: &Value) -> Result<&str, Wrong> {
    match value {
        Value::Text(text) | Value::Untyped(text) => Ok(text),
        other => Err(wrong_type(other, "a text", "put it into quotes")),
    }
}

/// A text that `T` can parse.
pub(super) fn parsed<T: FromStr<Err: Display>>(value: &Value, example: &str) -> Result<T, Wrong> {
    let text = text(value)?;
    text.parse().map_err(|error| {
        Wrong::new(
            format!("{text:?} does not do: {error}"),
            format!("write it as {example:?}"),
        )
    })
}

fn duration(value: &Value) -> Result<Duration, Wrong> {
    let remedy = "write a number with its unit, as \"45s\", \"500ms\" or \"1h 30m\"";
    let text = match value {
        Value::Text(text) | Value::Untyped(text) => text,
        other => return Err(wrong_type(other, "a duration", remedy)),
    };
    humantime::parse_duration(text)
        .map_err(|_| Wrong::new(format!("{text:?} is no duration"), remedy))
}

fn number<T>(value: &Value, bounds: &RangeInclusive<T>) -> Result<T, Wrong>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let remedy = "write a whole number without quotes";
    let number = match value {
        Value::Integer(number) => *number,
        Value::Untyped(text) => text
            .replace('_', "")
            .parse()
            .map_err(|_| Wrong::new(format!("{text:?} is no integer"), remedy))?,
        other => return Err(wrong_type(other, "an integer", remedy)),
    };
    let outside = || {
        let (low, high) = (bounds.start(), bounds.end());
        Wrong::new(
            format!("is {number}"),
            format!("choose between {low} and {high}"),
        )
    };
    T::try_from(number)
        .ok()
        .filter(|number| bounds.contains(number))
        .ok_or_else(outside)
}

fn decimal(value: &Value, bounds: &RangeInclusive<f64>) -> Result<f64, Wrong> {
    let remedy = "write a number without quotes, as 0.5";
    let number = match value {
        Value::Float(number) => *number,
        Value::Integer(number) => number
            .to_string()
            .parse()
            .map_err(|_| Wrong::new(format!("is {number}"), remedy))?,
        Value::Untyped(text) => text
            .parse()
            .map_err(|_| Wrong::new(format!("{text:?} is no number"), remedy))?,
        other => return Err(wrong_type(other, "a number", remedy)),
    };
    within(number, bounds, |number| number.to_string())
}

/// The items of a list; from the environment, divided by commas.
pub(super) fn list<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    match value {
        Value::List(items) => items.iter().map(read).collect(),
        Value::Untyped(text) => text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| read(&Value::Untyped(item.to_owned())))
            .collect(),
        other => Err(wrong_type(
            other,
            "a list",
            "write a list, as [\"…\", \"…\"]",
        )),
    }
}

fn within<T: PartialOrd>(
    value: T,
    bounds: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<T, Wrong> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    Err(Wrong::new(
        format!("is {}", show(&value)),
        format!(
            "choose between {} and {}",
            show(bounds.start()),
            show(bounds.end())
        ),
    ))
}

fn wrong_type(value: &Value, wanted: &str, remedy: &str) -> Wrong {
    Wrong::new(format!("is {}, not {wanted}", value.kind()), remedy)
}

/// A span of time as a configuration writes it.
pub(super) fn show_duration(span: &Duration) -> String {
    humantime::format_duration(*span).to_string()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Untyped(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(text_of).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Foreign(kind) => (*kind).to_owned(),
    }
}
