//! Reads a line of a log: one of ours in JSON or text, whatever a container engine put around
//! it, or somebody else's.

use serde_json::Value;

use crate::model::id::RoomName;
use crate::model::time::Time;

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A room begins or ends.
    Room(RoomEvent),
    /// Of ours, about something else; its moment.
    Ours(Option<Time>),
    /// Not ours.
    Foreign,
    /// It looks like ours and cannot be read: cut, as a rule.
    Unreadable,
}

/// A room's beginning or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomEvent {
    /// The room's name.
    pub room: String,
    /// The try whose room it is.
    pub session: String,
    /// The tenant; empty if it does not say.
    pub workspace: String,
    /// The attempt; empty if it does not say.
    pub attempt: String,
    /// When, if it says.
    pub at: Option<Time>,
    /// Which of the two.
    pub act: Act,
}

/// What happens to a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is about to be made, or (`confirmed`) it is made.
    Created {
        /// Whether the platform said so.
        confirmed: bool,
    },
    /// It is gone.
    Deleted,
}

/// How many braces of a line are tried as the beginning of its object: a prefix has few.
const STARTS_MAX: usize = 8;
/// How our own JSON begins; a prefix may stand before it.
const BEGINNING: &str = "{\"timestamp\":\"";
/// What only a line about rooms has.
const MARKS: [&str; 3] = ["room.created", "room.deleted", "ringonce::rooms"];

/// Reads one line, without its end.
#[must_use]
pub fn read(line: &str) -> Line {
    let looks_ours = MARKS.iter().any(|mark| line.contains(mark));
    let starts = line.match_indices('{').map(|(at, _)| at);
    for at in starts.take(STARTS_MAX) {
        // What follows the object is the affair of whoever wrote it.
        let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            continue;
        };
        match of_json(&value) {
            Line::Foreign => {}
            found @ (Line::Room(_) | Line::Ours(_) | Line::Unreadable) => return found,
        }
    }
    if let Some(found) = of_text(line) {
        return found;
    }
    if looks_ours || line.contains(BEGINNING) {
        Line::Unreadable
    } else {
        Line::Foreign
    }
}

fn of_json(value: &Value) -> Line {
    // An engine that keeps each line in an object of its own (Docker's json-file driver).
    if let Some(inner) = value.get("log").and_then(Value::as_str)
        && value.get("target").is_none()
    {
        return read(inner.trim_end());
    }
    let of = |key: &str| value.get(key).and_then(Value::as_str);
    let at = of("timestamp").and_then(Time::parse);
    let act = match of("event") {
        Some("room.created") => value
            .get("confirmed")
            .and_then(Value::as_bool)
            .map(|confirmed| Act::Created { confirmed }),
        Some("room.deleted") => Some(Act::Deleted),
        Some(_) | None => {
            return match of("target") {
                Some(target) if target.starts_with("ringonce") => Line::Ours(at),
                Some(_) | None => Line::Foreign,
            };
        }
    };
    event(at, act, of)
}

/// `… INFO ringonce::rooms: a room is made event="room.created" room=ringonce-0-… …`.
fn of_text(line: &str) -> Option<Line> {
    let (head, fields) = line.split_once(" ringonce::")?;
    let at = head.split_whitespace().rev().find_map(Time::parse);
    let of = |key: &str| {
        fields.split_whitespace().find_map(|word| {
            let value = word.strip_prefix(key)?.strip_prefix('=')?;
            Some(value.trim_matches('"'))
        })
    };
    let act = match of("event") {
        Some("room.created") => match of("confirmed") {
            Some("true") => Some(Act::Created { confirmed: true }),
            Some("false") => Some(Act::Created { confirmed: false }),
            Some(_) | None => None,
        },
        Some("room.deleted") => Some(Act::Deleted),
        // Cut before it says what it is.
        Some(_) | None if fields.starts_with("rooms:") || !fields.contains(": ") => {
            return Some(Line::Unreadable);
        }
        Some(_) | None => return Some(Line::Ours(at)),
    };
    Some(event(at, act, of))
}

