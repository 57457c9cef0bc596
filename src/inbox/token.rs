//! Who signed a webhook, and over which bytes: pure.
//!
//! LiveKit signs with a JWT (RFC 7519) in `Authorization`, without "Bearer "; some senders in
//! front of it add that word, so it is taken too. Taken are HS256 alone, a key that is
//! chosen by `iss` and never by trying, an `exp` that is there, and a `sha256` that is the
//! standard base64 of the hash of the raw body. Everything else is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Number;
use sha2::{Digest, Sha256};

use crate::model::time::Time;

/// The keys that may sign, and how far their clocks may be from ours.
pub struct Signers {
    keys: BTreeMap<String, SecretString>,
    leeway: Duration,
}

impl fmt::Debug for Signers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signers")
            .field("keys", &self.keys.keys())
            .field("leeway", &self.leeway)
            .finish()
    }
}

/// A token that was signed by a key of ours, at this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The key's name: the account.
    pub account: String,
    body: [u8; 32],
}

/// Why a webhook is refused. None of it says anything of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// There is no token.
    #[error("there is no Authorization header")]
    Missing,
    /// It is no JWT, or not of HS256, or lacks a claim.
    #[error("the token is no JWT of HS256 with iss, exp and sha256")]
    Malformed,
    /// Its `iss` is no key of ours.
    #[error("the token is signed by a key that is not configured (livekit.api_key, webhook_keys)")]
    UnknownKey,
    /// Its signature is not that key's.
    #[error("the token's signature is not that of its key: is the secret the right one?")]
    Signature,
    /// It is not valid yet.
    #[error("the token is not valid yet: do the clocks agree?")]
    Early,
    /// It is not valid any more.
    #[error("the token is not valid any more: do the clocks agree, or is it replayed?")]
    Late,
    /// It is for other bytes.
    #[error("the body is not the one that was signed: does a proxy rewrite it?")]
    Body,
}

impl Refusal {
    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Early => "early",
            Self::Late => "late",
            Self::Body => "body",
        }
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    exp: Number,
    nbf: Option<Number>,
    sha256: String,
}

impl Signers {
    /// With these keys by name.
    #[must_use]
    pub const fn new(keys: BTreeMap<String, SecretString>, leeway: Duration) -> Self {
        Self { keys, leeway }
    }

    /// Checks the token of an `Authorization` header, before the body is read: who cannot
    /// sign cannot make us read either.
    ///
    /// # Errors
    ///
    /// See [`Refusal`].
    pub fn check(&self, authorization: Option<&[u8]>, now: Time) -> Result<Signed, Refusal> {
        let text = authorization.filter(|text| !text.is_empty());
        let text = text.ok_or(Refusal::Missing)?;
        let text = std::str::from_utf8(text).map_err(|_| Refusal::Malformed)?;
        let token = text.strip_prefix("Bearer ").unwrap_or(text).trim();
        let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Refusal::Malformed)?;
        let header: Header = part(header)?;
        if header.alg != "HS256" {
            return Err(Refusal::Malformed);
        }
        let claims: Claims = part(claims)?;
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| Refusal::Malformed)?;
        let secret = self.keys.get(&claims.iss).ok_or(Refusal::UnknownKey)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
            .map_err(|_| Refusal::Signature)?;
        mac.update(message.as_bytes());
        // In constant time: how much of it was right must not show.
        mac.verify_slice(&signature)
            .map_err(|_| Refusal::Signature)?;
        self.in_time(&claims, now)?;
        let body = STANDARD
            .decode(&claims.sha256)
            .ok()
            .and_then(|hash| <[u8; 32]>::try_from(hash).ok())
            .ok_or(Refusal::Malformed)?;
        Ok(Signed {
            account: claims.iss,
            body,
        })
    }

    fn in_time(&self, claims: &Claims, now: Time) -> Result<(), Refusal> {
        let exp = moment(&claims.exp).ok_or(Refusal::Malformed)?;
        if now >= exp.plus(self.leeway) {
            return Err(Refusal::Late);
        }
        if let Some(nbf) = &claims.nbf {
            let nbf = moment(nbf).ok_or(Refusal::Malformed)?;
            if now.plus(self.leeway) < nbf {
                return Err(Refusal::Early);
            }
        }
        Ok(())
    }
}

impl Signed {
    /// Checks that these are the bytes that were signed, and gives their hash.
    ///
    /// # Errors
    ///
    /// [`Refusal::Body`].
    pub fn over(&self, body: &[u8]) -> Result<[u8; 32], Refusal> {
        let hash: [u8; 32] = Sha256::digest(body).into();
        let differ = hash
            .iter()
            .zip(&self.body)
            .fold(0_u8, |differ, (a, b)| differ | (a ^ b));
        if differ == 0 {
            Ok(hash)
        } else {
            Err(Refusal::Body)
        }
    }
}

fn part<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    let json = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| Refusal::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| Refusal::Malformed)
}

