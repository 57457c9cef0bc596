//! `[deployment]`: which installation this is.

use super::reader::Reader;
use crate::model::id;

/// Which installation this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Its name; `None`: the one that the store keeps, made at random on first start.
    pub name: Option<id::Deployment>,
}

impl Deployment {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("deployment");
        Self {
            name: s.optional_parsed("name", "berlin-1"),
        }
    }
}
