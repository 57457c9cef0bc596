//! `[livekit]`: the platform, and how it is spoken to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::SecretString;

use super::content;
use super::fault::{Fault, Faults, Wrong};
use super::layer::{KeyPath, Origin};
use super::reader::{Reader, Section};
use super::typed::{Shape, filled, text};
use super::units::{HOUR, MILLISECOND, MINUTE, SECOND};

/// The platform, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct LiveKit {
    /// Its base URL, `http` or `https`, without a slash at the end.
    pub url: String,
    /// The name of the API key; `None` if none is configured.
    pub api_key: Option<String>,
    /// The secret of the API key; `None` if none is configured.
    pub api_secret: Option<SecretString>,
    /// Certificate authorities that are trusted beside the public ones.
    pub roots: Vec<CertificateDer<'static>>,
    /// How long a connection may take, TLS included.
    pub connect_timeout: Duration,
    /// The timeout of every request but the dial.
    pub request_timeout: Duration,
    /// How often a request is sent again that is safe to repeat.
    pub request_retries: u32,
    /// The pause before the first of those; doubles.
    pub retry_backoff: Duration,
    /// The longest answer that is read, in bytes.
    pub answer_max_bytes: usize,
    /// How long the token of a request other than the dial is valid.
    pub token_ttl: Duration,
    /// How long LiveKit takes a token after its end.
    pub token_leeway: Duration,
    /// How far LiveKit's clock may be from ours.
    pub clock_skew_max: Duration,
    /// How long a trunk's id is kept before its name is looked up again.
    pub trunk_cache: Duration,
}

/// A key and its secret: both, or nothing can be signed.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name of the API key.
    pub api_key: String,
    /// Its secret.
    pub api_secret: SecretString,
}

impl LiveKit {
    /// Key and secret, which everything that speaks to the platform needs.
    ///
    /// # Errors
    ///
    /// A fault for each of the two that is not configured.
    pub fn credentials(&self) -> Result<Credentials, Faults> {
        if let (Some(api_key), Some(api_secret)) = (&self.api_key, &self.api_secret) {
            return Ok(Credentials {
                api_key: api_key.clone(),
                api_secret: api_secret.clone(),
            });
        }
        let missing = |key: &str, variable: &str| Fault {
            origin: None,
            key: KeyPath::dotted(key),
            what: "is missing".to_owned(),
            remedy: format!("set it, or {variable} in the environment"),
        };
        let mut faults = Vec::new();
        if self.api_key.is_none() {
            faults.push(missing("livekit.api_key", "LIVEKIT_API_KEY"));
        }
        if self.api_secret.is_none() {
            faults.push(missing("livekit.api_secret", "LIVEKIT_API_SECRET"));
        }
        Err(Faults::all(faults))
    }

    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("livekit");
        Self {
            url: s.text("url", url),
            api_key: s.optional_text("api_key", filled),
            api_secret: secret(&mut s, "api_secret", "api_secret_file"),
            roots: roots(&mut s, "ca_file"),
            connect_timeout: s.duration("connect_timeout", MILLISECOND..=MINUTE),
            request_timeout: s.duration("request_timeout", MILLISECOND..=MINUTE * 5),
            request_retries: s.number("request_retries", 0..=10),
            retry_backoff: s.duration("retry_backoff", MILLISECOND..=MINUTE),
            answer_max_bytes: s.number("answer_max_bytes", 65_536..=268_435_456),
            token_ttl: s.duration("token_ttl", SECOND..=HOUR),
            token_leeway: s.duration("token_leeway", Duration::ZERO..=HOUR),
            clock_skew_max: s.duration("clock_skew_max", MILLISECOND..=MINUTE),
            trunk_cache: s.duration("trunk_cache", MILLISECOND..=HOUR * 24),
        }
    }
}

/// LiveKit's tools write `ws` and `wss`; its API is the same host over `http` and `https`.
fn url(text: &str) -> Result<String, Wrong> {
    let remedy = "write it as \"https://livekit.example.com\" (or http, ws, wss)";
    // What was written is not repeated: it may carry a password.
    let wrong = |what: &str| Wrong::new(what, remedy);
    let swapped = match text.split_once("://") {
        Some(("ws" | "http", rest)) => format!("http://{rest}"),
        Some(("wss" | "https", rest)) => format!("https://{rest}"),
        Some(_) | None => return Err(wrong("does not begin with http, https, ws or wss")),
    };
    let parsed = reqwest::Url::parse(&swapped).map_err(|_| wrong("is no URL"))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(wrong("carries a user or a password"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(wrong("carries a query or a fragment"));
    }
    Ok(swapped.trim_end_matches('/').to_owned())
}

/// A secret that is written down, or the name of a file that holds it. The one from the
/// higher layer wins; both in one layer is a fault, since nobody can tell which is meant.
pub(super) fn secret(s: &mut Section<'_>, key: &str, file_key: &str) -> Option<SecretString> {
    let direct = s.optional(key, Shape::Secret, |value| {
        filled(text(value)?).map(SecretString::from)
    });
    let file = s.optional_text(file_key, |path| filled(path).map(PathBuf::from));
    let layer = |origin: Option<Origin>| origin.map_or(0, |origin| origin.layer());
    let (direct_layer, file_layer) = (layer(s.origin(key)), layer(s.origin(file_key)));
    if direct_layer > 0 && direct_layer == file_layer {
        let what = format!("is set beside {file_key}");
        s.fault(key, Wrong::new(what, "keep one of the two"));
    }
    // A file that is covered is not opened: it need not be there.
    let Some(path) = file.filter(|_| file_layer > direct_layer) else {
        return direct;
    };
    match secret_in(&path) {
        Ok(secret) => Some(secret),
        Err(wrong) => {
            s.fault(file_key, wrong);
            direct
        }
    }
}

/// The certificates in the file that `key` names; none without it.
fn roots(s: &mut Section<'_>, key: &str) -> Vec<CertificateDer<'static>> {
    let Some(path) = s.optional_text(key, |path| filled(path).map(PathBuf::from)) else {
        return Vec::new();
    };
    let bytes = match content::of(&path) {
        Ok(bytes) => bytes,
        Err(wrong) => {
            s.fault(key, wrong.of(&path));
            return Vec::new();
        }
    };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let what = match read {
        Ok(found) if !found.is_empty() => return found,
        Ok(_) => format!("{} has no certificate in it", path.display()),
        Err(error) => format!("{} cannot be read: {error}", path.display()),
    };
    let remedy = "name a PEM file with the certificates of LiveKit's own authority";
    s.fault(key, Wrong::new(what, remedy));
    Vec::new()
}

fn secret_in(path: &Path) -> Result<SecretString, Wrong> {
    let text = content::text_of(path).map_err(|wrong| wrong.of(path))?;
    filled(&text).map(SecretString::from).map_err(|_| {
        let what = format!("{} is empty", path.display());
        Wrong::new(what, "write the secret into it")
    })
}
