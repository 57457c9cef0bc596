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

use serde_json::Value as Json;

use super::fault::{Fault, Wrong};
use super::layer::{KeyPath, Layers, Origin, Value};
use super::typed::{self, Shape};

/// One effective value, for `config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The key.
    pub key: KeyPath,
    /// The value; secrets are redacted.
    pub value: Json,
    /// Where it came from.
    pub origin: Origin,
}

/// Reads the layers. No `Debug`: they hold secrets as they were written.
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
            self.show_name(&here);
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

    /// A table without keys still says that its name exists.
    fn show_name(&mut self, table: &KeyPath) {
        let is_bare = !self.shown.keys().any(|key| table.covers(key));
        if let Some(origin) = self.origin(table).filter(|_| is_bare) {
            let (key, value) = (table.clone(), Json::Object(serde_json::Map::new()));
            let shown = Shown { key, value, origin };
            self.shown.insert(shown.key.clone(), shown);
        }
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

    /// Adds to the remedy of a value out of its bounds, if `key` has one, what another key asks.
    pub(super) fn amend(&mut self, key: &KeyPath, more: &str) {
        for fault in self.faults.iter_mut().filter(|fault| fault.key == *key) {
            if fault.remedy.starts_with(typed::CHOOSE) {
                fault.remedy.push_str(", ");
                fault.remedy.push_str(more);
            }
        }
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

    /// Shows `value` for a key instead of what was written, as for a path that was found.
    pub(super) fn show(&mut self, key: &str, value: String, origin: Origin) {
        let key = self.key(key);
        let value = Json::from(value);
        let shown = Shown { key, value, origin };
        self.reader.shown.insert(shown.key.clone(), shown);
    }

    /// The winning value that can be read; `None` if no layer has one.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        shape: Shape,
        read: impl Fn(&Value) -> Result<T, Wrong>,
    ) -> Option<T> {
        let key = self.key(key);
        self.reader.known.insert(key.clone());
        let mut wrong = None;
        let mut found = None;
        for (origin, value) in self.reader.layers.of(&key) {
            match read(value) {
                Ok(good) => {
                    found = Some((good, typed::shown(value, shape), origin.clone()));
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
        let shown = Shown { key, value, origin };
        self.reader.shown.insert(shown.key.clone(), shown);
        Some(good)
    }

    fn required<T>(
        &mut self,
        key: &str,
        shape: Shape,
        read: impl Fn(&Value) -> Result<T, Wrong>,
    ) -> T {
        self.optional(key, shape, read)
            .expect("config/default.toml has a sound value for every required key; a test reads it")
    }

    /// A span of time within bounds, written as `45s` or `1h 30m`.
    pub(super) fn duration(&mut self, key: &str, bounds: RangeInclusive<Duration>) -> Duration {
        self.required(key, Shape::Text, |value| typed::duration(value, &bounds))
    }

    /// A span of time within bounds, or none.
    pub(super) fn optional_duration(
        &mut self,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        self.optional(key, Shape::Text, |value| typed::duration(value, &bounds))
    }

    /// Several spans of time, each within bounds; at least one.
    pub(super) fn durations(
        &mut self,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Vec<Duration> {
        self.required(key, Shape::List, |value| {
            let all = typed::list(value, |item| typed::duration(item, &bounds))?;
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
        self.required(key, Shape::Scalar, |value| typed::number(value, &bounds))
    }

    /// An integer within bounds, or none.
    pub(super) fn optional_number<T>(&mut self, key: &str, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.optional(key, Shape::Scalar, |value| typed::number(value, &bounds))
    }

    /// A number with a fraction, within bounds.
    pub(super) fn decimal(&mut self, key: &str, bounds: RangeInclusive<f64>) -> f64 {
        self.required(key, Shape::Scalar, |value| typed::decimal(value, &bounds))
    }

    /// A number with a fraction within bounds, or none.
    pub(super) fn optional_decimal(
        &mut self,
        key: &str,
        bounds: RangeInclusive<f64>,
    ) -> Option<f64> {
        self.optional(key, Shape::Scalar, |value| typed::decimal(value, &bounds))
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &str) -> bool {
        self.required(key, Shape::Scalar, typed::flag)
    }

    /// A text that `read` takes.
    pub(super) fn text<T>(&mut self, key: &str, read: impl Fn(&str) -> Result<T, Wrong>) -> T {
        self.required(key, Shape::Text, |value| read(typed::text(value)?))
    }

    /// A text that `read` takes, or none.
    pub(super) fn optional_text<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        self.optional(key, Shape::Text, |value| read(typed::text(value)?))
    }

    /// A text that is parsed; `example` goes into the remedy.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str, example: &str) -> T {
        self.required(key, Shape::Text, |value| typed::parsed(value, example))
    }

    /// A text that is parsed, or none; `example` goes into the remedy.
    pub(super) fn optional_parsed<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
        example: &str,
    ) -> Option<T> {
        self.optional(key, Shape::Text, |value| typed::parsed(value, example))
    }
}
