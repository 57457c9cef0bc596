//! The store's file, read beside the program.

use std::collections::BTreeMap;
use std::path::Path;

use ringonce::lab::platform::State as Seen;
use ringonce::ledger::AttemptChanged;
use ringonce::model::attempt::Attempt;
use rusqlite::{Connection, OpenFlags};

/// An SQLite file of ours, opened to be read.
pub(super) struct StoreFile(Connection);

impl StoreFile {
    pub(super) fn open(path: &Path) -> Self {
        let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        Self(opened.unwrap())
    }

    /// The attempts, as they are stored.
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        let bodies = self.blobs("SELECT body FROM record WHERE kind = 'a'");
        let attempts = bodies.iter().map(|body| serde_json::from_slice(body));
        attempts.collect::<Result<_, _>>().unwrap()
    }

    fn blobs(&self, query: &str) -> Vec<Vec<u8>> {
        let mut statement = self.0.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// Asserts that SQLite finds nothing wrong with it.
    pub(super) fn is_whole(&self) {
        let check = |pragma: &str| {
            let said = self.0.query_row(pragma, [], |row| row.get::<_, String>(0));
            assert_eq!(said.unwrap(), "ok", "{pragma}");
        };
        check("PRAGMA integrity_check");
    }

    /// Asserts that each change of each attempt was told, in order and with none left out, and
    /// that the last told is what is stored.
    pub(super) fn has_every_event(&self) {
        let mut last_position = 0;
        let mut told: BTreeMap<String, Attempt> = BTreeMap::new();
        let mut statement = self
            .0
            .prepare("SELECT position, body FROM log ORDER BY position")
            .unwrap();
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        for row in rows {
            let (position, body): (i64, Vec<u8>) = row.unwrap();
            // A position is a commit's number times 65,536, and the place in the commit.
            let follows = position.trailing_zeros() >= 16 || position == last_position + 1;
            assert!(follows, "P6: a gap in commit {}", position >> 16);
            last_position = position;
            let AttemptChanged { attempt, .. } = serde_json::from_slice(&body).unwrap();
            let before = told.get(attempt.id.as_str());
            let known = before.map_or(&[] as &[_], |attempt| &attempt.history);
            let follows = attempt.history.starts_with(known);
            let steps = attempt.history.len().saturating_sub(known.len());
            assert!(
                follows && steps <= 1,
                "P6: {steps} changes at once: {attempt:?}"
            );
            let mut before = None;
            for step in &attempt.history {
                assert_eq!(step.from, before, "P6: {attempt:?}");
                before = Some(step.to);
            }
            told.insert(attempt.id.as_str().to_owned(), attempt);
        }
        for stored in self.attempts() {
            let last = told.get(stored.id.as_str());
            let last = last.unwrap_or_else(|| panic!("P6: never told: {stored:?}"));
            assert_eq!(last.state, stored.state, "P6: {stored:?}");
            assert_eq!(last.history, stored.history, "P6: {stored:?}");
        }
    }

    /// Asserts that each webhook that was acknowledged is kept.
    pub(super) fn has_every_receipt(&self, seen: &Seen) {
        let query = "SELECT count(*) FROM record WHERE kind = 'i'";
        let kept = self.0.query_row(query, [], |row| row.get::<_, i64>(0));
        let kept = u64::try_from(kept.unwrap()).unwrap();
        let sent = seen.webhooks.sent;
        assert!(kept >= sent, "{sent} webhooks were taken, {kept} are kept");
    }
}
