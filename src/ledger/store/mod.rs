//! The port of the store: small, and without a rule of the domain.
//!
//! # What it promises
//!
//! - A [`Commit`] is atomic within its partition: all of its expectations hold and all
//!   of its writes are done, durably, before [`Committed::Applied`] is returned, or
//!   nothing of it is.
//! - The commit's number is assigned inside the commit. It grows in each partition and is
//!   the version of every record that the commit writes, the fencing token and the
//!   sequence of its events at once. Nobody reads a counter first.
//! - After [`Error::Unknown`] the caller sends the same commit (same id) again: it
//!   answers `Applied` with the first number if its records carry its id. Reading
//!   alone is no proof.
//! - The store's [`Epoch`] is part of every expectation: a store that was replaced since
//!   it was opened applies nothing.
//! - A store error is never read as "claimed" or as "exists".
//!
//! The bodies are opaque to it; it sees keys, due times and index entries.
//!
//! # What a repetition answers
//!
//! A commit that is sent again answers `Applied` only while *all* of its written records
//! still carry its id. Where one was overwritten since, the answer is `Conflict`, with the
//! present records: the caller then decides anew, and never goes on from a state that has
//! moved. `NotApplied` speaks of the one call that it answers: after an `Unknown` it says
//! nothing of the earlier call.

mod check;
pub mod memory;
pub mod mortal;
pub mod sqlite;
pub mod suite;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::id::Partition;
use crate::model::time::Time;

/// What a record is about; the first letter of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `a/{workspace}/{attempt}`: state, markers, history, sealed number.
    Attempt,
    /// `s/{session}`: workspace, attempt and try of a session.
    Session,
    /// `c/{workspace}/{contact}`: who holds the contact; its last dials.
    Contact,
    /// `n/{workspace}/{number key}`: who holds the number; its last dials.
    Number,
    /// `r/{workspace}/{session}`: a room, planned, created or gone.
    Room,
    /// `k/{workspace}/{session}`: what was seen of a session's call.
    Call,
    /// `i/{account}/{event id}`: a webhook that was acknowledged.
    Receipt,
    /// `m/{name}`: what the store knows of itself: epoch, key fingerprint, deployment.
    Meta,
}

impl Kind {
    /// Every kind, in the order of the letters that stand for them here.
    pub const ALL: [Self; 8] = [
        Self::Attempt,
        Self::Session,
        Self::Contact,
        Self::Number,
        Self::Room,
        Self::Call,
        Self::Receipt,
        Self::Meta,
    ];

    /// The letter that begins its keys.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Attempt => 'a',
            Self::Session => 's',
            Self::Contact => 'c',
            Self::Number => 'n',
            Self::Room => 'r',
            Self::Call => 'k',
            Self::Receipt => 'i',
            Self::Meta => 'm',
        }
    }
}

/// The name of a record: a kind and a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    kind: Kind,
    path: String,
}

impl Key {
    /// A key of `kind` with `path` behind it.
    #[must_use]
    pub fn new(kind: Kind, path: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
        }
    }

    /// What the record is about.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What follows the kind's letter.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// As its `Display`, without the formatter's cost, which shows in every commit.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.path.len() + 2);
        text.push(self.kind.letter());
        text.push('/');
        text.push_str(&self.path);
        text
    }

    /// From its text form, as `a/{workspace}/{attempt}`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (letter, path) = text.split_once('/')?;
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| letter == kind.letter().to_string())?;
        Some(Self::new(kind, path))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.letter(), self.path)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The number of a commit in its partition, and so the version of what it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

/// Minted by the caller; the same on every repetition of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitId(pub Uuid);

/// Which history this store holds. A store that came back empty, older or from a backup
/// has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// Names the epoch.
    pub id: Uuid,
    /// When it began. An intent from before is refused for an unknown attempt, unless a
    /// person adopted the time before (`ringonce store adopt`).
    pub since: Time,
}

/// A wake-up: which queue shall see this record, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The queue that owns the wake-up.
    pub queue: Queue,
    /// Not before this moment of the wall clock.
    pub at: Time,
}

