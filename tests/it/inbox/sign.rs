//! Webhooks as LiveKit signs them, and waiting until they are read.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use ringonce::inbox::Counted;

use crate::world::{Alive, credentials};

/// A token of `key` over `body`, from `now` on.
pub(crate) fn by(key: &str, secret: &str, body: &[u8], now: i64) -> String {
    let claims = json!({
        "iss": key,
        "nbf": now,
        "exp": now + 300,
        "sha256": STANDARD.encode(Sha256::digest(body)),
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&json!({"alg": "HS256"})), part(&claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{message}.{signature}")
}

/// A token of LiveKit's own key.
pub(crate) fn over(body: &[u8], now: i64) -> String {
    let own = credentials();
    by(&own.key, own.secret.expose_secret(), body, now)
}

/// Waits until nothing waits to be applied: by us or by the node's own drain.
pub(crate) async fn until_read(alive: &Alive) {
    let inbox = alive.node.inbox();
    let wait = async {
        loop {
            let waits = inbox.pass().await.unwrap();
            let of = |what| inbox.counts().of(what);
            let read = [
                Counted::Applied,
                Counted::Foreign,
                Counted::Ignored,
                Counted::Unread,
            ]
            .map(of);
            // Duplicates in one process only: a lost answer may have kept one more.
            if !waits && read.iter().sum::<u64>() >= of(Counted::Kept) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(2), wait).await;
    waited.expect("what waits is read");
}
