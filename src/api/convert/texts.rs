//! The fields of a call that carry a grammar of their own: digits, headers, labels, zones.

use std::collections::BTreeMap;

use super::fields::{NUMBER, Violations};
use crate::api::limits::RequestLimits;
use crate::model::written::has_marked_number;

impl Violations {
    /// DTMF after the answer, as LiveKit reads it: `w` waits half a second.
    pub(super) fn dial_digits(&mut self, digits: &str, limits: &RequestLimits) {
        let max = limits.digits_max;
        if digits.len() > max {
            self.add(
                "dial_digits",
                format_args!("is {} long; at most {max} are allowed", digits.len()),
            );
        }
        let tone = |c: char| matches!(c, '0'..='9' | 'A'..='D' | '*' | '#' | 'w');
        if !digits.chars().all(tone) {
            self.add("dial_digits", "has a character outside 0-9 A-D * # w");
        }
    }

    /// Headers of the INVITE. A line break in one would be a header, or a body, of the
    /// caller's making.
    pub(super) fn sip_headers(
        &mut self,
        headers: &BTreeMap<String, String>,
        limits: &RequestLimits,
    ) {
        const FIELD: &str = "sip_headers";
        let (max, length) = (limits.headers_max, limits.header_max);
        if headers.len() > max {
            self.add(
                FIELD,
                format_args!("has {} entries; at most {max} are allowed", headers.len()),
            );
        }
        let mut seen = std::collections::BTreeSet::new();
        for (name, value) in headers {
            // RFC 3261, 25.1: token.
            let token = |b: u8| b.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&b);
            if name.is_empty() || name.len() > length || !name.bytes().all(token) {
                self.add(
                    FIELD,
                    format_args!("has a name that is no SIP token of 1 to {length} characters"),
                );
                continue;
            }
            let field = format!("{FIELD}[\"{name}\"]");
            let lower = name.to_ascii_lowercase();
            if !(lower.starts_with("x-") || lower.starts_with("p-")) || lower.len() == 2 {
                self.add(&*field, "has a name that does not begin with X- or P-");
            } else if lower.starts_with("x-ringonce-") {
                self.add(&*field, "is reserved: X-Ringonce- is set by this service");
            }
            if !seen.insert(lower) {
                self.add(
                    &*field,
                    "is given twice; names are the same in upper and lower case",
                );
            }
            self.text(&field, value, length);
        }
    }

    /// Labels of an attempt.
    pub(super) fn labels(&mut self, labels: &BTreeMap<String, String>, limits: &RequestLimits) {
        let (max, key_max) = (limits.labels_max, limits.label_max);
        if labels.len() > max {
            self.add(
                "labels",
                format_args!("has {} entries; at most {max} are allowed", labels.len()),
            );
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
        for (key, value) in labels {
            if key.is_empty() || key.len() > key_max || !key.bytes().all(allowed) {
                self.add(
                    "labels",
                    format_args!("has a key that is not 1 to {key_max} of A-Z a-z 0-9 . _ : -"),
                );
            } else if has_marked_number(key) {
                // Its field's path would show it.
                self.add("labels", format_args!("has a key that {NUMBER}"));
            } else {
                self.open_value(&format!("labels[\"{key}\"]"), value, limits.label_max);
            }
        }
    }

    /// The form of an IANA time zone's name; whether it exists is not asked here.
    pub(super) fn time_zone(&mut self, zone: &str) {
        let part = |part: &str| {
            part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b))
        };
        if zone.len() > 64 || zone.split('/').count() > 3 || !zone.split('/').all(part) {
            self.add(
                "contact_time_zone",
                "is no name of an IANA time zone, as Europe/Berlin or UTC",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(look: impl FnOnce(&mut Violations)) -> usize {
        let mut wrong = Violations::default();
        look(&mut wrong);
        wrong.list().len()
    }

    #[test]
    fn digits_headers_labels_and_zones_are_checked() {
        let limits = RequestLimits::default();
        for (digits, faults) in [
            ("", 0),
            ("ww12#", 0),
            ("ABCD*", 0),
            ("12E", 1),
            ("w,1", 1),
            ("1\r\n", 1),
        ] {
            assert_eq!(
                found(|v| v.dial_digits(digits, &limits)),
                faults,
                "{digits:?}"
            );
        }
        for (name, value, faults) in [
            ("X-Campaign", "spring", 0),
            ("P-Asserted-Identity", "x", 0),
            ("x-lower", "", 0),
            ("Via", "x", 1),
            ("X-", "x", 1),
            ("X-Ringonce-Session", "x", 1),
            ("x-RINGONCE-a", "x", 1),
            ("X-A", "b\r\nVia: c", 1),
            ("X-A\r\nVia", "c", 1),
            ("X A", "c", 1),
            ("X-A", "b\u{0}", 1),
            ("X-A", &"v".repeat(257), 1),
        ] {
            let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(
                found(|v| v.sip_headers(&headers, &limits)),
                faults,
                "{name:?}"
            );
        }
        let twice = ["X-A", "x-a"].map(|name| (name.to_owned(), String::new()));
        assert_eq!(found(|v| v.sip_headers(&twice.into(), &limits)), 1);
        let many = (0..33).map(|n| (format!("k{n}"), String::new())).collect();
        assert_eq!(found(|v| v.labels(&many, &limits)), 1);
        let named = [("phone", "+1 202-555-0186"), ("order", "12025550186")];
        let named = named.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(found(|v| v.labels(&named, &limits)), 1);
        let keys = [("tel:2025550186", ""), ("2025550186", "")];
        let keys = keys.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(found(|v| v.labels(&keys, &limits)), 1);
        let odd = [("", ""), ("a b", ""), ("ok", "a\nb")];
        let odd = odd.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(found(|v| v.labels(&odd, &limits)), 3);
        for (zone, faults) in [
            ("Europe/Berlin", 0),
            ("America/Argentina/Buenos_Aires", 0),
            ("Etc/GMT+5", 0),
            ("UTC", 0),
            ("Europe/", 1),
            ("../etc/passwd", 1),
            ("+02:00", 1),
            ("a/b/c/d", 1),
        ] {
            assert_eq!(found(|v| v.time_zone(zone)), faults, "{zone}");
        }
    }
}
