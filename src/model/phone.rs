//! Phone numbers: E.164, redacted wherever they could be shown.

use std::fmt;

use phonenumber::Type;
use serde::{Deserialize, Serialize};

/// A number as E.164 writes it: `+`, a country code and digits, 7 to 15 of them
/// (ITU-T E.164). `Debug` and `Display` show a mask.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct E164(String);

/// Why a text is no E.164 number. No variant carries the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadNumber {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It has characters outside ASCII, or invisible ones.
    #[error(
        "has characters other than + and the digits 0-9 (other scripts and invisible characters are refused)"
    )]
    NotAscii,
    /// It is a `tel:` or `sip:` address.
    #[error("is an address (tel:, sip: or with @), not a number; give the E.164 number alone")]
    Address,
    /// It has an extension or parameters.
    #[error("has an extension or parameters; give the number alone and the digits in dial_digits")]
    Extension,
    /// It is a short or emergency number.
    #[error("is an emergency or short number, which is never dialed")]
    Short,
    /// It begins with an international prefix.
    #[error("begins with an international prefix (00, 011); write + instead")]
    InternationalPrefix,
    /// It has no `+`.
    #[error("has no leading +; no country is guessed")]
    NoPlus,
    /// It has spaces, dashes, dots or parentheses.
    #[error("has separators; write + and digits alone")]
    Separators,
    /// Its country code begins with 0.
    #[error("has a country code that begins with 0")]
    CountryZero,
    /// It has fewer than 7 digits.
    #[error("is too short: E.164 numbers have at least 7 digits here")]
    TooShort,
    /// It has more than 15 digits.
    #[error("is too long: E.164 numbers have at most 15 digits")]
    TooLong,
    /// Anything else.
    #[error("has a character that is no digit")]
    Character,
}

impl E164 {
    /// The digits with the leading `+`, for the dial alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A mask that is safe to show: `+1********00`.
    #[must_use]
    pub fn mask(&self) -> String {
        let digits = self.0.len() - 1;
        let shown = self.0.get(1..2).unwrap_or_default();
        let tail = self.0.get(self.0.len() - 2..).unwrap_or_default();
        format!("+{shown}{}{tail}", "*".repeat(digits.saturating_sub(3)))
    }
}

impl TryFrom<String> for E164 {
    type Error = BadNumber;

    fn try_from(text: String) -> Result<Self, BadNumber> {
        match check(&text) {
            Ok(()) => Ok(Self(text)),
            Err(bad) => Err(bad),
        }
    }
}

impl std::str::FromStr for E164 {
    type Err = BadNumber;

    fn from_str(text: &str) -> Result<Self, BadNumber> {
        Self::try_from(text.to_owned())
    }
}

impl From<E164> for String {
    fn from(number: E164) -> Self {
        number.0
    }
}

impl fmt::Debug for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mask())
    }
}

impl fmt::Display for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mask())
    }
}

fn check(text: &str) -> Result<(), BadNumber> {
    if text.is_empty() {
        return Err(BadNumber::Empty);
    }
    if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err(BadNumber::NotAscii);
    }
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("tel:")
        || lower.starts_with("sip")
        || lower.contains('@')
        || lower.contains("%40")
    {
        return Err(BadNumber::Address);
    }
    if lower.contains([';', ',', '?', '#', '*', 'x', 'w', 'p']) {
        return Err(BadNumber::Extension);
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let bare = text
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '(' | ')'));
    if bare && digits.len() <= 6 {
        return Err(BadNumber::Short);
    }
    if bare && (digits.starts_with("00") || digits.starts_with("011")) {
        return Err(BadNumber::InternationalPrefix);
    }
    if text.contains([' ', '-', '.', '(', ')', '/']) {
        return Err(BadNumber::Separators);
    }
    let Some(rest) = text.strip_prefix('+') else {
        return Err(if bare {
            BadNumber::NoPlus
        } else {
            BadNumber::Character
        });
    };
    if !rest.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadNumber::Character);
    }
    if rest.starts_with('0') {
        return Err(BadNumber::CountryZero);
    }
    match rest.len() {
        0..=3 => Err(BadNumber::Short),
        4..=6 if emergency_after_country(rest) => Err(BadNumber::Short),
        4..=6 => Err(BadNumber::TooShort),
        7..=15 => Ok(()),
        _ => Err(BadNumber::TooLong),
    }
}

