//! Rooms as lines for a person.

use std::time::Duration;

use crate::api::proto;
use crate::telemetry::pairing::{Findings, Unpaired};
use proto::room::{Leak, Leg};

/// `LEAK NOT_DELETED ringonce-0-… w/a1 NOT_CONNECTED 3m: it is to be deleted and …`.
pub(super) fn room(room: &proto::Room) -> String {
    let mut words = Vec::new();
    if room.leak() != Leak::Unspecified {
        words.push("LEAK".to_owned());
        let leak = room.leak().as_str_name();
        words.push(leak.trim_start_matches("LEAK_").to_owned());
    }
    words.push(room.name.clone());
    words.push(format!("{}/{}", room.workspace, room.attempt_id));
    let state = room.attempt_state().as_str_name();
    words.push(match state.trim_start_matches("STATE_") {
        "UNSPECIFIED" => "NO_ATTEMPT".to_owned(),
        state => state.to_owned(),
    });
    words.extend(
        room.age
            .and_then(|age| Duration::try_from(age).ok())
            .map(span),
    );
    if room.leg() == Leg::Lives {
        words.push("ON_THE_PHONE".to_owned());
    }
    if !room.listed {
        words.push("NOT_LISTED".to_owned());
    }
    format!("{}: {}", words.join(" "), room.explanation)
}

/// `3 rooms, 1 leaked; 2 on this LiveKit are not ours and not looked at`.
pub(super) fn counts(page: &proto::ListRoomsResponse) -> String {
    let (total, leaks) = (page.total_size, page.leak_count);
    let foreign = match page.foreign_count {
        0 => String::new(),
        foreign => format!("; {foreign} on this LiveKit are not ours and not looked at"),
    };
    let rooms = if total == 1 { "room" } else { "rooms" };
    format!("{total} {rooms}, {leaks} leaked{foreign}")
}

/// `LEAKED ringonce-0-… w/a1, made 2026-…, 3m before the logs end`.
pub(super) fn unpaired(word: &str, room: &Unpaired) -> String {
    let Unpaired {
        room: name,
        workspace,
        attempt,
        ..
    } = room;
    let made = if room.confirmed {
        "made"
    } else {
        "begun, not confirmed,"
    };
    let created = room
        .created
        .map_or_else(|| "at an unknown time".to_owned(), |at| at.to_string());
    let age = room
        .age
        .map(|age| format!(", {} before the logs end", span(age)))
        .unwrap_or_default();
    format!("{word} {name} {workspace}/{attempt}: {made} {created}{age}, and no room.deleted")
}

/// `12 rooms begun, 11 ended, 1 leaked, 0 open`, and what could not be read.
pub(super) fn summary(found: &Findings) -> String {
    let (leaked, open) = (found.leaked.len(), found.open.len());
    let (created, deleted) = (found.created, found.deleted);
    let unread = match found.unreadable {
        0 => String::new(),
        1 => "; 1 line that looks like ours could not be read".to_owned(),
        lines => format!("; {lines} lines that look like ours could not be read"),
    };
    format!("{created} rooms begun, {deleted} ended, {leaked} leaked, {open} open{unread}")
}

/// To the second: nobody counts a room's milliseconds.
fn span(span: Duration) -> String {
    humantime::format_duration(Duration::from_secs(span.as_secs())).to_string()
}
