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
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(begin) = rest.find(is_word) {
        let word = &rest[begin..];
        let (run, after) = word.split_at(end_of_digits(word));
        let is_time = after.starts_with(':');
        let last = run.rfind(|c: char| !c.is_ascii_digit());
        let run = last.filter(|_| is_time).map_or(run, |last| &run[..last]);
        let is_host = run.parse::<std::net::Ipv4Addr>().is_ok();
        if !after.starts_with(is_word) && !is_host && digits(run).len() >= BARE_MIN {
            return true;
        }
        // The rest of the word belongs to it, with what is hyphenated: it may be an id.
        let end = after.find(|c: char| !is_word(c) && c != '-');
        rest = &after[end.unwrap_or(after.len())..];
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
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        // The second is the wide one of East Asian writing (U+FF0B).
        let plus = matches!(c, '+' | '\u{ff0b}');
        let begin = at + if plus { c.len_utf8() } else { 0 };
        let end = begin + text.get(begin..).map_or(0, end_of_digits);
        if !(plus || bare && c.is_ascii_digit()) || end == begin {
            at += c.len_utf8();
            continue;
        }
        if digits(text.get(at..end).unwrap_or_default()).len() >= DIGITS_MIN {
            found.push(at..end);
        }
        at = end;
    }
    found
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Where a number ends at whose beginning the text is; zero if there is none.
fn end_of_digits(text: &str) -> usize {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if c.is_ascii_digit() {
            end = at + 1;
        } else if !groups(c) {
            break;
        }
    }
    end
}

/// Whether people put this between the digits of a number, or between its `+` and them: spaces
/// and dashes of all kinds, also such as nobody sees, dots, strokes and brackets.
fn groups(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '-' | '.' | '/' | '(' | ')' | '[' | ']' | '\u{ad}' | '\u{b7}'
            | '\u{200b}'..='\u{200f}' | '\u{2010}'..='\u{2015}' | '\u{2022}' | '\u{2060}'
            | '\u{2212}' | '\u{feff}'
        )
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
            "2025550186-",
            "0044 20 7946 0186",
            "+49 (0)30 / 12 34 56",
            "+1\u{a0}202\u{2011}555\u{2011}0186",
            "\u{ff0b}\u{200b}12025550186",
            "tel:202\u{a0}555\u{a0}0186",
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