/// A country code with nothing but an emergency number behind it, as `+1911` or `+44999`.
fn emergency_after_country(digits: &str) -> bool {
    (1..=3).any(|code| {
        digits
            .get(code..)
            .is_some_and(|rest| matches!(rest, "911" | "112" | "999" | "110" | "000"))
    })
}

/// What numbers may be dialed.
#[derive(Debug, Clone, Default)]
pub struct NumberRules {
    /// Prefixes that are dialed without further checks, as `+999` for load tests. Empty in
    /// production.
    pub test_prefixes: Vec<String>,
    /// The countries that may be dialed; empty means any.
    pub countries: Vec<phonenumber::country::Id>,
    /// Whether premium-rate and shared-cost numbers may be dialed.
    pub premium: bool,
}

/// Why a well-formed number is not dialed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberClass {
    /// No such number can exist.
    Invalid,
    /// An emergency or short number with a country code.
    Emergency,
    /// Premium rate or shared cost.
    Premium,
    /// Its country is not allowed.
    Country,
}

/// Whether `number` may be dialed under `rules`.
///
/// # Errors
///
/// The class that forbids it.
pub fn allowed(number: &E164, rules: &NumberRules) -> Result<(), NumberClass> {
    if rules
        .test_prefixes
        .iter()
        .any(|prefix| number.0.starts_with(prefix.as_str()))
    {
        return Ok(());
    }
    let Ok(parsed) = phonenumber::parse(None, &number.0) else {
        return Err(NumberClass::Invalid);
    };
    // The operator's own rule is the clearer answer, so it comes first.
    let country = parsed.country().id();
    if !rules.countries.is_empty() && !country.is_some_and(|id| rules.countries.contains(&id)) {
        return Err(NumberClass::Country);
    }
    if !phonenumber::is_valid(&parsed) || keeps_trunk_zero(&number.0, &parsed) {
        return Err(NumberClass::Invalid);
    }
    match parsed.number_type(&phonenumber::metadata::DATABASE) {
        Type::Emergency | Type::ShortCode | Type::StandardRate => Err(NumberClass::Emergency),
        Type::PremiumRate | Type::SharedCost if !rules.premium => Err(NumberClass::Premium),
        Type::FixedLine
        | Type::Mobile
        | Type::FixedLineOrMobile
        | Type::TollFree
        | Type::PremiumRate
        | Type::SharedCost
        | Type::PersonalNumber
        | Type::Voip
        | Type::Pager
        | Type::Uan
        | Type::Voicemail
        | Type::Carrier
        | Type::NoInternational
        | Type::Unknown => Ok(()),
    }
}

