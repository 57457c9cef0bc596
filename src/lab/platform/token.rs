//! Access tokens: who may do what. Checked in the order and with the texts of
//! livekit-server (`pkg/service/auth.go`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;

use super::settings::Settings;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VideoGrant {
    pub(super) room_create: bool,
    pub(super) room_list: bool,
    pub(super) room_admin: bool,
    pub(super) room: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SipGrant {
    pub(super) admin: bool,
    pub(super) call: bool,
}

/// What a valid token allows; nothing without a token.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Claims {
    pub(super) video: VideoGrant,
    pub(super) sip: SipGrant,
    iss: String,
    exp: Option<f64>,
    nbf: Option<f64>,
}

impl Claims {
    /// Participants and dispatches need a token for exactly this room.
    pub(super) fn administers(&self, room: &str) -> bool {
        self.video.room_admin && self.video.room == room
    }
}

/// Reads the `Authorization` header; the plain text of a 401 otherwise. No header at all
/// passes here and fails at the grant, as on the real server.
pub(super) fn claims(
    settings: &Settings,
    wall_micros: i64,
    authorization: Option<&str>,
) -> Result<Claims, String> {
    let Some(header) = authorization.filter(|header| !header.is_empty()) else {
        return Ok(Claims::default());
    };
    let Some(token) = header.strip_prefix("Bearer ") else {
        return Err("invalid authorization header. Must start with Bearer ".to_owned());
    };
    let Some((signed, signature, claims)) = parse(token) else {
        return Err("invalid authorization token".to_owned());
    };
    let Some(secret) = settings.keys.secret(&claims.iss) else {
        return Err(format!("invalid API key: {}", claims.iss));
    };
    // The real server echoes the token, so this one does: whoever logs a body of a 401
    // logs a credential.
    let refuse = |why: &str| Err(format!("invalid token: {token}, error: {why}"));
    let genuine = keyed(secret)
        .chain_update(signed)
        .verify_slice(&signature)
        .is_ok();
    if !genuine {
        return refuse("token signature is invalid: signature is invalid");
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 with microseconds fit into 52 bits"
    )]
    let now = wall_micros as f64 / 1e6;
    let leeway = settings.token_leeway.as_secs_f64();
    if claims.exp.is_some_and(|exp| now >= exp + leeway) {
        return refuse("token has invalid claims: token is expired");
    }
    if claims.nbf.is_some_and(|nbf| now < nbf - leeway) {
        return refuse("token has invalid claims: token is not valid yet");
    }
    Ok(claims)
}

fn parse(token: &str) -> Option<(&str, Vec<u8>, Claims)> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, body) = signed.split_once('.')?;
    let header: BTreeMap<String, Value> =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    if header.get("alg").and_then(Value::as_str) != Some("HS256") {
        return None;
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
    Some((signed, signature, claims))
}

fn keyed(secret: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length")
}

/// A JSON Web Token (HS256) over `claims`. Webhooks are signed with it; tests make the
/// tokens of requests with it.
#[must_use]
pub fn sign(secret: &str, claims: &Value) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "typ": "JWT"}).to_string());
    let body = URL_SAFE_NO_PAD.encode(claims.to_string());
    let signed = format!("{header}.{body}");
    let signature = keyed(secret)
        .chain_update(signed.as_bytes())
        .finalize()
        .into_bytes();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::super::settings::{DEV_KEY, DEV_SECRET};
    use super::*;

    fn check(exp: i64, nbf: i64, now: i64) -> Result<Claims, String> {
        let settings = Settings::default();
        let token = sign(
            DEV_SECRET,
            &json!({"iss": DEV_KEY, "exp": exp, "nbf": nbf, "sip": {"call": true}}),
        );
        claims(&settings, now * 1_000_000, Some(&format!("Bearer {token}")))
    }

    // Seen on livekit-server 1.13.5: 58 s after the end accepted, 62 s refused; 55 s
    // before the beginning accepted, 70 s refused.
    #[test]
    fn a_token_has_sixty_seconds_of_leeway_at_both_ends() {
        assert!(check(1000, 0, 1058).is_ok_and(|claims| claims.sip.call));
        assert!(check(1000, 0, 1062).is_err_and(|text| text.ends_with("token is expired")));
        assert!(check(9000, 1055, 1000).is_ok());
        assert!(check(9000, 1070, 1000).is_err_and(|text| text.ends_with("not valid yet")));
    }

    #[test]
    fn another_secret_is_refused_and_the_token_echoed() {
        let token = sign("another", &json!({"iss": DEV_KEY, "exp": 1000}));
        let text = claims(&Settings::default(), 0, Some(&format!("Bearer {token}")))
            .expect_err("a wrong signature is refused");
        assert!(text.contains(&token));
        assert!(text.ends_with("token signature is invalid: signature is invalid"));
    }

    #[test]
    fn no_header_allows_nothing_and_is_no_bad_token() {
        let claims = claims(&Settings::default(), 0, None).expect("no header is no bad token");
        assert!(!claims.sip.call && !claims.video.room_create);
    }
}
