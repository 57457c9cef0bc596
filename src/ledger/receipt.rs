//! Receipts: the webhooks that were acknowledged, until they are applied and then forgotten.
//!
//! A receipt is `i/{account}/{event id}` in a partition of its own, chosen by its key: what
//! it is about is not known before it is read. It is written before the sender is answered,
//! and applied afterwards by a commit of its own, in the workspace's partition; then the
//! receipt is marked as done. A crash in between repeats the application, which changes
//! nothing the second time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Error;
use super::decide::Ledger;
use super::record::{FORMAT, Stored, sortable};
use super::store::{
    Commit, CommitId, Committed, Cursor, Due, Entry, Key, Kind, Put, Queue, Record, Scan, Store,
    Version,
};
use super::view::read;
use crate::model::id::Partition;
use crate::model::time::Time;
use crate::runtime::mutant::{self, Mutant};

/// Index: receipts by the time of their arrival.
pub const RECEIPTS: &str = "receipts";

/// A webhook that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The API key that signed it.
    pub account: String,
    /// The event's id (`EV_…`); of an event without one, `sha256-` and the hash of its body.
    pub id: String,
    /// When it arrived, by our clock.
    pub received: Time,
    /// SHA-256 of the raw body, in hex: what was signed can be told from what is kept.
    pub hash: String,
    /// What it says that it is, as `participant_left`.
    pub event: String,
    /// What became of it.
    pub reading: Reading,
    /// Why, in words; never a part of the body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The body, with every phone number replaced by its key.
    pub body: Value,
    /// Fields of a later version; they survive a rewrite.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What became of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// It waits to be applied.
    New,
    /// It was applied.
    Applied,
    /// It says nothing about calls, as the events of recordings.
    Ignored,
    /// It is about a room that is not ours.
    Foreign,
    /// This version cannot read all of it; a later one may (`ringonce inbox replay`).
    Unread,
}

impl Reading {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Applied => "applied",
            Self::Ignored => "ignored",
            Self::Foreign => "foreign",
            Self::Unread => "unread",
        }
    }
}

/// `i/{account}/{event id}`.
#[must_use]
pub fn receipt_key(account: &str, id: &str) -> Key {
    Key::new(Kind::Receipt, format!("{account}/{id}"))
}

/// The partition of a receipt in a store of `partitions`.
fn partition_of(key: &Key, partitions: u16) -> Partition {
    let hash = Sha256::digest(key.path().as_bytes());
    let [a, b, ..] = hash.as_slice() else {
        return Partition(0);
    };
    Partition(u16::from_be_bytes([*a, *b]) % partitions.max(1))
}

impl Stored for Receipt {
    fn key(&self) -> Key {
        receipt_key(&self.account, &self.id)
    }

    fn due(&self) -> Option<Due> {
        (self.reading == Reading::New).then_some(Due {
            queue: Queue::Receipts,
            at: self.received,
        })
    }

    // The same before and after it is applied, so that marking it touches no index.
    fn index(&self) -> Vec<Entry> {
        vec![Entry {
            name: RECEIPTS,
            value: sortable(self.received),
        }]
    }
}

impl Receipt {
    /// From its record.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn of(record: &Record) -> Result<Self, Error> {
        read(record)
    }

    /// A scan of the latest receipts, newest first.
    #[must_use]
    pub fn latest(after: Option<Cursor>, limit: usize) -> Scan {
        Scan {
            index: RECEIPTS,
            from: String::new(),
            to: "~".to_owned(),
            after,
            descending: true,
            limit,
        }
    }

    /// This receipt as a commit that makes it wait again. `version`: as it was read.
    ///
    /// # Errors
    ///
    /// If it cannot be encoded, which is a fault of ours.
    pub fn again(
        &self,
        store: &dyn Store,
        id: CommitId,
        at: Time,
        version: Version,
    ) -> Result<Commit, Error> {
        let mut again = self.clone();
        again.reading = Reading::New;
        again.note = String::new();
        Ok(Commit {
            id,
            epoch: store.epoch(),
            at,
            expect: [(again.key(), Some(version))].into(),
            put: vec![put(&again)?],
            delete: Vec::new(),
            events: Vec::new(),
        })
    }
}

