//! Reads an HTTP answer: done, a Twirp error, or strange. Pure.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::wire::{Answer, Refusal};

/// The content type of a protobuf body in Twirp, both ways.
pub const PROTOBUF: &str = "application/protobuf";

/// The codes of Twirp (the Twirp specification, version 7; LiveKit's library writes the last
/// one without its underscore). JSON with another code is a gateway's.
const CODES: [&str; 18] = [
    "canceled",
    "unknown",
    "invalid_argument",
    "malformed",
    "deadline_exceeded",
    "not_found",
    "bad_route",
    "already_exists",
    "permission_denied",
    "unauthenticated",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "dataloss",
];

/// A Twirp error's JSON. `code` makes it one; the rest may be missing or of any type.
#[derive(Deserialize)]
struct Body {
    code: String,
    #[serde(default)]
    msg: Value,
    #[serde(default)]
    meta: Value,
}

/// What an answer with a status is.
///
/// 200 counts only with a protobuf body: a captive proxy's page is 200 too. No other 2xx and
/// no redirect is an answer of Twirp's.
#[must_use]
pub fn read(status: u16, content_type: Option<&str>, body: Vec<u8>) -> Answer {
    match status {
        200 if content_type.is_some_and(is_protobuf) => Answer::Done(body),
        400..=599 => match serde_json::from_slice::<Body>(&body) {
            Ok(error) if CODES.contains(&error.code.as_str()) => {
                Answer::Refused(refusal(status, error))
            }
            Ok(_) | Err(_) => Answer::Strange(status),
        },
        _ => Answer::Strange(status),
    }
}

fn is_protobuf(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(PROTOBUF)
}

fn refusal(status: u16, error: Body) -> Refusal {
    let empty = Map::new();
    let meta = error.meta.as_object().unwrap_or(&empty);
    Refusal {
        status,
        code: error.code,
        msg: text(&error.msg),
        sip_code: meta.get("sip_status_code").map(sip_code),
        sip_phrase: meta.get("sip_status").map(text).unwrap_or_default(),
    }
}

/// The number of a SIP status; 0 if it is none. Twirp's meta holds strings; a number is taken
/// as well.
fn sip_code(value: &Value) -> u16 {
    match value {
        Value::String(text) => text.trim().parse().unwrap_or(0),
        Value::Number(number) => number
            .as_u64()
            .and_then(|n| u16::try_from(n).ok())
            .unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => 0,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
