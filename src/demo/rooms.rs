//! The server's log, read for rooms and redeliveries.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What the log of a server tells, through all its starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Logged {
    /// Rooms that were made.
    pub(super) created: BTreeSet<String>,
    /// Rooms that are gone.
    pub(super) deleted: BTreeSet<String>,
    /// Deliveries of known attempts that changed nothing, by the attempt's state.
    pub(super) redelivered: BTreeMap<String, u64>,
}

impl Logged {
    /// Reads a log; a line that a kill cut short is none.
    pub(super) fn of(log: &str) -> Self {
        let mut logged = Self::default();
        for line in log.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            match line["event"].as_str() {
                Some("room.created") => drop(logged.created.insert(text("room"))),
                Some("room.deleted") => drop(logged.deleted.insert(text("room"))),
                Some("attempt.redelivered") => {
                    *logged.redelivered.entry(text("state")).or_default() += 1;
                }
                Some(_) | None => {}
            }
        }
        logged
    }

    /// Rooms of which no end is told.
    pub(super) fn open(&self) -> usize {
        self.created.difference(&self.deleted).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_paired_and_cut_lines_passed_over() {
        let log = "\
            {\"event\":\"room.created\",\"room\":\"a\",\"confirmed\":false}\n\
            {\"event\":\"room.created\",\"room\":\"a\",\"confirmed\":true}\n\
            {\"event\":\"room.created\",\"room\":\"b\"}\n\
            {\"event\":\"attempt.redelivered\",\"state\":\"dialing\"}\n\
            {\"event\":\"room.deleted\",\"room\":\"a\"}\n\
            {\"event\":\"room.deleted\",\"ro";
        let logged = Logged::of(log);
        assert_eq!((logged.created.len(), logged.open()), (2, 1));
        assert_eq!(logged.redelivered["dialing"], 1);
    }
}
