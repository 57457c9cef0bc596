//! What must not be kept of a body: phone numbers and passwords. Pure.
//!
//! By a walk over the JSON. Under names that hold numbers (`sip.phoneNumber`,
//! `sip.trunkPhoneNumber`, a participant's `name`, which LiveKit fills with the number, and
//! the carriers' headers) every run of seven digits or more is replaced; under any other name
//! what is written as a number with its `+`, or in an address. In its place stands the
//! number's key, so that events of one number can still be told to be of one.

use serde_json::Value;

use crate::model::written::{DIGITS_MIN, is_address, replaced};

/// What a password is replaced by.
const REDACTED: &str = "redacted";

/// Replaces the numbers in `body`; `key` makes a number's key.
pub fn redact(body: &mut Value, key: &dyn Fn(&str) -> String) {
    walk(body, "", false, key);
}

/// `of`: the name under which `value` stands.
fn walk(value: &mut Value, of: &str, named: bool, key: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => {
            // The metadata of a room is ours, and an id in it may look like an address.
            let named = named || (of != "metadata" && is_address(text));
            if let Some(clean) = replaced(text, named, &|digits| placeholder(digits, key)) {
                *text = clean;
            }
        }
        Value::Array(items) => {
            for item in items {
                walk(item, of, named, key);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if is_secret(name) && !field.is_null() {
                    *field = REDACTED.into();
                } else {
                    // A room's name is ours, and may well have seven digits in a row.
                    let holds = holds_numbers(name) || (of == "participant" && name == "name");
                    walk(field, name, named || holds, key);
                }
            }
        }
        // A number as a number: no field of LiveKit's has one, and a foreign one is not read.
        Value::Number(number) if named && number.to_string().len() >= DIGITS_MIN => {
            *value = placeholder(&number.to_string(), key).into();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("password") || name.contains("secret")
}

fn holds_numbers(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("sip.h.")
        || name.contains("phone")
        || name.contains("number")
        || matches!(name.as_str(), "sip.from" | "sip.to")
}

fn placeholder(digits: &str, key: &dyn Fn(&str) -> String) -> String {
    // As E.164 has it, so that a number with and without its plus is one.
    format!("number:{}", key(&format!("+{digits}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(mut body: Value) -> Value {
        redact(&mut body, &|number| format!("k{}", number.len()));
        body
    }

    #[test]
    fn an_address_needs_no_plus() {
        let body = json!({"x": "tel:12025550142", "y": "<SIP:2025550142@h>", "z": "1795967305"});
        let clean = json!({"x": "tel:number:k12", "y": "<SIP:number:k11@h>", "z": "1795967305"});
        assert_eq!(redacted(body), clean);
        let ours = json!({"metadata": "{\"attempt\":\"sip:2025550142\"}"});
        assert_eq!(redacted(ours.clone()), ours);
    }

    #[test]
    fn numbers_go_and_what_events_are_read_by_stays() {
        let body = json!({
            "event": "participant_left",
            "id": "EV_1",
            "createdAt": "1795967305",
            "room": {
                "name": "ringonce-0-8d7f9c66-1c5e-5d2f-8a77-3c1f4a1d2b3c",
                "sid": "RM_1",
                "creationTimeMs": "1795967305055",
                "turnPassword": "hidden",
            },
            "participant": {
                "identity": "sip_+12025550100",
                "name": "Phone +1 (202) 555-0100",
                "attributes": {
                    "sip.callID": "SCL_1",
                    "sip.callStatus": "active",
                    "sip.phoneNumber": "+12025550100",
                    "sip.trunkPhoneNumber": "12025550100",
                    "sip.h.x-from": "<sip:2025550100@host>",
                },
            },
            "phones": [12_025_550_100_i64, "short 123"],
        });
        assert_eq!(
            redacted(body),
            json!({
                "event": "participant_left",
                "id": "EV_1",
                "createdAt": "1795967305",
                "room": {
                    "name": "ringonce-0-8d7f9c66-1c5e-5d2f-8a77-3c1f4a1d2b3c",
                    "sid": "RM_1",
                    "creationTimeMs": "1795967305055",
                    "turnPassword": "redacted",
                },
                "participant": {
                    "identity": "sip_number:k12",
                    "name": "Phone number:k12",
                    "attributes": {
                        "sip.callID": "SCL_1",
                        "sip.callStatus": "active",
                        "sip.phoneNumber": "number:k12",
                        "sip.trunkPhoneNumber": "number:k12",
                        "sip.h.x-from": "<sip:number:k11@host>",
                    },
                },
                "phones": ["number:k12", "short 123"],
            })
        );
    }

    proptest::proptest! {
        #[test]
        fn no_number_stays_under_its_names(
            before in "[^0-9]{0,9}", number in "\\+[1-9][0-9]{6,14}", after in "[^0-9]{0,9}"
        ) {
            let text = format!("{before}{number}{after}");
            let body = json!({"a": [{"sip.phoneNumber": text, "other": text}]});
            let shown = redacted(body).to_string();
            proptest::prop_assert!(!shown.contains(number.trim_start_matches('+')), "{shown}");
        }
    }
}
