//! What bends an input: bytes as bytes, and JSON as JSON. One seed, one input.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

/// Bytes that parsers have a special way for.
const WORDS: [&[u8]; 28] = [
    b"\0",
    b"\r\n",
    b"\r\n\r\n",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-1",
    b"1e309",
    b"9223372036854775808",
    b"18446744073709551616",
    b"..",
    b"=",
    b"Bearer ",
    b"eyJhbGciOiJub25lIn0",
    b"HS256",
    b"none",
    b"\xff\xfe",
    b"\xc3\x28",
    b"chunked",
    b"content-length: 99999999999\r\n",
];

/// Texts that fields are given.
const TEXTS: [&str; 16] = [
    "",
    "0",
    "-1",
    "9223372036854775807",
    "1e400",
    "ringonce-0-",
    "active",
    "SIP",
    "AGENT",
    "USER_REJECTED",
    "participant_left",
    "room_started",
    "+12025550100",
    "{\"deployment\":\"d-1\"}",
    "\u{202e}\u{0}",
    "sip.callStatus",
];

/// The chance of one input.
pub(super) struct Mutator(StdRng);

impl Mutator {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            0
        } else {
            self.0.random_range(0..limit)
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0.random()
    }

    /// One of these; there is one.
    pub(super) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len());
        &items[at]
    }

    pub(super) fn word(&mut self) -> &'static [u8] {
        WORDS[self.below(WORDS.len())]
    }

    /// Bends bytes in one place or in up to eight; parts of `other` may come in.
    pub(super) fn bytes(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut out = input.to_vec();
        let most = if self.below(2) == 0 { 1 } else { 8 };
        for _ in 0..=self.below(most) {
            self.bend(&mut out, other);
        }
        out
    }

    fn bend(&mut self, out: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(out.len() + 1);
        let span = self.below(32).min(out.len() - at);
        match self.below(8) {
            0 => {
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => {
                let byte = u8::try_from(self.below(256)).unwrap();
                out.insert(at, byte);
            }
            2 => drop(out.drain(at..at + span)),
            3 => {
                let again = out[at..at + span].to_vec();
                out.splice(at..at, again);
            }
            4 => drop(out.splice(at..at, self.word().iter().copied())),
            5 => drop(out.splice(at..at + span, self.word().iter().copied())),
            6 => {
                let from = self.below(other.len());
                let to = (from + self.below(64)).min(other.len());
                out.splice(at..at + span, other[from..to].iter().copied());
            }
            _ => out.truncate(at),
        }
    }

    /// Bends a text; what is no text any more is made one.
    pub(super) fn text(&mut self, input: &str, other: &str) -> String {
        let bent = self.bytes(input.as_bytes(), other.as_bytes());
        String::from_utf8_lossy(&bent).into_owned()
    }

    /// Bends a value in one to six places; parts of `other` may come in.
    pub(super) fn json(&mut self, input: &Value, other: &Value) -> Value {
        let mut out = input.clone();
        for _ in 0..=self.below(6) {
            let fresh = self.fresh(other);
            let place = self.place(&mut out);
            if self.below(4) == 0
                && let Value::Object(fields) = place
            {
                let gone = fields.keys().nth(self.below(fields.len())).cloned();
                let key = gone.and_then(|key| fields.remove(&key).map(|value| (key, value)));
                if let Some((key, value)) = key.filter(|_| self.below(2) == 0) {
                    fields.insert(self.text(&key, "sip.phoneNumber"), value);
                }
            } else {
                *place = fresh;
            }
        }
        out
    }

    /// Some place in a value.
    fn place<'a>(&mut self, mut value: &'a mut Value) -> &'a mut Value {
        loop {
            let children = match value {
                Value::Object(fields) => fields.len(),
                Value::Array(items) => items.len(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            };
            if children == 0 || self.below(4) == 0 {
                return value;
            }
            let at = self.below(children);
            value = match value {
                Value::Object(fields) => fields.values_mut().nth(at).unwrap(),
                Value::Array(items) => &mut items[at],
                leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => leaf,
            };
        }
    }

    fn fresh(&mut self, other: &Value) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => self.number().into(),
            2 => i64::from_ne_bytes(self.number().to_ne_bytes()).into(),
            3 => TEXTS[self.below(TEXTS.len())].into(),
            4 => {
                let known = TEXTS[self.below(TEXTS.len())];
                self.text(known, "ringonce").into()
            }
            5 => Value::Array(vec![Value::Null; self.below(4)]),
            6 => (f64::from_bits(self.number())).into(),
            _ => {
                let mut other = other.clone();
                self.place(&mut other).take()
            }
        }
    }
}
