//! Phone numbers as people and platforms write them into a text.
//!
//! No text is kept or shown with a number in it: what a platform tells has it replaced, what a
//! person writes is refused. What counts as a number is said here for both.

use std::ops::Range;

/// The fewest digits that are taken for a number: the shortest subscriber's numbers.
pub const DIGITS_MIN: usize = 7;

/// The fewest digits that are taken for a number without its `+`, where a person writes freely:
/// a national number with its area code. Ticket numbers are shorter, as a rule.
const BARE_MIN: usize = 10;

/// The text with each number replaced by what `shown` makes of its digits; `None` if it has
/// none. With `bare` also what has no `+` is a number.
#[must_use]
pub fn replaced(text: &str, bare: bool, shown: &dyn Fn(&str) -> String) -> Option<String> {
    let mut out = String::new();
    let mut kept = 0;
    for Range { start, end } in numbers(text, bare) {
        out.push_str(text.get(kept..start).unwrap_or_default());
        out.push_str(&shown(&digits(text.get(start..end).unwrap_or_default())));
        kept = end;
    }
    if kept == 0 {
        return None;
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    Some(out)
}

/// Whether a text that a person wrote has a number in it: one with its `+`, one in an address,
/// or so many digits that they can be one, however they are grouped.
#[must_use]
pub fn has_number(text: &str) -> bool {
    has_marked_number(text) || has_bare_number(text)
}

/// Whether digits that begin as a word of their own may be a number; neither an address of IP
/// version 4 nor a date with the hour of its time are.
fn has_bare_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if !is_word(byte) {
            at += 1;
            continue;
        }
        let end = end_of_digits(bytes, at);
        let run = text.get(at..end).unwrap_or_default();
        let is_time = bytes.get(end) == Some(&b':');
        let last = run.rfind(|c: char| !c.is_ascii_digit());
        let run = last.filter(|_| is_time).map_or(run, |last| &run[..last]);
        let is_host = run.parse::<std::net::Ipv4Addr>().is_ok();
        if byte.is_ascii_digit()
            && !bytes.get(end).is_some_and(is_word)
            && !is_host
            && digits(run).len() >= BARE_MIN
        {
            return true;
        }
        // The rest of the word belongs to it: it may be an id.
        let rest = bytes.iter().skip(end.max(at + 1));
        at = end.max(at + 1) + rest.take_while(|byte| is_word(byte)).count();
    }
    false
}

/// Whether a text has a number that is marked as one, by its `+` or by an address. Long values
/// of programs, as the ids of orders, are none.
#[must_use]
pub fn has_marked_number(text: &str) -> bool {
    !numbers(text, is_address(text)).is_empty()
}

/// Whether a text is, or names, an address whose user may be a number without its `+`
/// (`tel:`, RFC 3966; `sip:`, RFC 3261).
#[must_use]
pub fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["tel:", "sip:", "sips:"]
        .iter()
        .any(|scheme| text.contains(scheme))
}

/// Where the numbers of a text are, their `+` included.
fn numbers(text: &str, bare: bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let plus = *byte == b'+';
        if !(plus || bare && byte.is_ascii_digit()) {
            at += 1;
            continue;
        }
        let end = end_of_digits(bytes, at + usize::from(plus));
        if digits(text.get(at..end).unwrap_or_default()).len() >= DIGITS_MIN {
            found.push(at..end);
        }
        at = end.max(at + 1);
    }
    found
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Where a number ends: people write it with spaces, dots, dashes and brackets.
fn end_of_digits(bytes: &[u8], begin: usize) -> usize {
    let mut end = begin;
    for (at, byte) in bytes.iter().enumerate().skip(begin) {
        match byte {
            b'0'..=b'9' => end = at + 1,
            b' ' | b'-' | b'.' | b'(' | b')' => {}
            _ => break,
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_a_persons_text_is_seen_and_what_only_has_digits_is_not() {
        for text in [
            "wrong number +12025550186",
            "kim said: call +1 (202) 555-0186 instead",
            "tel:2025550186",
            "12025550186",
            "it is (2025550186).",
            "record of 202-555-0186",
            "(202) 555-0186 is another's",
            "1-202-555-0186",
            "0170 1234567",
            "since 2026-11-29 2025550186",
        ] {
            assert!(has_number(text), "{text}");
        }
        for text in [
            "",
            "wrong list",
            "ticket 4711-0815, row 123456789",
            "by the record of 2026-11-29T12:00:00Z",
            "SCL_1234567890123",
            "host 192.168.100.200",
            "at 2026-11-29 12:00:00, or 29.11.2026 12:00",
            "8d7f9c66-1c5e-5d2f-8a77-123456789012",
            "1 + 1 = 2",
        ] {
            assert!(!has_number(text), "{text}");
        }
        assert!(has_marked_number("+12025550186"));
        assert!(!has_marked_number("order 12025550186"));
    }

    #[test]
    fn a_number_is_replaced_whole_and_the_rest_stays() {
        let masked = |text| replaced(text, false, &|digits| format!("<{}>", digits.len()));
        let text = "Not +1 202-555 0186 found, 2025550186";
        assert_eq!(masked(text).unwrap(), "Not <11> found, 2025550186");
        assert_eq!(masked("Not Found"), None);
    }
}
