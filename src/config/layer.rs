//! The layers of a configuration, each flattened into keys with a value and a place.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::fault::Fault;

/// The path of a key: section, perhaps a name, and the key itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// From its text form, split at dots: `dial.ringing_timeout`.
    #[must_use]
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// This path and one step more.
    #[must_use]
    pub fn child(&self, step: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.to_owned());
        Self(steps)
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `self` is `other` or lies above it.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    fn from_steps(steps: impl IntoIterator<Item = String>) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        for (nth, step) in self.0.iter().enumerate() {
            if nth > 0 {
                f.write_str(".")?;
            }
            if !step.is_empty() && step.bytes().all(bare) {
                f.write_str(step)?;
            } else {
                write!(f, "{step:?}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a value was written. Ordered as the layers are: a later one wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `config/default.toml`, embedded in the program.
    Default {
        /// The line, from 1.
        line: usize,
    },
    /// A file that was named.
    File {
        /// Its place among the files that were named; a later one wins.
        nth: usize,
        /// The file as it was named.
        path: PathBuf,
        /// The line, from 1; 0 where the file as a whole is meant.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A flag of the command line.
    Flag {
        /// As it is written, `--store`.
        flag: String,
    },
}

impl Origin {
    /// Which layer it is, from 1; each file is one.
    pub(super) fn layer(&self) -> usize {
        match self {
            Self::Default { .. } => 1,
            Self::File { nth, .. } => nth.saturating_add(2),
            Self::Environment { .. } => usize::MAX - 1,
            Self::Flag { .. } => usize::MAX,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default { line } => write!(f, "config/default.toml:{line}"),
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// A value as it was written, before anybody asked for its type. No `Debug`: it may be a
/// secret.
#[derive(Clone, PartialEq)]
pub(super) enum Value {
    /// Text of a TOML file.
    Text(String),
    /// An integer of a TOML file.
    Integer(i64),
    /// A float of a TOML file.
    Float(f64),
    /// `true` or `false` in a TOML file.
    Flag(bool),
    /// A list of a TOML file.
    List(Vec<Value>),
    /// Text of the environment or of a flag; its type is the one that is asked for.
    Untyped(String),
    /// Something that no key takes: a date, an integer beyond 64 bits, a table in a list.
    Foreign(&'static str),
}

impl Value {
    /// The type's name, for a fault.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Untyped(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Foreign(kind) => kind,
        }
    }
}

/// All layers, merged by key: the values of a key lie above each other, the winner last.
#[derive(Default)]
pub(super) struct Layers {
    values: BTreeMap<KeyPath, Vec<(Origin, Value)>>,
    tables: BTreeMap<KeyPath, Origin>,
}

impl Layers {
    /// Lays one value on top.
    pub(super) fn put(&mut self, key: KeyPath, origin: Origin, value: Value) {
        self.values.entry(key).or_default().push((origin, value));
    }

    /// Lays a TOML text on top; `origin` makes the place of a line. What the parser could
    /// not read is reported, and the rest is read all the same.
    pub(super) fn put_toml(
        &mut self,
        text: &str,
        origin: &dyn Fn(usize) -> Origin,
        faults: &mut Vec<Fault>,
    ) {
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line_of = |at: usize| 1 + ends.partition_point(|end| *end < at);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map_or(1, |span| line_of(span.start));
            faults.push(Fault {
                origin: Some(origin(line)),
                key: KeyPath::default(),
                what: format!("is no TOML: {}", error.message()),
                remedy: "mend the line".to_owned(),
            });
        }
        let place = |at: usize| origin(line_of(at));
        self.put_table(&KeyPath::default(), table.get_ref(), &place);
    }

    fn put_table(&mut self, path: &KeyPath, table: &DeTable<'_>, place: &dyn Fn(usize) -> Origin) {
        for (name, value) in table {
            let key = path.child(name.get_ref());
            let origin = place(name.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                self.tables.insert(key.clone(), origin);
                self.put_table(&key, inner, place);
            } else {
                self.put(key, origin, plain(value.get_ref()));
            }
        }
    }

    /// The values of a key, the winner first.
    pub(super) fn of(&self, key: &KeyPath) -> impl Iterator<Item = &(Origin, Value)> {
        self.values.get(key).into_iter().flatten().rev()
    }

    /// Every key that has a value, with the place of the winner.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&KeyPath, &Origin)> {
        self.values
            .iter()
            .filter_map(|(key, values)| values.last().map(|(origin, _)| (key, origin)))
    }

    /// Every table that was written, with its place.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&KeyPath, &Origin)> {
        self.tables.iter()
    }

    /// The names right under `path`: those of its tables and of its keys.
    pub(super) fn names(&self, path: &KeyPath) -> Vec<String> {
        let mut names: Vec<String> = self
            .tables
            .keys()
            .chain(
                self.values
                    .keys()
                    .filter(|key| key.steps().len() > path.steps().len() + 1),
            )
            .filter(|key| path.covers(key))
            .filter_map(|key| key.steps().get(path.steps().len()).cloned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Foreign("an integer beyond 64 bits"), Value::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Foreign("a float that cannot be read"), Value::Float),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| plain(item.get_ref())).collect())
        }
        DeValue::Datetime(_) => Value::Foreign("a date or time"),
        DeValue::Table(_) => Value::Foreign("a table"),
    }
}

/// What the environment says, as keys. `RINGONCE__DIAL__SEND_BY` is `dial.send_by`; the
/// three of LiveKit's own tools are taken too, below ours. An empty one counts as not set.
pub(super) fn from_environment(variable: &str) -> Option<KeyPath> {
    match variable {
        "LIVEKIT_URL" => Some(KeyPath::dotted("livekit.url")),
        "LIVEKIT_API_KEY" => Some(KeyPath::dotted("livekit.api_key")),
        "LIVEKIT_API_SECRET" => Some(KeyPath::dotted("livekit.api_secret")),
        _ => {
            let steps = variable.strip_prefix("RINGONCE__")?;
            Some(KeyPath::from_steps(
                steps.split("__").map(str::to_ascii_lowercase),
            ))
        }
    }
}

/// The place of a line of a file.
pub(super) fn in_file(nth: usize, path: &Path) -> impl Fn(usize) -> Origin + '_ {
    move |line| Origin::File {
        nth,
        path: path.to_owned(),
        line,
    }
}