/// The queues that read due records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Attempts that wait: read by admission.
    Waiting,
    /// Attempts whose time in a passing state is over: read by the reconciler.
    Attempts,
    /// Rooms to look at or to delete: read by the reconciler.
    Rooms,
    /// Webhooks that wait to be applied: read by the inbox.
    Receipts,
}

impl Queue {
    /// Every queue.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Attempts, Self::Rooms, Self::Receipts];

    /// Its name in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Attempts => "attempts",
            Self::Rooms => "rooms",
            Self::Receipts => "receipts",
        }
    }
}

/// An entry of a secondary index: `name` says which index, `value` sorts within it.
/// Entries are compared as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Which index.
    pub name: &'static str,
    /// The value; of several records with the same value all are kept.
    pub value: String,
}

/// A record as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// The format of the body. A newer one than the reader knows is never overwritten by it.
    pub format: u32,
    /// The number of the commit that wrote it.
    pub version: Version,
    /// The id of the commit that wrote it.
    pub commit: CommitId,
    /// When it shall be looked at again.
    pub due: Option<Due>,
    /// The body, opaque to the store.
    pub body: Vec<u8>,
}

/// A record to be written whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Put {
    /// Its name.
    pub key: Key,
    /// The format of the body.
    pub format: u32,
    /// When it shall be looked at again.
    pub due: Option<Due>,
    /// Its index entries; they replace all earlier ones.
    pub index: Vec<Entry>,
    /// The body.
    pub body: Vec<u8>,
}

impl fmt::Debug for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put")
            .field("key", &self.key)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

/// Something that happened, appended to the partition's log in the same commit.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// The record it is about.
    pub key: Key,
    /// The body, opaque to the store.
    pub body: Vec<u8>,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The commit that appended it, and its place among that commit's events.
    pub position: Position,
    /// When it was appended, by the committer's wall clock.
    pub at: Time,
    /// The event.
    pub event: Event,
}

/// A place in a partition's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The commit's number.
    pub version: Version,
    /// The event's place among those of the commit, from 0.
    pub ordinal: u32,
}

impl Position {
    /// Before the first event of a partition.
    pub const START: Self = Self {
        version: Version(0),
        ordinal: 0,
    };
}

/// The ends of a partition's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The first event that is still held.
    pub first: Position,
    /// The last event that was appended.
    pub last: Position,
}

/// An atomic change of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The same on every repetition.
    pub id: CommitId,
    /// The epoch that the caller has seen.
    pub epoch: Epoch,
    /// The caller's wall clock; stamps the events, decides nothing.
    pub at: Time,
    /// What must hold: the version of each record that was read, `None` for its absence.
    /// Every written or deleted key must be among them.
    pub expect: BTreeMap<Key, Option<Version>>,
    /// Records to write.
    pub put: Vec<Put>,
    /// Records to remove.
    pub delete: Vec<Key>,
    /// Events to append. A commit without `put` cannot be told from one that was not
    /// applied, so every commit that has events also has a `put`.
    pub events: Vec<Event>,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It is durable; its number.
    Applied(Version),
    /// An expectation did not hold. The present state of every expected key.
    Conflict(BTreeMap<Key, Option<Record>>),
}

/// What a store may fail with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Certainly nothing was written or read.
    #[error("the store did nothing: {0}")]
    NotApplied(Failure),
    /// It may have been written: send the same commit again.
    #[error("the store's answer is unknown: {0}")]
    Unknown(Failure),
}

/// Why a store failed, in words for an operator. No body, no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its queue of commits is full; again later.
    #[error("its queue is full; try again shortly")]
    Busy,
    /// The disk is full.
    #[error("the disk is full; free some space")]
    Full,
    /// It cannot be written.
    #[error("it is read-only; make the file and its folder writable")]
    ReadOnly,
    /// What it holds is damaged.
    #[error("it is damaged: {0}")]
    Corrupt(String),
    /// It was replaced since it was opened.
    #[error(
        "its file is gone, or holds another history than when it was opened; put back the one that \
         belongs there if it was taken away, since a new one has no memory of what was dialed, \
         and restart"
    )]
    Epoch,
    /// A record is of a newer format than this program writes.
    #[error("the record {0} is of a newer format; use the newer program")]
    Newer(String),
    /// It is closed.
    #[error("it is closed")]
    Closed,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// One page of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The records, in the order of the index.
    pub records: Vec<Record>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

