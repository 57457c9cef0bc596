//! What LiveKit tells us: written down first, applied afterwards at our own pace.
//!
//! A webhook is verified, kept as a receipt, and answered 200 once that is durable; a receipt
//! that is known already is answered 200 and changes nothing. The drain reads receipts in any
//! order, any number of times: [`project`] is pure, and what it says is merged by meaning.
//! It writes observations, the end of an answered call, and nothing else: never a marker.
//!
//! LiveKit takes any status below 500 but 429 as delivered, and drops what waited for 30 s. So
//! whatever is our trouble is answered 503, and webhooks only make quick what the reconciler
//! makes right.
//!
//! [`http`] is the listener; it holds no state of its own.

mod apply;
mod counts;
mod drain;
mod event;
pub mod http;
pub mod project;
pub mod redact;
mod strangers;
pub mod token;
mod watch;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, Semaphore};

use crate::config::Config;
use crate::ledger::receipt::{Reading, Receipt};
use crate::ledger::{Error, Ledger};
use crate::placement::rooms::Rooms;
use crate::placement::settle::Settler;
use crate::provider::Credentials;
use crate::runtime::streak::Streak;
use apply::Projection;
pub use counts::{Counted, Counts};
use token::{Refusal, Signed, Signers};

/// Takes webhooks, and applies them.
#[derive(Debug)]
pub struct Inbox {
    ledger: Arc<Ledger>,
    projection: Projection,
    signers: Signers,
    config: Arc<Config>,
    /// Places to write at once: the rest of the store's queue is for the calls.
    writing: Semaphore,
    counts: Counts,
    /// There is something to apply.
    poke: Notify,
    /// Receipts that could not be applied.
    refused: Streak,
}

/// What became of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is kept.
    Kept,
    /// It was kept before.
    Known,
    /// It was not signed by a key of ours, over these bytes and at this time.
    Refused(Refusal),
    /// It is signed, and no JSON object.
    NoEvent,
    /// It could not be kept: it must be sent again.
    NotKept,
}

impl Taken {
    /// The HTTP status that says so.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Kept | Self::Known => 200,
            Self::Refused(_) => 401,
            Self::NoEvent => 400,
            Self::NotKept => 503,
        }
    }
}

impl Inbox {
    /// With what it writes with, and the key that signs beside those of `config`.
    #[must_use]
    pub fn new(
        ledger: &Arc<Ledger>,
        rooms: &Arc<Rooms>,
        settler: &Arc<Settler>,
        config: &Arc<Config>,
        own: Credentials,
    ) -> Arc<Self> {
        let mut keys: BTreeMap<_, _> = config.webhook_keys.clone();
        keys.insert(own.key, own.secret);
        let webhooks = &config.webhooks;
        let (rooms, settler) = (Arc::clone(rooms), Arc::clone(settler));
        Arc::new(Self {
            projection: Projection::new(Arc::clone(ledger), rooms, settler),
            signers: Signers::new(keys, webhooks.token_leeway),
            writing: Semaphore::new(webhooks.concurrency),
            counts: Counts::default(),
            poke: Notify::new(),
            refused: Streak::default(),
            ledger: Arc::clone(ledger),
            config: Arc::clone(config),
        })
    }

    /// Checks who signed, before the body is read.
    ///
    /// # Errors
    ///
    /// Why it is refused; that is counted and, now and then, logged.
    pub fn check(&self, authorization: Option<&[u8]>) -> Result<Signed, Refusal> {
        self.signers
            .check(authorization, self.ledger.now())
            .inspect_err(|refusal| self.counts.refused(*refusal))
    }

    /// Keeps a signed webhook. When this says that it is kept, it is durable.
    pub async fn keep(&self, signed: &Signed, body: &[u8]) -> Taken {
        let hash = match signed.over(body) {
            Ok(hash) => hash,
            Err(refusal) => {
                self.counts.refused(refusal);
                return Taken::Refused(refusal);
            }
        };
        let Ok(event @ Value::Object(_)) = serde_json::from_slice(body) else {
            self.counts.add(Counted::NoEvent);
            return Taken::NoEvent;
        };
        let receipt = self.receipt(signed, hash, event);
        let Ok(_place) = self.writing.acquire().await else {
            return Taken::NotKept;
        };
        match self.ledger.receive(&receipt).await {
            Ok(true) => {
                self.counts.add(Counted::Kept);
                self.counts.told(receipt.received);
                self.poke.notify_one();
                Taken::Kept
            }
            // The delivery is counted; the receipt is one, and is not written again.
            Ok(false) => {
                self.counts.add(Counted::Known);
                self.counts.told(receipt.received);
                Taken::Known
            }
            Err(error) => {
                self.counts.not_kept(&error);
                Taken::NotKept
            }
        }
    }

    /// As [`Inbox::check`] and [`Inbox::keep`] in one.
    pub async fn take(&self, authorization: Option<&[u8]>, body: &[u8]) -> Taken {
        match self.check(authorization) {
            Ok(signed) => self.keep(&signed, body).await,
            Err(refusal) => Taken::Refused(refusal),
        }
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// A failure of the ledger, after which what waits comes again.
    fn comes_again(&self, error: &Error) {
        if let Some(told) = self.refused.failed() {
            tracing::warn!(
                event = "webhook.not_applied",
                %error,
                failures = told.count,
                seconds = told.lasts.as_secs(),
                "receipts could not be applied; they come again"
            );
        }
    }

    fn receipt(&self, signed: &Signed, hash: [u8; 32], mut event: Value) -> Receipt {
        let account = &signed.account;
        redact::redact(&mut event, &|number| self.ledger.keyed(account, number));
        let hash = hash.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes whatever is written into it");
            hex
        });
        let id = event
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| is_id(id));
        let kind = event.get("event").and_then(Value::as_str);
        Receipt {
            account: account.clone(),
            id: id.map_or_else(|| format!("sha256-{hash}"), str::to_owned),
            received: self.ledger.now(),
            hash,
            event: kind.filter(|kind| is_id(kind)).unwrap_or("?").to_owned(),
            reading: Reading::New,
            note: String::new(),
            body: event,
            rest: serde_json::Map::new(),
        }
    }
}

/// What may stand in a key and in a log: LiveKit's ids and types are of these characters.
fn is_id(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(allowed)
}
