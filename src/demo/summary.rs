//! The texts around the table: what is played, and what it came to.

use std::fmt::Write as _;

use super::report::{Report, Told};
use super::table::{Cell, Ink, Mood};

/// The columns' names.
pub(super) const OURS: &str = "ringonce";
/// The other one's.
pub(super) const NAIVE: &str = "lock + three calls";

/// The width of the first column, and of those after it.
const TITLE: usize = 34;
const COLUMN: usize = 26;
/// The width of a paragraph.
const WIDTH: usize = 80;

/// What is played.
pub(super) fn head(calls: usize, capacity: u32, both: bool) -> String {
    let sides = if both {
        "Two workers take its messages. ringonce is a real server on SQLite, in a process of \
         its own; the other is what teams write first: an exists check, a lock with an expiry, \
         and three calls to LiveKit."
    } else {
        "What takes its messages is what teams write first: an exists check, a lock with an \
         expiry, and three calls to LiveKit, inside this process."
    };
    let text = format!(
        "A queue that delivers at least once asks for {calls} calls. {sides} LiveKit is a \
         sandbox that rings nobody and takes {capacity} dials a second; the numbers are the \
         SIP calls that it counted."
    );
    format!("One intended call, at most one ring.\n\n{}", wrap(&text))
}

/// The table's first line.
pub(super) fn heading(names: impl Iterator<Item = &'static str>) -> String {
    let mut line = format!("  {:<TITLE$}", "");
    for name in names {
        write!(line, "    {name:<22}").expect("a String can be written to");
    }
    line.trim_end().to_owned()
}

/// A line of the table.
pub(super) fn row(title: &str, cells: &[Cell], ink: Ink) -> String {
    let mut line = format!("  {title:<TITLE$}");
    for cell in cells {
        // Padded before it is colored: codes have no width.
        line.push_str(&ink.of(cell.mood, &format!("{:<COLUMN$}", cell.to_string())));
    }
    line.trim_end().to_owned()
}

/// Breaks a paragraph into lines.
pub(super) fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// What it came to.
pub(super) fn of(report: &Report, ink: Ink) -> String {
    let sides: Vec<&Report> = std::iter::once(report)
        .chain(report.naive.as_deref())
        .collect();
    let ours = report.rooms_created.is_some();
    let mut text = String::from("\n");
    if ours {
        text.push_str(&ink.bold("What became of each call at ringonce, and why"));
        text.push_str("\n\n");
        each(&mut text, &report.calls);
        text.push('\n');
    }
    let names = if ours { vec![OURS, NAIVE] } else { vec![NAIVE] };
    text.push_str(&ink.bold(&heading(names.into_iter())));
    text.push('\n');
    counts(&mut text, &sides, ink);
    text.push('\n');
    if let Some(naive) = sides.last() {
        paragraph(&mut text, &lesson(naive));
    }
    if ours {
        words(&mut text, report, ink);
    }
    text
}

fn paragraph(text: &mut String, words: &str) {
    text.push_str(&wrap(words));
    text.push('\n');
}

/// What the other side teaches.
fn lesson(naive: &Report) -> String {
    format!(
        "A lock that expires is no proof that its holder has stopped, and an error is no proof \
         that no phone rings: {} rings too many. In {} rooms nobody ever was but an agent; \
         LiveKit closes them after five minutes.",
        naive.double_rings, naive.leaked_rooms,
    )
}

/// A line for each call; calls that went alike share one.
fn each(text: &mut String, calls: &[Told]) {
    let mut calls = calls.iter().peekable();
    while let Some(call) = calls.next() {
        let mut last = None;
        let mut sip_calls = call.sip_calls;
        while let Some(next) =
            calls.next_if(|next| next.scene == call.scene && next.why == call.why)
        {
            sip_calls += next.sip_calls;
            last = Some(next);
        }
        let name = match last {
            Some(last) => {
                let nth = last.attempt.rsplit('-').next().unwrap_or_default();
                format!("{} to {nth}", call.attempt)
            }
            None => call.attempt.clone(),
        };
        let why = wrap_at(&call.why, 26);
        writeln!(text, "  {name:<18}{sip_calls:>3}   {why}").expect("a String can be written to");
    }
}

fn wrap_at(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut width = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width + length + 1 > WIDTH + indent / 2 {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            width = indent;
        } else if width > indent {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

fn counts(text: &mut String, sides: &[&Report], ink: Ink) {
    let mut line = |title: &str, count: fn(&Report) -> usize, mood: fn(usize) -> Mood| {
        let cells: Vec<Cell> = sides
            .iter()
            .map(|side| Cell {
                sip_calls: u32::try_from(count(side)).unwrap_or(u32::MAX),
                word: " ".to_owned(),
                mood: mood(count(side)),
            })
            .collect();
        text.push_str(&row(title, &cells, ink));
        text.push('\n');
    };
    let plain: fn(usize) -> Mood = |_| Mood::Open;
    let none: fn(usize) -> Mood = |n| if n == 0 { Mood::Good } else { Mood::Bad };
    line("intended calls", |r| r.attempts, plain);
    line("SIP calls", |r| r.sip_calls as usize, plain);
    line("rings too many", |r| r.double_rings as usize, none);
    line(
        "persons called twice at once",
        |r| r.contacts_called_twice_at_once,
        none,
    );
    line("rooms left behind", |r| r.leaked_rooms, none);
}

/// What is left to say of our side.
fn words(text: &mut String, report: &Report, ink: Ink) {
    let (created, deleted) = (report.rooms_created, report.rooms_deleted);
    text.push('\n');
    paragraph(
        text,
        &format!(
            "ringonce: {} rooms created and {} deleted, by the server's log. {}",
            created.unwrap_or_default(),
            deleted.unwrap_or_default(),
            prevented(report)
        ),
    );
    if report.uncertain > 0 {
        let uncertain = format!(
            "{} calls are uncertain: the reply was lost, or the server was killed before it came. \
             Whether they were answered is not guessed, and they are not dialed again. What \
             evidence cannot settle waits for a person: `ringonce review`.",
            report.uncertain
        );
        paragraph(text, &uncertain);
    }
    text.push('\n');
    let (mood, verdict) = if report.kept() {
        let kept = "Kept: no call rang twice, nobody was called twice at once, no room is left.";
        (Mood::Good, kept)
    } else {
        (Mood::Bad, "BROKEN: see above.")
    };
    let seconds = report.elapsed_seconds;
    writeln!(text, "{} ({seconds} s)", ink.of(mood, verdict)).expect("a String can be written to");
}

/// What kept phones from ringing once more, in a sentence.
fn prevented(report: &Report) -> String {
    let of = |reasons: &[&str]| -> u64 {
        let counts = reasons
            .iter()
            .filter_map(|reason| report.prevented.get(*reason));
        counts.sum()
    };
    let early = of(&[
        "redelivered_queued",
        "redelivered_reserved",
        "redelivered_dialing",
    ]);
    let all: u64 = report
        .prevented
        .iter()
        .filter(|(reason, _)| reason.starts_with("redelivered_"))
        .map(|(_, count)| count)
        .sum();
    format!(
        "Deliveries that rang nobody, because the call was known: {early} before or while a \
         phone rang, {} after it. Calls that waited for their contact: {}. Calls that were not \
         placed for want of an agent: {}.",
        all - early,
        of(&["contact_reserved", "number_in_use"]),
        of(&["no_agent"]),
    )
}
