//! A cell of the table: what a side has come to in one scene.

use std::fmt;

use super::script::{Call, Scene};
use super::side::{Side, View};

/// How a cell is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// It goes on.
    Open,
    /// It ended as it should.
    Good,
    /// It is not known, and left alone.
    Unsure,
    /// A person was wronged.
    Bad,
}

/// What a side has come to in one scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) sip_calls: u32,
    pub(super) word: String,
    pub(super) mood: Mood,
}

impl Cell {
    /// Whether there is nothing to say yet.
    pub(super) fn is_empty(&self) -> bool {
        self.sip_calls == 0 && self.word.is_empty()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        write!(f, "{:>2}  {}", self.sip_calls, self.word)
    }
}

/// Colors, where there is a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink(pub(super) bool);

impl Ink {
    pub(super) fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    pub(super) fn of(self, mood: Mood, text: &str) -> String {
        match mood {
            Mood::Open => text.to_owned(),
            Mood::Good => self.code("32", text),
            Mood::Unsure => self.code("33", text),
            Mood::Bad => self.code("1;31", text),
        }
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// What a side has come to in a scene.
pub(super) fn cell(scene: Scene, side: &Side, view: &View) -> Cell {
    let calls: Vec<&Call> = side
        .calls
        .iter()
        .filter(|call| call.scene == scene)
        .collect();
    let sip_calls = calls.iter().map(|call| view.sip_calls(call)).sum();
    let told = |mood, word: &str| Cell {
        sip_calls,
        word: word.to_owned(),
        mood,
    };
    let at_once = calls.windows(2).any(|pair| match pair {
        [a, b] => a.contact == b.contact && view.most_at_once(&a.contact) > 1,
        _ => false,
    });
    if at_once {
        return told(Mood::Bad, "BOTH RING AT ONCE");
    }
    if calls.iter().any(|call| view.sip_calls(call) > 1) {
        return told(Mood::Bad, "RANG TWICE");
    }
    if scene == Scene::NoAgent && sip_calls > 0 {
        return told(Mood::Bad, "NO AGENT ON THE LINE");
    }
    if calls.iter().any(|call| view.rings(call)) {
        return told(Mood::Open, "ringing");
    }
    let seen: Vec<_> = calls.iter().map(|call| view.seen(call)).collect();
    let mut words: Vec<&str> = Vec::new();
    for seen in &seen {
        if !words.contains(&seen.word.as_str()) && !seen.word.is_empty() {
            words.push(&seen.word);
        }
    }
    if words.is_empty() && sip_calls > 0 {
        words.push("dialing");
    }
    if seen.iter().any(|seen| seen.failed) {
        let over = calls.iter().all(|call| side.queue.message(&call.id).over());
        return if over {
            told(Mood::Bad, "NEVER CALLED")
        } else {
            told(Mood::Open, "failed, once more")
        };
    }
    let mood = if seen.iter().any(|seen| seen.uncertain) {
        Mood::Unsure
    } else if seen.iter().all(|seen| seen.over) {
        Mood::Good
    } else {
        Mood::Open
    };
    told(mood, &words.join(", "))
}