/// A `NumericDate`: seconds, with or without a fraction (RFC 7519, 2).
fn moment(number: &Number) -> Option<Time> {
    if let Some(secs) = number.as_i64() {
        return Some(Time::from_secs(secs));
    }
    let secs = number.as_f64().filter(|secs| secs.abs() < 1e15)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "its size was checked, and what is below a microsecond matters to nobody"
    )]
    let micros = (secs * 1e6) as i64;
    Some(Time::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_800_000_000;
    const BODY: &[u8] = br#"{"event":"room_finished",  "id":"EV_1"}"#;

    fn signers() -> Signers {
        let keys = [("APIold", "s1"), ("APInew", "s2")]
            .map(|(key, secret)| (key.to_owned(), SecretString::from(secret)));
        Signers::new(keys.into(), Duration::from_mins(1))
    }

    fn signed(secret: &str, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("{message}.{signature}")
    }

    fn claims() -> Value {
        json!({
            "iss": "APIold",
            "nbf": NOW,
            "exp": NOW + 300,
            "sha256": STANDARD.encode(Sha256::digest(BODY)),
        })
    }

    fn check(token: &str) -> Result<(), Refusal> {
        let signed = signers().check(Some(token.as_bytes()), Time::from_secs(NOW))?;
        signed.over(BODY).map(|_| ())
    }

    fn with(change: impl FnOnce(&mut Value)) -> Result<(), Refusal> {
        let mut claims = claims();
        change(&mut claims);
        check(&signed("s1", &json!({"alg": "HS256"}), &claims))
    }

    #[test]
    fn r31_the_key_is_chosen_by_its_name() {
        let from = |iss: &str, secret: &str| {
            let mut claims = claims();
            claims["iss"] = iss.into();
            check(&signed(secret, &json!({"alg": "HS256"}), &claims))
        };
        assert_eq!(from("APIold", "s1"), Ok(()));
        assert_eq!(from("APInew", "s2"), Ok(()));
        assert_eq!(from("APIold", "s2"), Err(Refusal::Signature));
        assert_eq!(from("APIother", "s1"), Err(Refusal::UnknownKey));
        let nameless = with(|claims| {
            claims.as_object_mut().unwrap().remove("iss");
        });
        assert_eq!(nameless, Err(Refusal::Malformed));
    }

    #[test]
    fn r29_clocks_may_differ_by_the_leeway_and_no_more() {
        let at = |nbf: i64, exp: i64| {
            with(|claims| {
                claims["nbf"] = (NOW + nbf).into();
                claims["exp"] = (NOW + exp).into();
            })
        };
        for (nbf, exp) in [(1, 301), (30, 330), (59, 359), (-300, -30)] {
            assert_eq!(at(nbf, exp), Ok(()), "{nbf} {exp}");
        }
        assert_eq!(at(120, 420), Err(Refusal::Early));
        assert_eq!(at(-700, -400), Err(Refusal::Late));
        assert_eq!(with(|c| c["iat"] = (NOW + 90).into()), Ok(()));
        assert_eq!(with(|c| c["exp"] = "soon".into()), Err(Refusal::Malformed));
        let endless = with(|claims| {
            claims.as_object_mut().unwrap().remove("exp");
        });
        assert_eq!(endless, Err(Refusal::Malformed));
        assert_eq!(with(|c| c["exp"] = json!(1_800_000_300.5)), Ok(()));
        assert_eq!(with(|c| c["exp"] = json!(1e300)), Err(Refusal::Malformed));
    }

    #[test]
    fn r29_no_other_algorithm_is_taken() {
        for alg in ["none", "HS512", "hs256", "RS256", ""] {
            let token = signed("s1", &json!({"alg": alg}), &claims());
            assert_eq!(check(&token), Err(Refusal::Malformed), "{alg}");
        }
        let token = signed("s1", &json!({"alg": "HS256"}), &claims());
        let unsigned = token.rsplit_once('.').unwrap().0;
        assert_eq!(check(&format!("{unsigned}.")), Err(Refusal::Signature));
        assert_eq!(check(unsigned), Err(Refusal::Malformed));
    }

    #[test]
    fn r23_the_hash_is_over_the_raw_bytes_in_standard_base64() {
        let token = signed("s1", &json!({"alg": "HS256"}), &claims());
        let over = |body: &[u8]| {
            let signed = signers().check(Some(token.as_bytes()), Time::from_secs(NOW));
            signed.unwrap().over(body).map(|_| ())
        };
        assert_eq!(over(BODY), Ok(()));
        assert_eq!(over(&[BODY, b"\n"].concat()), Err(Refusal::Body));
        assert_eq!(
            over(br#"{"event":"room_finished","id":"EV_1"}"#),
            Err(Refusal::Body)
        );
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(BODY));
        assert_eq!(
            with(|claims| claims["sha256"] = hash.into()),
            Err(Refusal::Malformed)
        );
    }

    #[test]
    fn r26_the_word_bearer_is_taken_and_a_missing_header_is_not() {
        let token = signed("s1", &json!({"alg": "HS256"}), &claims());
        assert_eq!(check(&format!("Bearer {token}")), Ok(()));
        let none = signers().check(None, Time::from_secs(NOW));
        assert_eq!(none, Err(Refusal::Missing));
        assert_eq!(check(""), Err(Refusal::Missing));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_taken_that_nobody_signed(
            noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            at in 0_usize..400,
            flip in 1_u8..=255,
        ) {
            let now = Time::from_secs(NOW);
            proptest::prop_assert!(signers().check(Some(&noise), now).is_err());
            let mut token = signed("s1", &json!({"alg": "HS256"}), &claims()).into_bytes();
            let at = at % token.len();
            let whole = token.clone();
            token[at] ^= flip;
            // The last digits of base64 may stand for the same bytes; all else is refused.
            if let Ok(signed) = signers().check(Some(&token), now) {
                let last = whole.len() - 1;
                proptest::prop_assert!(at == last || token[at].is_ascii_whitespace());
                proptest::prop_assert!(signed.over(BODY).is_ok());
            }
        }
    }
}
