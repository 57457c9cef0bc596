//! Pairs `room.created` with `room.deleted` from log files alone, so that a leak can be found
//! where there is no server to ask.
//!
//! Pure: lines go in, in any order and from however many replicas; [`Pairing::findings`] says
//! which rooms have a beginning and no end. A session is never used twice, so the order of
//! lines means nothing, and a line that is read twice changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::line::{Act, Line, read};
use crate::model::time::Time;

/// What the lines so far say.
#[derive(Debug, Default)]
pub struct Pairing {
    rooms: BTreeMap<String, Traces>,
    /// The latest moment that a line of ours tells: where the logs end.
    end: Option<Time>,
    lines: u64,
    unreadable: u64,
}

/// What was said of one room.
#[derive(Debug, Default)]
struct Traces {
    workspace: String,
    attempt: String,
    session: String,
    /// When it was begun; the earliest of what the lines tell.
    begun: Option<Time>,
    created: bool,
    confirmed: bool,
    deleted: bool,
}

/// A room that has a beginning and no end in the logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unpaired {
    /// Its name.
    pub room: String,
    /// The tenant.
    pub workspace: String,
    /// The attempt that it was made for.
    pub attempt: String,
    /// The try.
    pub session: String,
    /// Whether the platform confirmed it; if not, it may never have been there.
    pub confirmed: bool,
    /// When it was begun, if the line told.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
    /// Its age where the logs end, in seconds; `None` if no line told a time.
    #[serde(rename = "age_seconds", serialize_with = "seconds")]
    pub age: Option<Duration>,
}

/// What the logs come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Rooms that have no end and are old enough to be leaks, by name.
    pub leaked: Vec<Unpaired>,
    /// Rooms that have no end and are younger than that: their calls may go on.
    pub open: Vec<Unpaired>,
    /// Rooms that were begun.
    pub created: usize,
    /// Rooms that ended; of some of them the beginning is in older logs.
    pub deleted: usize,
    /// Lines that were read.
    pub lines: u64,
    /// Lines that look like ours and could not be read: a missing end may be among them.
    pub unreadable: u64,
    /// Where the logs end.
    #[serde(serialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
}

impl Pairing {
    /// Takes one line of a log, without its end.
    pub fn line(&mut self, line: &str) {
        self.lines += 1;
        match read(line) {
            Line::Room(event) => {
                self.moment(event.at);
                let traces = self.rooms.entry(event.room).or_default();
                traces.session = event.session;
                match event.act {
                    Act::Created { confirmed } => {
                        traces.created = true;
                        traces.confirmed |= confirmed;
                        traces.begun = earliest(traces.begun, event.at);
                        traces.workspace = event.workspace;
                        traces.attempt = event.attempt;
                    }
                    Act::Deleted => traces.deleted = true,
                }
            }
            Line::Ours(at) => self.moment(at),
            Line::Foreign => {}
            Line::Unreadable => self.unreadable += 1,
        }
    }

    fn moment(&mut self, at: Option<Time>) {
        self.end = self.end.max(at);
    }

    /// What all lines come to. Whether an attempt is still open is not in the logs, so a room
    /// without an end counts as leaked once it is `older_than` that where the logs end. One of
    /// unknown age does.
    #[must_use]
    pub fn findings(&self, older_than: Duration) -> Findings {
        let age = |begun: Option<Time>| Some(self.end?.since(begun?));
        let unpaired = self
            .rooms
            .iter()
            .filter(|(_, traces)| traces.created && !traces.deleted)
            .map(|(room, traces)| Unpaired {
                room: room.clone(),
                workspace: traces.workspace.clone(),
                attempt: traces.attempt.clone(),
                session: traces.session.clone(),
                confirmed: traces.confirmed,
                created: traces.begun,
                age: age(traces.begun),
            });
        let (leaked, open) =
            unpaired.partition(|room: &Unpaired| room.age.is_none_or(|age| age >= older_than));
        Findings {
            leaked,
            open,
            created: self.rooms.values().filter(|room| room.created).count(),
            deleted: self.rooms.values().filter(|room| room.deleted).count(),
            lines: self.lines,
            unreadable: self.unreadable,
            end: self.end,
        }
    }
}

fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

#[expect(
    clippy::ref_option,
    reason = "serde hands a reference to the field over"
)]
fn text<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.collect_str(time),
        None => to.serialize_none(),
    }
}

#[expect(
    clippy::ref_option,
    reason = "serde hands a reference to the field over"
)]
fn seconds<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => to.serialize_f64(span.as_secs_f64()),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMS: [&str; 3] = [
        "6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1",
        "6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d2",
        "6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d3",
    ];

    fn name(session: &str) -> String {
        format!("ringonce-0-{session}")
    }

    fn created(session: &str, second: u32, confirmed: bool) -> String {
        format!(
            r#"{{"timestamp":"2026-11-29T12:00:{second:02}Z","level":"INFO","message":"a room is made","event":"room.created","room":"{}","sid":"","deployment":"d","workspace":"w","attempt":"a1","session":"{session}","confirmed":{confirmed},"target":"ringonce::rooms"}}"#,
            name(session)
        )
    }

    fn deleted(session: &str, second: u32) -> String {
        format!(
            r#"{{"timestamp":"2026-11-29T12:00:{second:02}Z","level":"INFO","message":"a room is gone","event":"room.deleted","room":"{}","sid":"RM_1","deployment":"d","workspace":"w","attempt":"a1","session":"{session}","cause":"not_connected","age_ms":1,"target":"ringonce::rooms"}}"#,
            name(session)
        )
    }

    fn pair(lines: &[String]) -> Pairing {
        let mut pairing = Pairing::default();
        for line in lines {
            pairing.line(line);
        }
        pairing
    }

    fn log() -> Vec<String> {
        ROOMS
            .iter()
            .enumerate()
            .flat_map(|(n, room)| {
                let n = u32::try_from(n).unwrap();
                [
                    created(room, n, false),
                    created(room, n, true),
                    deleted(room, n + 10),
                ]
            })
            .collect()
    }

    #[test]
    fn what_ended_is_no_leak_and_what_did_not_is_in_any_order() {
        let whole = log();
        let found = pair(&whole).findings(Duration::ZERO);
        assert_eq!((found.leaked.len(), found.open.len()), (0, 0));
        assert_eq!((found.created, found.deleted, found.unreadable), (3, 3, 0));
        for missing in ROOMS {
            let is_its_end =
                |line: &String| line.contains("room.deleted") && line.contains(missing);
            let mut lines: Vec<_> = whole.iter().filter(|l| !is_its_end(l)).cloned().collect();
            for _ in 0..lines.len() {
                lines.rotate_left(1);
                let found = pair(&lines).findings(Duration::ZERO);
                assert_eq!(found.leaked.len(), 1);
                assert_eq!(found.leaked[0].room, name(missing));
                assert!(found.leaked[0].confirmed);
                assert_eq!(found.leaked[0].attempt, "a1");
            }
            lines.extend(lines.clone());
            assert_eq!(pair(&lines).findings(Duration::ZERO).leaked.len(), 1);
        }
    }

    #[test]
    fn what_was_begun_and_never_confirmed_needs_its_end_too() {
        let found = pair(&[created(ROOMS[0], 0, false)]).findings(Duration::ZERO);
        assert_eq!(found.leaked.len(), 1);
        assert!(!found.leaked[0].confirmed);
        // Its beginning is in an older log.
        let found = pair(&[deleted(ROOMS[0], 0)]).findings(Duration::ZERO);
        assert_eq!((found.leaked.len(), found.created), (0, 0));
    }

    #[test]
    fn a_young_room_is_open_where_a_span_is_given() {
        let mut lines = vec![created(ROOMS[0], 0, true), created(ROOMS[1], 30, true)];
        lines.push(deleted(ROOMS[2], 40));
        let found = pair(&lines).findings(Duration::from_secs(20));
        assert_eq!(found.leaked.len(), 1);
        assert_eq!(found.leaked[0].room, name(ROOMS[0]));
        assert_eq!(found.leaked[0].age, Some(Duration::from_secs(40)));
        assert_eq!(found.open.len(), 1);
        assert_eq!(found.open[0].room, name(ROOMS[1]));
    }
}
