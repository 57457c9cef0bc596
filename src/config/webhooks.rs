//! `[webhooks]` and `[webhook_keys.NAME]`: what the platform tells us, and the limits of it.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::fault::Wrong;
use super::livekit::secret;
use super::reader::Reader;
use super::units::{DAY, HOUR, MILLISECOND, MINUTE, SECOND};

/// What the platform tells us, and the limits of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhooks {
    /// How long before its begin and after its end a token is taken.
    pub token_leeway: Duration,
    /// The longest body, in bytes.
    pub body_max_bytes: usize,
    /// The longest head of a request, in bytes.
    pub head_max_bytes: usize,
    /// How long a head, and then a body, may take to arrive.
    pub read_timeout: Duration,
    /// Connections that may be open.
    pub connections_max: usize,
    /// Signed webhooks a second.
    pub rate_per_second: u32,
    /// Receipts that are written at once.
    pub concurrency: usize,
    /// How long a receipt is kept.
    pub retention: Duration,
    /// Receipts that one pass of the drain applies.
    pub drain_batch: usize,
    /// The pause between two passes of the drain.
    pub drain_interval: Duration,
    /// How long a receipt may wait for others before it is applied.
    pub drain_gather: Duration,
    /// For how long a receipt is one drain's. Saves work, guards nothing.
    pub lease: Duration,
}

impl Webhooks {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("webhooks");
        Self {
            token_leeway: s.duration("token_leeway", Duration::ZERO..=HOUR),
            body_max_bytes: s.number("body_max_bytes", 1_024..=67_108_864),
            head_max_bytes: s.number("head_max_bytes", 8_192..=1_048_576),
            read_timeout: s.duration("read_timeout", MILLISECOND..=MINUTE * 5),
            connections_max: s.number("connections_max", 1..=1_000_000),
            rate_per_second: s.number("rate_per_second", 1..=10_000_000),
            concurrency: s.number("concurrency", 1..=100_000),
            retention: s.duration("retention", MINUTE..=DAY * 3650),
            drain_batch: s.number("drain_batch", 1..=10_000),
            drain_interval: s.duration("drain_interval", MILLISECOND..=MINUTE),
            drain_gather: s.duration("drain_gather", Duration::ZERO..=SECOND * 10),
            lease: s.duration("lease", MILLISECOND..=HOUR),
        }
    }
}

/// The name of an API key: LiveKit allows any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct KeyName(String);

impl std::str::FromStr for KeyName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > 128 || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("must be 1 to 128 visible ASCII characters");
        }
        Ok(Self(text.to_owned()))
    }
}

/// Every `[webhook_keys.NAME]`.
pub(super) fn keys(reader: &mut Reader) -> BTreeMap<String, SecretString> {
    let found: BTreeMap<KeyName, Option<SecretString>> = reader.named("webhook_keys", |s| {
        let found = secret(s, "secret", "secret_file");
        if found.is_none() {
            s.fault("secret", Wrong::new("is missing", "set it, or secret_file"));
        }
        found
    });
    found
        .into_iter()
        .filter_map(|(KeyName(name), secret)| Some((name, secret?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use crate::config::Config;

    #[test]
    fn keys_are_read_by_their_names_and_faults_are_named() {
        let config = Config::from_toml("[webhook_keys.APInew]\nsecret = \"s2\"\n").unwrap();
        let (name, secret) = config.webhook_keys.first_key_value().unwrap();
        assert_eq!((name.as_str(), secret.expose_secret()), ("APInew", "s2"));
        for (text, says) in [
            (
                "[webhook_keys.A]\nsecret_file = \"/nowhere/A\"\n",
                "cannot be read",
            ),
            ("[webhook_keys.A]\nsecret = \"\"\n", "webhook_keys.A.secret"),
            ("[webhook_keys.\"a b\"]\nsecret = \"s\"\n", "visible ASCII"),
            ("[webhooks]\nlease = \"0s\"\n", "webhooks.lease"),
        ] {
            let faults = Config::from_toml(text).unwrap_err().to_string();
            assert!(faults.contains(says), "{faults}");
        }
    }
}
