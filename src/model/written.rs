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

/// How an address begins whose user may be a number.
const SCHEMES: [&str; 3] = ["tel:", "sip:", "sips:"];

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
        let last = run.rfind(|c: char| digit(c).is_none());
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

/// Whether a text has a number that is marked as one: by its `+`, or as the user of an address.
/// Digits alone are none, however many: programs number orders and persons by them.
#[must_use]
pub fn has_marked_number(text: &str) -> bool {
    !numbers(text, false).is_empty() || is_numbers_address(text)
}

/// Whether digits that may be a number follow the scheme of an address; a word that only ends
/// as a scheme does is none.
fn is_numbers_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SCHEMES.into_iter().any(|scheme| {
        text.match_indices(scheme).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + scheme.len()..]);
            let begins = !before.ends_with(char::is_alphanumeric);
            let run = &after[..end_of_digits(after)];
            begins && digits(run).len() >= DIGITS_MIN
        })
    })
}

/// Whether a text is, or names, an address whose user may be a number without its `+`
/// (`tel:`, RFC 3966; `sip:`, RFC 3261).
#[must_use]
pub fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SCHEMES.into_iter().any(|scheme| text.contains(scheme))
}

/// Where the numbers of a text are, their `+` included.
fn numbers(text: &str, bare: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        // The others are the small and the wide one of East Asian writing.
        let plus = matches!(c, '+' | '\u{fe62}' | '\u{ff0b}');
        let begin = at + if plus { c.len_utf8() } else { 0 };
        let end = begin + text.get(begin..).map_or(0, end_of_digits);
        if !(plus || bare && digit(c).is_some()) || end == begin {
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

/// The digits of a text, in ASCII whatever they were written in: one number has one key.
fn digits(text: &str) -> String {
    text.chars().filter_map(digit).collect()
}

/// A decimal digit of any script, as the one of ASCII.
fn digit(c: char) -> Option<char> {
    if c.is_ascii_digit() {
        return Some(c);
    }
    let zero = ZEROS.partition_point(|zero| *zero <= c).checked_sub(1)?;
    let value = u32::from(c) - u32::from(*ZEROS.get(zero)?);
    char::from_digit(value, 10)
}

/// The zero of each script that has decimal digits, in order; one to nine follow each
/// (general category Nd of Unicode 17).
const ZEROS: [char; 76] = [
    '0',
    '\u{660}',
    '\u{6f0}',
    '\u{7c0}',
    '\u{966}',
    '\u{9e6}',
    '\u{a66}',
    '\u{ae6}',
    '\u{b66}',
    '\u{be6}',
    '\u{c66}',
    '\u{ce6}',
    '\u{d66}',
    '\u{de6}',
    '\u{e50}',
    '\u{ed0}',
    '\u{f20}',
    '\u{1040}',
    '\u{1090}',
    '\u{17e0}',
    '\u{1810}',
    '\u{1946}',
    '\u{19d0}',
    '\u{1a80}',
    '\u{1a90}',
    '\u{1b50}',
    '\u{1bb0}',
    '\u{1c40}',
    '\u{1c50}',
    '\u{a620}',
    '\u{a8d0}',
    '\u{a900}',
    '\u{a9d0}',
    '\u{a9f0}',
    '\u{aa50}',
    '\u{abf0}',
    '\u{ff10}',
    '\u{104a0}',
    '\u{10d30}',
    '\u{10d40}',
    '\u{11066}',
    '\u{110f0}',
    '\u{11136}',
    '\u{111d0}',
    '\u{112f0}',
    '\u{11450}',
    '\u{114d0}',
    '\u{11650}',
    '\u{116c0}',
    '\u{116d0}',
    '\u{116da}',
    '\u{11730}',
    '\u{118e0}',
    '\u{11950}',
    '\u{11bf0}',
    '\u{11c50}',
    '\u{11d50}',
    '\u{11da0}',
    '\u{11de0}',
    '\u{11f50}',
    '\u{16a60}',
    '\u{16ac0}',
    '\u{16b50}',
    '\u{16d70}',
    '\u{1ccf0}',
    '\u{1d7ce}',
    '\u{1d7d8}',
    '\u{1d7e2}',
    '\u{1d7ec}',
    '\u{1d7f6}',
    '\u{1e140}',
    '\u{1e2f0}',
    '\u{1e4f0}',
    '\u{1e5f1}',
    '\u{1e950}',
    '\u{1fbf0}',
];

/// Where a number ends at whose beginning the text is; zero if there is none.
fn end_of_digits(text: &str) -> usize {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if digit(c).is_some() {
            end = at + c.len_utf8();
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
            | '\u{200b}'..='\u{200f}' | '\u{2010}'..='\u{2015}' | '\u{2022}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{2212}'
            | '\u{30fb}' | '\u{30fc}' | '\u{fe63}' | '\u{feff}'
            | '\u{ff08}' | '\u{ff09}' | '\u{ff0d}'..='\u{ff0f}'
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
            "call \u{202a}+1 202\u{2011}555\u{2011}0186\u{202c} instead",
            "+\u{661}\u{662}\u{660}\u{662}\u{665}\u{665}\u{665}\u{660}\u{661}\u{668}\u{666}",
            "\u{966}\u{967}\u{968}\u{969}\u{96a}\u{96b}\u{96c}\u{96d}\u{96e}\u{96f}",
            "０９０－１２３４－５６７８",
            "＋１（２０２）５５５・０１８６",
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
            "gossip:20261129",
            "\u{665} of \u{661}\u{660}",
        ] {
            assert!(!has_number(text), "{text}");
        }
    }

    #[test]
    fn a_value_of_a_program_may_have_digits_but_none_that_are_marked_as_a_number() {
        for text in [
            "+12025550186",
            "tel:2025550186",
            "contact:TEL:202-555-0186",
            "sip:12025550186@host",
            "<sips:2025550186@host>",
        ] {
            assert!(has_marked_number(text), "{text}");
        }
        for text in [
            "order 12025550186",
            "12025550186",
            "gossip:12025550186",
            "sip:gateway:20261129",
            "tel:4711",
            "hotel:2025550186",
        ] {
            assert!(!has_marked_number(text), "{text}");
        }
    }

    #[test]
    fn digits_of_every_script_are_those_of_ascii() {
        assert!(ZEROS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(digits("٠۹०９𝟗𝟢7"), "0909907");
        let others = [
            'a',
            '/',
            ':',
            '\u{b2}',
            '\u{bd}',
            '\u{66a}',
            '\u{2167}',
            '\u{1d800}',
        ];
        assert_eq!(others.map(digit), [None; 8]);
        // What is masked has one key, whatever it was written in.
        let masked = replaced("+4930\u{661}\u{662}\u{663}", false, &str::to_owned);
        assert_eq!(masked.unwrap(), "4930123");
    }

    #[test]
    fn a_number_is_replaced_whole_and_the_rest_stays() {
        let masked = |text| replaced(text, false, &|digits| format!("<{}>", digits.len()));
        let text = "Not +1 202-555 0186 found, 2025550186";
        assert_eq!(masked(text).unwrap(), "Not <11> found, 2025550186");
        assert_eq!(masked("Not Found"), None);
    }
}