/// A national trunk zero after the country code (`+490…`) is dialed wrongly by some
/// carriers; only countries whose numbers really have it (Italy) keep it.
fn keeps_trunk_zero(text: &str, parsed: &phonenumber::PhoneNumber) -> bool {
    let code = parsed.country().code();
    let national = text.strip_prefix(&format!("+{code}")).unwrap_or(text);
    national.starts_with('0') && !matches!(code, 39 | 225 | 241 | 242 | 378 | 379)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> E164 {
        text.parse().unwrap()
    }

    #[test]
    fn r37_r39_r40_what_is_no_e164_is_refused_by_kind() {
        for (text, kind) in [
            ("", BadNumber::Empty),
            ("442079460123", BadNumber::NoPlus),
            ("44-7700-900123", BadNumber::Separators),
            ("2025550142", BadNumber::NoPlus),
            (" +1 (202) 555-0142 ", BadNumber::Separators),
            ("+1.202.555.0142", BadNumber::Separators),
            ("tel:+44-20-7946-0123", BadNumber::Address),
            ("tel:+44-20-7946-0123;ext=1234", BadNumber::Address),
            ("sip:+12025550142@pbx.example", BadNumber::Address),
            ("+12025550142@pbx.example", BadNumber::Address),
            ("+12025550142;user=phone", BadNumber::Extension),
            ("+12025550142,1234", BadNumber::Extension),
            ("+12025550142x12", BadNumber::Extension),
            ("+12025550142?x=1", BadNumber::Extension),
            ("+12025550142%40h", BadNumber::Address),
            ("+12025550142\r\nX-A: b", BadNumber::NotAscii),
            ("+1202555014\u{0}2", BadNumber::NotAscii),
            ("+١٢٠٢٥٥٥٠١٤٢", BadNumber::NotAscii),
            ("\u{202d}+12025550142\u{202c}", BadNumber::NotAscii),
            ("+1²025550142", BadNumber::NotAscii),
            ("0044 20 7946 0123", BadNumber::InternationalPrefix),
            ("011 44 20 7946 0123", BadNumber::InternationalPrefix),
            ("001-99-00-12-34", BadNumber::InternationalPrefix),
            ("+0012025550142", BadNumber::CountryZero),
            ("+44 (0)20 7946 0123", BadNumber::Separators),
            ("+1234567890123456", BadNumber::TooLong),
            ("+123456", BadNumber::TooShort),
            ("+12025a50142", BadNumber::Character),
        ] {
            assert_eq!(text.parse::<E164>(), Err(kind), "{text:?}");
        }
    }

    #[test]
    fn r41_emergency_and_short_numbers_are_named_as_such() {
        for text in [
            "911", "112", "999", "000", "110", "933", "988", "211", "116117", "116123", "+1911",
            "+44999", "+49112", "9 1 1",
        ] {
            assert_eq!(text.parse::<E164>(), Err(BadNumber::Short), "{text}");
        }
        assert_eq!(
            "0049112".parse::<E164>(),
            Err(BadNumber::InternationalPrefix)
        );
        let rules = NumberRules::default();
        for text in [
            "+4791100000",
            "+12025550112",
            "+442079460999",
            "+12025550100",
        ] {
            assert_eq!(allowed(&number(text), &rules), Ok(()), "{text}");
        }
    }

    #[test]
    fn r42_zeros_are_not_guessed_away() {
        let rules = NumberRules::default();
        assert_eq!(
            allowed(&number("+4903023125456"), &rules),
            Err(NumberClass::Invalid)
        );
        assert_eq!(allowed(&number("+390612345678"), &rules), Ok(()));
        assert_eq!(allowed(&number("+493023125456"), &rules), Ok(()));
    }

    #[test]
    fn classes_that_are_not_dialed() {
        let rules = NumberRules::default();
        assert_eq!(
            allowed(&number("+99912345678"), &rules),
            Err(NumberClass::Invalid)
        );
        assert_eq!(
            allowed(&number("+19002345678"), &rules),
            Err(NumberClass::Premium)
        );
        let test = NumberRules {
            test_prefixes: vec!["+999".into()],
            ..NumberRules::default()
        };
        assert_eq!(allowed(&number("+99912345678"), &test), Ok(()));
        let only_uk = NumberRules {
            countries: vec![phonenumber::country::GB],
            ..NumberRules::default()
        };
        assert_eq!(
            allowed(&number("+12025550100"), &only_uk),
            Err(NumberClass::Country)
        );
        assert_eq!(allowed(&number("+442079460123"), &only_uk), Ok(()));
    }

    #[test]
    fn a_number_is_never_shown() {
        let n = number("+12025550100");
        assert_eq!(format!("{n} {n:?}"), "+1********00 +1********00");
        assert_eq!(number("+1234567").mask(), "+1****67");
    }
}
