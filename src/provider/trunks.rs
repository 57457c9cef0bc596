//! Trunks by their stable name; LiveKit's ids live only in this cache.
//!
//! A platform restart or a flushed store gives every trunk another id and makes a
//! thousand dials fail at once. They evict the id they used and ask again; one of them
//! lists, the others take its result.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use livekit_protocol as proto;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::call::{Call, Doubt, Refused};
use super::client::Client;
use super::token::Grant;
use super::wire::Method;
use crate::model::id::TrunkName;
use crate::model::verdict::TryFailure;

/// LiveKit's id of a trunk (`ST_…`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrunkId(String);

impl TrunkId {
    /// The id as LiveKit knows it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for TrunkId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl fmt::Display for TrunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TrunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a name gives no trunk to dial with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrunkError {
    /// No outbound trunk has this name.
    #[error("LiveKit has no outbound trunk of this name")]
    NotFound,
    /// More than one has.
    #[error("LiveKit has {0} outbound trunks of this name")]
    Ambiguous(usize),
    /// It has no number to call from.
    #[error("the trunk has no number to call from")]
    NoNumber,
    /// There is certainly no list: it was refused, or never asked for.
    #[error("LiveKit's trunks could not be listed")]
    Refused(Refused),
    /// The list was not answered clearly.
    #[error("LiveKit's trunks were not listed")]
    Unclear(Doubt),
}

impl TrunkError {
    /// What it makes of a try.
    #[must_use]
    pub const fn failure(self) -> TryFailure {
        match self {
            Self::NotFound | Self::Ambiguous(_) => TryFailure::TrunkNotFound,
            Self::NoNumber => TryFailure::TrunkNoNumber,
            Self::Refused(why) => why.failure(),
            Self::Unclear(_) => TryFailure::PlatformUnreachable,
        }
    }
}

/// The cache, and the one list that may run at a time.
#[derive(Debug)]
pub(super) struct Trunks {
    keep: Duration,
    known: Mutex<Known>,
    list: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// By name, with the moment at which the id was learned.
    ids: BTreeMap<TrunkName, (TrunkId, Instant)>,
    /// How many lists have ended, and how the last one did.
    lists: u64,
    last: Option<Result<Vec<Listed>, TrunkError>>,
}

#[derive(Debug, Clone)]
struct Listed {
    id: TrunkId,
    name: String,
    has_number: bool,
}

impl Client {
    /// The id of the trunk of this name, from the cache or from one list. The name is matched
    /// exactly, by us.
    ///
    /// # Errors
    ///
    /// None or two of that name, a trunk without a number, or no list; errors are not kept.
    pub async fn resolve_trunk(&self, name: &TrunkName) -> Result<TrunkId, TrunkError> {
        let lists = {
            let known = self.trunks.known();
            if let Some(id) = known.id(name, self.trunks.keep) {
                return Ok(id);
            }
            known.lists
        };
        // Whoever comes first lists; if it is dropped half-way, the next in line lists.
        let _turn = self.trunks.list.lock().await;
        if let Some(result) = self.trunks.since(lists, name) {
            return result;
        }
        let listed = self.list_trunks(Vec::new()).await;
        self.trunks.learn(listed, name)
    }

    /// Forgets `id`, which a dial found missing. An id that another try has found since stays.
    pub fn evict_trunk(&self, name: &TrunkName, id: &TrunkId) {
        let mut known = self.trunks.known();
        if known.ids.get(name).is_some_and(|(known, _)| known == id) {
            known.ids.remove(name);
        }
    }

    /// Whether LiveKit still lists this trunk.
    pub async fn trunk_listed(&self, id: &TrunkId) -> Call<bool> {
        self.list_trunks(vec![id.as_str().to_owned()])
            .await
            .map(|listed| listed.iter().any(|trunk| trunk.id == *id))
    }

    async fn list_trunks(&self, ids: Vec<String>) -> Call<Vec<Listed>> {
        let request = proto::ListSipOutboundTrunkRequest {
            trunk_ids: ids,
            ..Default::default()
        };
        let reply = self.safe(Method::ListTrunks, Grant::Trunks, &request).await;
        Call::<proto::ListSipOutboundTrunkResponse>::read(&reply.answer)
            .map(|list| list.items.into_iter().map(Listed::from).collect())
    }
}

impl Known {
    /// The id of this name, if it was learned less than `keep` ago.
    fn id(&self, name: &TrunkName, keep: Duration) -> Option<TrunkId> {
        let (id, learned) = self.ids.get(name)?;
        (learned.elapsed() < keep).then(|| id.clone())
    }

    fn learn(&mut self, name: &TrunkName, found: &Result<TrunkId, TrunkError>) {
        if let Ok(id) = found {
            self.ids.insert(name.clone(), (id.clone(), Instant::now()));
        }
    }
}

impl Trunks {
    /// An empty cache that keeps an id for `keep`.
    pub(super) fn new(keep: Duration) -> Self {
        Self {
            keep,
            known: Mutex::default(),
            list: tokio::sync::Mutex::default(),
        }
    }

    /// The name in a list that ended after `lists` had, if one did.
    fn since(&self, lists: u64, name: &TrunkName) -> Option<Result<TrunkId, TrunkError>> {
        let mut known = self.known();
        if let Some(id) = known.id(name, self.keep) {
            return Some(Ok(id));
        }
        if known.lists == lists {
            return None;
        }
        let found = match known.last.as_ref()? {
            Ok(listed) => find(listed, name),
            Err(why) => Err(*why),
        };
        known.learn(name, &found);
        Some(found)
    }

    fn learn(&self, listed: Call<Vec<Listed>>, name: &TrunkName) -> Result<TrunkId, TrunkError> {
        let listed = match listed {
            Call::Done(listed) => Ok(listed),
            Call::Refused(why) => Err(TrunkError::Refused(why)),
            Call::Unclear(why) => Err(TrunkError::Unclear(why)),
        };
        let mut known = self.known();
        known.lists += 1;
        let found = match &listed {
            Ok(listed) => find(listed, name),
            Err(why) => Err(*why),
        };
        known.learn(name, &found);
        known.last = Some(listed);
        found
    }

    // A std mutex, since nothing is awaited while it is held.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(listed: &[Listed], name: &TrunkName) -> Result<TrunkId, TrunkError> {
    let mut named = listed.iter().filter(|trunk| trunk.name == name.as_str());
    let Some(trunk) = named.next() else {
        return Err(TrunkError::NotFound);
    };
    match named.count() {
        0 if trunk.has_number => Ok(trunk.id.clone()),
        0 => Err(TrunkError::NoNumber),
        others => Err(TrunkError::Ambiguous(others + 1)),
    }
}

impl From<proto::SipOutboundTrunkInfo> for Listed {
    fn from(trunk: proto::SipOutboundTrunkInfo) -> Self {
        Self {
            id: TrunkId(trunk.sip_trunk_id),
            name: trunk.name,
            has_number: !trunk.numbers.is_empty(),
        }
    }
}
