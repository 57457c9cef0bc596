//! Targets that need nothing but their input: a panic fails, and so does an answer that must
//! not be given.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use prost::Message as _;
use ringonce::api::{place_call, proto};
use ringonce::inbox::project::{Said, read};
use ringonce::inbox::redact::redact;
use ringonce::inbox::token::Refusal;
use ringonce::model::observation::Call;
use ringonce::model::verdict::Verdict;
use ringonce::provider::classify::{DialContext, overloaded, trunk_missing, verdict};
use ringonce::provider::twirp;
use ringonce::provider::wire::Answer;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;

use super::corpus::{self, Corpus, NOW};
use super::mutate::Mutator;
use crate::world::credentials;

/// A target: one input, made and judged; whether it got past the first checks.
pub(super) type Target = fn(&mut Mutator, &Corpus) -> bool;

/// Every target by name.
pub(super) const TARGETS: [(&str, Target); 6] = [
    ("token", token),
    ("claims", claims),
    ("event", event),
    ("event-bytes", event_bytes),
    ("twirp", twirp_answer),
    ("request", request),
];

/// A bent token is taken only if it is a genuine one to the letter.
fn token(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let (genuine, other) = (chance.of(&corpus.tokens), chance.of(&corpus.tokens));
    let bent = chance.bytes(genuine.as_bytes(), other.as_bytes());
    let header = (chance.below(50) > 0).then_some(bent.as_slice());
    let checked = corpus.signers.check(header, corpus::now());
    if checked.is_ok() {
        let text = std::str::from_utf8(&bent).unwrap();
        let token = text.strip_prefix("Bearer ").unwrap_or(text).trim();
        assert!(
            corpus.tokens.iter().any(|known| **known == *token),
            "a forged token"
        );
    }
    matches!(checked, Ok(_) | Err(Refusal::Signature))
}

/// Claims of any shape, signed: taken only within their time, and with a hash.
fn claims(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let sound = chance.of(&corpus.claims);
    let bent = if chance.below(3) == 0 {
        chance.text(sound, sound)
    } else {
        let value: Value = serde_json::from_str(sound).unwrap();
        chance.json(&value, &value).to_string()
    };
    let header = match chance.below(8) {
        0 => chance.text("{\"alg\":\"HS256\"}", "none"),
        _ => "{\"alg\":\"HS256\"}".to_owned(),
    };
    let message = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(&bent)
    );
    let own = credentials();
    let mut mac = Hmac::<Sha256>::new_from_slice(own.secret.expose_secret().as_bytes()).unwrap();
    mac.update(message.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    let token = format!("{message}.{signature}");
    let checked = corpus.signers.check(Some(token.as_bytes()), corpus::now());
    if let Ok(signed) = &checked {
        // Nothing else: what else is in a token may be numbers that no type of ours holds.
        let claims: Claims = serde_json::from_str(&bent).unwrap();
        assert_eq!(claims.iss, signed.account);
        #[expect(clippy::cast_precision_loss, reason = "seconds of this century")]
        let now = NOW as f64;
        let exp = claims.exp;
        assert!(exp + 60.0 > now, "taken after its end: {exp}");
        let nbf = claims.nbf.unwrap_or(now);
        assert!(nbf <= now + 60.0, "taken before its begin: {nbf}");
        assert_eq!(claims.sha256.len(), 44);
    }
    checked.is_ok()
}

/// What a token must say to be taken.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    exp: f64,
    nbf: Option<f64>,
    sha256: String,
}

/// An event of any shape is read without a panic, says the same twice, and keeps no number
/// under a name that holds numbers.
fn event(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let (known, other) = (chance.of(&corpus.events), chance.of(&corpus.events));
    judge(chance.json(known, other))
}

/// The same from bytes, which may still be JSON.
fn event_bytes(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let (known, other) = (chance.of(&corpus.events), chance.of(&corpus.events));
    let bent = chance.bytes(known.to_string().as_bytes(), other.to_string().as_bytes());
    serde_json::from_slice(&bent).is_ok_and(judge)
}

fn judge(mut event: Value) -> bool {
    redact(&mut event, &|_| "k".to_owned());
    assert!(!holds_number(&event), "a number is kept");
    let said = read(&event, corpus::now(), &corpus::deployment());
    if let Said::Seen(sight) = &said {
        let mut call = Call::default();
        call.merge(&sight.seen);
        assert!(
            !call.merge(&sight.seen),
            "the same, and it says something new"
        );
    }
    matches!(said, Said::Seen(_))
}

/// Whether a number stands where LiveKit writes one.
fn holds_number(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, field)| {
            let named = matches!(name.as_str(), "sip.phoneNumber" | "sip.trunkPhoneNumber");
            let text = field.as_str().unwrap_or_default();
            let text = text.strip_prefix('+').unwrap_or(text);
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            (named && digits >= 7) || holds_number(field)
        }),
        Value::Array(items) => items.iter().any(holds_number),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// An answer of any shape: answered only by a 200, undialed never by one, and never against a
