//! Opening: whose store is this, and does it still remember what it did?

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::decide::{Ledger, Patience};
use super::news::News;
use super::record::FORMAT;
use super::seal::Keys;
use super::store::{Commit, CommitId, Committed, Key, Kind, Put, Record, Store, Version};
use super::{Error, store};
use crate::model::id::{Deployment, Partition};
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;

/// What a store knows of whom it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    deployment: Deployment,
    /// The fingerprint of the keys under which numbers are sealed and looked up.
    keys: String,
    /// The history in which it was written.
    epoch: Uuid,
}

/// Why a ledger does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configured deployment is not the store's.
    #[error(
        "the store belongs to the deployment {found}, and the configuration says {configured}; \
         set deployment.name to {found}, or use another store"
    )]
    Deployment {
        /// In the store.
        found: Deployment,
        /// In the configuration.
        configured: Deployment,
    },
    /// The keys are not those under which its numbers are sealed.
    #[error(
        "the store's numbers are sealed under other keys than those given; give the key file \
         that was made with this store (store.key_file)"
    )]
    Keys,
    /// The store failed.
    #[error(transparent)]
    Ledger(#[from] Error),
}

impl Ledger {
    /// Opens the ledger in `store`. A new store is given the configured deployment, else
    /// `d-` and eight random hex digits.
    ///
    /// # Errors
    ///
    /// If the store belongs to another deployment, its keys are others, or it fails.
    pub async fn open(
        store: Arc<dyn Store>,
        keys: Keys,
        deployment: Option<Deployment>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        news: News,
        patience: Patience,
    ) -> Result<Self, OpenError> {
        let identity = identify(store.as_ref(), &keys, deployment, &*clock, &*ids).await?;
        let epoch = store.epoch();
        let deployment = identity.deployment;
        Ok(Self {
            store,
            clock,
            ids,
            keys,
            deployment,
            epoch,
            news,
            patience,
            writes: super::writes::Writes::default(),
        })
    }
}

/// Reads who the store belongs to, or writes it into a new one. Two processes that open a
/// new store at once race for the record; the loser reads what the winner wrote.
async fn identify(
    store: &dyn Store,
    keys: &Keys,
    deployment: Option<Deployment>,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> Result<Identity, OpenError> {
    let key = Key::new(Kind::Meta, "identity");
    let epoch = store.epoch();
    loop {
        let found = store
            .load(Partition(0), std::slice::from_ref(&key))
            .await
            .map_err(Error::from)?;
        let (identity, version) = if let Some(record) = found.get(&key) {
            let known = check(record, keys, deployment.as_ref())?;
            if known.epoch == epoch.id {
                return Ok(known);
            }
            tracing::warn!(
                event = "store.new_history",
                since = %epoch.since,
                "this store is another file than the one that was served before, or came back from \
                 a backup: what it believes to be waiting is distrusted, and intents from before \
                 this moment are refused (`ringonce store adopt --since TIME`, with no service \
                 running)"
            );
            let epoch = epoch.id;
            (Identity { epoch, ..known }, Some(record.version))
        } else {
            let deployment = deployment.clone().map_or_else(|| random_name(ids), Ok)?;
            let (keys, epoch) = (keys.print(), epoch.id);
            let fresh = Identity {
                deployment,
                keys,
                epoch,
            };
            (fresh, None)
        };
        write(store, &key, &identity, version, clock, ids).await?;
    }
}

/// Whether the store is the configured deployment's, and its numbers are sealed under these
/// keys.
fn check(
    record: &Record,
    keys: &Keys,
    deployment: Option<&Deployment>,
) -> Result<Identity, OpenError> {
    let identity: Identity = serde_json::from_slice(&record.body)
        .map_err(|_| Error::Fault("the store's identity cannot be read".to_owned()))?;
    if let Some(configured) = deployment.filter(|d| **d != identity.deployment) {
        return Err(OpenError::Deployment {
            found: identity.deployment,
            configured: configured.clone(),
        });
    }
    if identity.keys != keys.print() {
        return Err(OpenError::Keys);
    }
    Ok(identity)
}

/// Writes the identity; whoever calls this reads it afterwards, whatever came of it.
async fn write(
    store: &dyn Store,
    key: &Key,
    identity: &Identity,
    version: Option<Version>,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> Result<(), OpenError> {
    let body = serde_json::to_vec(identity)
        .map_err(|_| Error::Fault("the store's identity cannot be written".to_owned()))?;
    let put = Put {
        key: key.clone(),
        format: FORMAT,
        due: None,
        index: Vec::new(),
        body,
    };
    let commit = Commit {
        id: CommitId(ids.uuid()),
        epoch: store.epoch(),
        at: clock.now(),
        expect: [(key.clone(), version)].into(),
        put: vec![put],
        delete: Vec::new(),
        events: Vec::new(),
    };
    match store.commit(Partition(0), &commit).await {
        Ok(Committed::Applied(_) | Committed::Conflict(_)) | Err(store::Error::Unknown(_)) => {
            Ok(())
        }
        Err(error) => Err(Error::from(error).into()),
    }
}

fn random_name(ids: &dyn Ids) -> Result<Deployment, Error> {
    let mut bytes = [0; 4];
    ids.fill(&mut bytes);
    let [a, b, c, d] = bytes;
    format!("d-{a:02x}{b:02x}{c:02x}{d:02x}")
        .parse()
        .map_err(|_| Error::Fault("a name of hex digits is no name".to_owned()))
}