fn put(receipt: &Receipt) -> Result<Put, Error> {
    let key = receipt.key();
    let body = serde_json::to_vec(receipt)
        .map_err(|_| Error::Fault(format!("the record {key} cannot be encoded")))?;
    Ok(Put {
        key,
        format: FORMAT,
        due: receipt.due(),
        index: receipt.index(),
        body,
    })
}

impl Ledger {
    /// Keeps a receipt; `false` if one of this account and id is kept already. Nothing is
    /// read first: the store itself says whether the key is new. When this returns, the
    /// receipt is durable.
    ///
    /// # Errors
    ///
    /// If the store fails: the sender must send it again.
    pub async fn receive(&self, receipt: &Receipt) -> Result<bool, Error> {
        let key = receipt.key();
        let p = partition_of(&key, self.store.partitions());
        let commit = self.bare([(key, None)].into(), vec![put(receipt)?]);
        Ok(match self.commit(p, &commit).await? {
            Committed::Applied(_) => true,
            Committed::Conflict(found) if mutant::is(Mutant::ReceiptTwice) => {
                let version = |record: Option<Record>| record.map(|record| record.version);
                let expect = found.into_iter().map(|(k, record)| (k, version(record)));
                let expect = expect.collect();
                let again = self.bare(expect, vec![put(receipt)?]);
                matches!(self.commit(p, &again).await?, Committed::Applied(_))
            }
            Committed::Conflict(_) => false,
        })
    }

    /// Receipts that wait, put off for others by `lease`. One that cannot be read is left
    /// where it is: it comes again after the lease, for a version that can.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn claim_receipts(
        &self,
        p: Partition,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<(Receipt, Version)>, Error> {
        let records = self
            .store
            .claim_due(p, Queue::Receipts, self.now(), limit, lease)
            .await?;
        let readable = |record: &Record| match read(record) {
            Ok(receipt) => Some((receipt, record.version)),
            Err(error) => {
                tracing::error!(event = "webhook.unreadable", %error, "a receipt cannot be read");
                None
            }
        };
        Ok(records.iter().filter_map(readable).collect())
    }

    /// Marks receipts of one partition as read, in one commit. Those that another process
    /// has marked meanwhile are left to it.
    ///
    /// # Errors
    ///
    /// If the store fails; they are then applied again, which changes nothing.
    pub async fn finish_receipts(
        &self,
        p: Partition,
        mut read: Vec<(Receipt, Version)>,
    ) -> Result<(), Error> {
        while !read.is_empty() {
            let expect: BTreeMap<_, _> = read
                .iter()
                .map(|(receipt, version)| (receipt.key(), Some(*version)))
                .collect();
            let puts = read
                .iter()
                .map(|(receipt, _)| put(receipt))
                .collect::<Result<_, _>>()?;
            match self.commit(p, &self.bare(expect, puts)).await? {
                Committed::Applied(_) => return Ok(()),
                Committed::Conflict(present) => read.retain(|(receipt, version)| {
                    let found = present.get(&receipt.key()).and_then(Option::as_ref);
                    found.is_some_and(|record| record.version == *version)
                }),
            }
        }
        Ok(())
    }

    /// The receipt of an event, and its version.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn receipt(&self, account: &str, id: &str) -> Result<Option<Receipt>, Error> {
        let key = receipt_key(account, id);
        let p = partition_of(&key, self.store.partitions());
        let found = self.store.load(p, std::slice::from_ref(&key)).await?;
        found.get(&key).map(read).transpose()
    }

    /// A text's key: equal texts of one account have the same, and it cannot be undone.
    #[must_use]
    pub fn keyed(&self, account: &str, text: &str) -> String {
        self.keys.number_key(&format!("webhook/{account}"), text)
    }

    /// A commit of these records alone, without a view.
    fn bare(&self, expect: BTreeMap<Key, Option<Version>>, put: Vec<Put>) -> Commit {
        Commit {
            id: CommitId(self.ids.uuid()),
            epoch: self.epoch,
            at: self.clock.now(),
            expect,
            put,
            delete: Vec::new(),
            events: Vec::new(),
        }
    }
}
