//! What is wrong with a configuration: every fault at once, with place, key and remedy.

use std::fmt;
use std::path::Path;

use super::layer::{KeyPath, Origin};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where the value was written; `None` where nothing was written.
    pub origin: Option<Origin>,
    /// Which key; empty where the file as a whole is meant.
    pub key: KeyPath,
    /// What is wrong, as a clause without the key.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// Everything that is wrong, in the order of the layers and of their lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// `Ok` if there is nothing in the list, else the faults in order.
    ///
    /// # Errors
    ///
    /// The faults, where there are any.
    pub(super) fn none_of(mut faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() {
            return Ok(());
        }
        faults.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
        faults.dedup();
        Err(Self(faults))
    }

    /// All of these, of which there is at least one.
    pub(super) fn all(faults: Vec<Fault>) -> Self {
        Self(faults)
    }

    /// The faults.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, fault) in self.0.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(fault, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Why one value does not do: found by a reader that knows neither key nor place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What is wrong.
    pub(super) what: String,
    /// What to do about it.
    pub(super) remedy: String,
}

impl Wrong {
    /// From both clauses.
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// The same, of the file that a key names and that is not the place of the key.
    pub(super) fn of(self, path: &Path) -> Self {
        Self::new(format!("{} {}", path.display(), self.what), self.remedy)
    }
}