/// carrier's status.
fn twirp_answer(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let place = chance.below(corpus.answers.len());
    let (status, body) = &corpus.answers[place];
    let (_, other) = &corpus.answers[chance.below(corpus.answers.len())];
    let (status, kind, body) = match chance.below(6) {
        0 => (
            200,
            twirp::PROTOBUF,
            chance.bytes(&corpus.lists[2], &corpus.lists[1]),
        ),
        1 => {
            let status = u16::try_from(chance.below(700)).unwrap();
            (status, "application/json", body.clone())
        }
        2 => (*status, "application/json", chance.bytes(body, other)),
        _ => {
            let [value, other] = [body, other].map(|b| serde_json::from_slice(b).unwrap());
            let bent = chance.json(&value, &other).to_string().into_bytes();
            (*status, "application/json", bent)
        }
    };
    let answer = twirp::read(status, Some(kind), body);
    let dial = DialContext {
        elapsed: Duration::from_millis(chance.number() % 100_000),
        ringing_timeout: Duration::from_secs(45),
        ring_slack: Duration::from_secs(8),
        fast_reject: Duration::from_secs(1),
        stop_recorded: chance.below(4) == 0,
    };
    let told = match &answer {
        Answer::Refused(refusal) => refusal.sip_code.filter(|code| (300..700).contains(code)),
        Answer::Done(_) | Answer::Strange(_) | Answer::Lost(_) | Answer::NotSent(_) => None,
    };
    match verdict(&answer, &dial) {
        Verdict::Answered(_) => assert_eq!(status, 200),
        Verdict::NotDialed(_) => {
            assert!(
                matches!(status, 400 | 401 | 404 | 412 | 413 | 500 | 503),
                "{status}"
            );
            assert_eq!(told, None, "a carrier answered");
            assert!(!trunk_missing(&answer) || status == 404);
        }
        Verdict::NotConnected(_) => assert_ne!(status, 200),
        Verdict::Uncertain(_) => assert_eq!(told, None, "a carrier's status says what it was"),
    }
    let _whether = overloaded(&answer);
    matches!(answer, Answer::Refused(_) | Answer::Done(_))
}

/// A request of any shape is parsed or refused, and its number is in no message.
fn request(chance: &mut Mutator, corpus: &Corpus) -> bool {
    let (sound, other) = (chance.of(&corpus.requests), chance.of(&corpus.requests));
    // Half of them keep their shape, and have a bent text in one of their fields.
    let keeps_shape = chance.below(2) == 0;
    let bent = if keeps_shape {
        sound.to_vec()
    } else {
        chance.bytes(sound, other)
    };
    let Ok(mut message) = proto::PlaceCallRequest::decode(bent.as_slice()) else {
        return false;
    };
    if keeps_shape {
        bend_field(chance, &mut message);
    }
    let parsed = place_call(message.clone(), &corpus.limits, corpus::now());
    let number = std::mem::take(&mut message.to);
    let rest = message.encode_to_vec();
    let alone = number.len() > 6 && !contains(&rest, number.as_bytes());
    match parsed {
        Ok(request) => {
            assert!(number.starts_with('+') && number.len() <= 16, "no number");
            assert!(request.spec.ringing_ms >= 5_000 && request.spec.ringing_ms <= 80_000);
            let said = format!("{request:?}");
            assert!(!alone || !said.contains(&number), "a number is shown");
        }
        Err(wrong) => {
            let said = format!("{wrong:?}");
            assert!(!alone || !said.contains(&number), "a number is shown");
            return false;
        }
    }
    true
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Another text in one field, or another number in one.
fn bend_field(chance: &mut Mutator, message: &mut proto::PlaceCallRequest) {
    let number = chance.number();
    let small = i32::try_from(number % 20).unwrap_or_default() - 5;
    let field = match chance.below(14) {
        0 => &mut message.workspace,
        1 => &mut message.attempt_id,
        2 => &mut message.contact_id,
        3 => &mut message.outreach_id,
        4 => &mut message.campaign_id,
        5 => &mut message.from,
        6 => &mut message.trunk,
        7 => &mut message.dial_digits,
        8 => &mut message.contact_time_zone,
        9 => return message.priority = small,
        10 => return message.keep = small,
        11 => {
            let seconds = i64::from_ne_bytes(number.to_ne_bytes());
            let nanos = small;
            message.expire_time = Some(pbjson_types::Timestamp { seconds, nanos });
            return message.ringing_timeout = Some(pbjson_types::Duration { seconds, nanos });
        }
        _ => &mut message.to,
    };
    *field = chance.text(field, "+12025550199");
}