/// A place in an index: a value, and the key among equal values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The value of the index.
    pub value: String,
    /// The key within the value; the scan begins after it.
    pub key: String,
}

/// A range of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The index.
    pub index: &'static str,
    /// The least value, inclusive.
    pub from: String,
    /// The first value beyond the range.
    pub to: String,
    /// Begins after this place.
    pub after: Option<Cursor>,
    /// From the greatest value down.
    pub descending: bool,
    /// At most so many records.
    pub limit: usize,
}

/// What may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// Events appended before a moment.
    Events,
    /// Records of a kind without a due time, written before a moment.
    Records(Kind),
}

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The kind of store and where it is, as `sqlite:/var/lib/ringonce/ringonce.db`.
    pub location: String,
    /// Its history.
    pub epoch: Epoch,
    /// How many partitions it has.
    pub partitions: u16,
    /// Its format.
    pub format: u32,
    /// How many records it has, by kind.
    pub records: BTreeMap<Kind, u64>,
    /// How many events its logs hold.
    pub events: u64,
    /// How many commits it has applied since it was made, its partitions together.
    pub commits: u64,
    /// Bytes on disk, where it has any.
    pub bytes: Option<u64>,
    /// Whether holding it proves that no other process serves from it.
    pub exclusive: bool,
}

/// A store. All rules of the domain stay above it.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// The history that was found when it was opened.
    fn epoch(&self) -> Epoch;

    /// How many partitions it has; fixed when it was made.
    fn partitions(&self) -> u16;

    /// Whether holding it open proves that no other process serves from it, so that what
    /// is in a passing state belongs to a dead one.
    fn exclusive(&self) -> bool;

    /// Whether there is room for more than what is under way. Where there is not, nothing new
    /// is begun, so that what has begun can still be written to its end.
    fn has_room(&self) -> bool;

    /// The present records under `keys`, all as they were at one moment; a key without one
    /// is absent from the answer.
    async fn load(&self, p: Partition, keys: &[Key]) -> Result<BTreeMap<Key, Record>, Error>;

    /// Applies `commit`, or tells which records stand in its way. See the module's promises.
    async fn commit(&self, p: Partition, commit: &Commit) -> Result<Committed, Error>;

    /// Records by an index.
    async fn scan(&self, p: Partition, scan: &Scan) -> Result<Page, Error>;

    /// At most `limit` records of `queue` that are due at `now`, earliest first. Each is put
    /// off by `lease`, so that another caller does not see it meanwhile: that only saves
    /// work. The versioned commit that follows is the truth, and the record's own `due` and
    /// version stay as they are.
    async fn claim_due(
        &self,
        p: Partition,
        queue: Queue,
        now: Time,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Record>, Error>;

    /// When the next record of `queue` becomes due, leases counted; `None` if none will.
    async fn next_due(&self, p: Partition, queue: Queue) -> Result<Option<Time>, Error>;

    /// Events after `position`, in order, at most `limit`.
    async fn changes_since(
        &self,
        p: Partition,
        position: Position,
        limit: usize,
    ) -> Result<Vec<Logged>, Error>;

    /// The ends of the log; `None` until the first event.
    async fn log_bounds(&self, p: Partition) -> Result<Option<Bounds>, Error>;

    /// Forgets at most `limit` items older than `before`; how many it forgot. Events go
    /// from the log's beginning only, up to the first that is not older, so that the log
    /// has no holes where the wall clock stepped; its last event always stays.
    async fn trim(
        &self,
        p: Partition,
        what: Trim,
        before: Time,
        limit: usize,
    ) -> Result<usize, Error>;

    /// What it says of itself.
    async fn info(&self) -> Result<Info, Error>;

    /// Takes `epoch` for its own: the same one from another moment on (`store adopt --since`),
    /// or a new one (`store restored`). Whoever has the store open must restart.
    async fn begin_epoch(&self, epoch: Epoch) -> Result<(), Error>;

    /// Finishes what is queued and closes; later calls fail with [`Failure::Closed`].
    async fn close(&self);
}