/// An event, if the line holds enough of it: the name of the room and the session that stands
/// in it.
fn event<'a>(at: Option<Time>, act: Option<Act>, of: impl Fn(&str) -> Option<&'a str>) -> Line {
    let read = || {
        let (room, session) = (of("room")?, of("session")?);
        let (partition, named) = RoomName::parse(room)?;
        let whole = named.room(partition).as_str() == room && named.to_string() == session;
        whole.then(|| {
            Some(RoomEvent {
                room: room.to_owned(),
                session: session.to_owned(),
                workspace: of("workspace").unwrap_or_default().to_owned(),
                attempt: of("attempt").unwrap_or_default().to_owned(),
                at,
                act: act?,
            })
        })?
    };
    read().map_or(Line::Unreadable, Line::Room)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: &str = "ringonce-0-6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1";
    const JSON: &str = r#"{"timestamp":"2026-11-29T12:00:00.5Z","level":"INFO","message":"a room is gone","event":"room.deleted","room":"ringonce-0-6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1","sid":"","deployment":"d","workspace":"w","attempt":"a1","session":"6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1","cause":"ended","age_ms":7,"target":"ringonce::rooms"}"#;
    const TEXT: &str = r#"2026-11-29T12:00:00.5Z  INFO ringonce::rooms: a room is made event="room.created" room=ringonce-0-6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1 sid="" deployment=d workspace=w attempt=a1 session=6f0b1d5e-4c1a-5d07-9a39-1b8e72f455d1 confirmed=true"#;

    fn room(line: &str) -> RoomEvent {
        match read(line) {
            Line::Room(event) => event,
            other @ (Line::Ours(_) | Line::Foreign | Line::Unreadable) => {
                panic!("{other:?}: {line}")
            }
        }
    }

    #[test]
    fn both_formats_are_read_whatever_stands_before_and_behind() {
        let quoted = serde_json::to_string(&format!("{JSON}\n")).unwrap();
        for line in [
            JSON.to_owned(),
            format!("2026-11-29T12:00:01.1Z stderr F {JSON}"),
            format!("serve-1  | {JSON}"),
            format!("[pod/{{x}}] {{\"a\":1}} {JSON} \u{1b}[0m"),
            format!(r#"{{"log":{quoted},"stream":"stderr","time":"2026-11-29T12:00:01Z"}}"#),
        ] {
            let event = room(&line);
            assert_eq!((event.room.as_str(), event.act), (ROOM, Act::Deleted));
            assert_eq!(event.at, Time::parse("2026-11-29T12:00:00.5Z"));
            assert_eq!(
                (event.workspace.as_str(), event.attempt.as_str()),
                ("w", "a1")
            );
        }
        for line in [TEXT.to_owned(), format!("serve-1  | {TEXT}")] {
            let event = room(&line);
            assert_eq!(event.act, Act::Created { confirmed: true });
            assert_eq!(event.at, Time::parse("2026-11-29T12:00:00.5Z"));
            assert_eq!(event.session, ROOM.trim_start_matches("ringonce-0-"));
        }
    }

    #[test]
    fn a_cut_line_is_told_and_never_half_believed() {
        for whole in [JSON, TEXT] {
            let act = room(whole).act;
            for at in 0..whole.len() {
                for cut in [&whole[..at], &whole[at..]] {
                    match read(cut) {
                        // Whole but for what nobody needs.
                        Line::Room(event) => {
                            assert_eq!((event.room.as_str(), event.act), (ROOM, act));
                        }
                        Line::Unreadable | Line::Foreign => {}
                        Line::Ours(_) => panic!("it is about a room: {cut}"),
                    }
                }
            }
            let third = whole.len() / 3;
            assert_eq!(read(&whole[..2 * third]), Line::Unreadable, "{whole}");
        }
    }

    #[test]
    fn what_others_write_is_theirs() {
        for line in [
            "",
            "GET / 200",
            r#"{"level":"INFO","event":"started"}"#,
            r#"{"log":"nothing of ours\n","stream":"stdout"}"#,
            "{{{{{{{{{{{{",
        ] {
            assert_eq!(read(line), Line::Foreign, "{line}");
        }
        let ours = r#"{"timestamp":"2026-11-29T12:00:00Z","level":"WARN","target":"ringonce::provider::client"}"#;
        assert_eq!(read(ours), Line::Ours(Time::parse("2026-11-29T12:00:00Z")));
    }
}
