//! What LiveKit sends, as far as it is read here: proto3 JSON, tolerantly.
//!
//! Names are camel case or snake case, 64-bit numbers are strings or numbers, defaults are
//! left out, unknown fields are passed over. What is *named* and not known (an event's type,
//! a reason) is noted, so that the receipt can be read again by a later version.

use serde_json::{Map, Value};

use crate::model::observation::LeftReason;
use crate::model::time::Time;

/// The longest text that is taken over from an event, in bytes: ids and names are shorter.
const TEXT_MAX: usize = 128;

/// An object of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a>(&'a Map<String, Value>);

impl<'a> Object<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).or_else(|| self.0.get(&snake(name)))
    }

    pub(super) fn object(self, name: &str) -> Option<Self> {
        self.get(name).and_then(Self::of)
    }

    /// A text that is neither empty nor too long to be one of ours.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        let text = self.get(name)?.as_str()?;
        (!text.is_empty() && text.len() <= TEXT_MAX).then_some(text)
    }

    /// A text of any length, empty if there is none.
    pub(super) fn long_text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// An enum's name, or its number as text.
    pub(super) fn name(self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn integer(self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_i64(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A time in seconds.
    pub(super) fn seconds(self, name: &str) -> Option<Time> {
        self.integer(name)
            .filter(|secs| *secs > 0)
            .map(Time::from_secs)
    }

    /// A time in milliseconds, or else the same in seconds.
    pub(super) fn time(self, name: &str) -> Option<Time> {
        let millis = self.integer(&format!("{name}Ms")).filter(|ms| *ms > 0);
        millis
            .map(|ms| Time::from_micros(ms.saturating_mul(1_000)))
            .or_else(|| self.seconds(name))
    }
}

/// `creationTimeMs` as `creation_time_ms`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    RoomStarted,
    RoomFinished,
    /// A participant is there.
    Present,
    /// A participant left.
    Left,
    /// A participant never came fully in.
    Aborted,
    /// About something else than calls: recordings and streams in.
    Other,
    /// A type that this version does not know.
    Unknown,
}

impl Type {
    pub(super) fn read(text: &str) -> Self {
        match text {
            "room_started" => Self::RoomStarted,
            "room_finished" => Self::RoomFinished,
            "participant_joined" | "track_published" | "track_unpublished" => Self::Present,
            "participant_left" => Self::Left,
            "participant_connection_aborted" => Self::Aborted,
            "egress_started" | "egress_updated" | "egress_ended" | "ingress_started"
            | "ingress_ended" => Self::Other,
            _ => Self::Unknown,
        }
    }
}

/// Why a participant left, and whether the reason was known.
pub(super) fn reason(participant: Object<'_>, event: Type) -> (LeftReason, bool) {
    match participant.name("disconnectReason").as_deref() {
        None | Some("UNKNOWN_REASON" | "0") if event == Type::Aborted => {
            (LeftReason::Aborted, true)
        }
        None | Some("0") => (LeftReason::Unknown, true),
        Some(text) => {
            let reason = LeftReason::read(text);
            (reason, reason != LeftReason::Other)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn r24_both_spellings_and_both_kinds_of_numbers_are_read() {
        for body in [
            json!({"createdAt": "1760000000", "joinedAtMs": "1760000000123"}),
            json!({"createdAt": 1_760_000_000, "joinedAtMs": 1_760_000_000_123_i64}),
            json!({"created_at": "1760000000", "joined_at_ms": "1760000000123"}),
        ] {
            let object = Object::of(&body).unwrap();
            let at = object.seconds("createdAt");
            assert_eq!(at, Some(Time::from_secs(1_760_000_000)));
            let joined = object.time("joinedAt").unwrap();
            assert_eq!(
                joined.as_micros(),
                1_760_000_000_123_000,
                "to the millisecond"
            );
        }
        let absent = json!({"createdAt": "soon", "joinedAt": "0"});
        let absent = Object::of(&absent).unwrap();
        assert_eq!(
            (absent.seconds("createdAt"), absent.time("joinedAt")),
            (None, None)
        );
    }
}
