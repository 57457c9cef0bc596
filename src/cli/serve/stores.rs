//! Opens the configured store, and the keys that belong to it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::output;
use crate::config::{Config, EXIT_CONFIG, Location};
use crate::ledger::seal::Keys;
use crate::ledger::store::memory::Memory;
use crate::ledger::store::{Epoch, Kind, Store, sqlite};
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;

/// A store and its keys.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Keys,
    /// As it is named in the configuration, with its path.
    pub(super) location: String,
}

/// Why there is none, or no listener, and the exit code that says so.
#[derive(Debug)]
pub(in crate::cli) struct Unopened {
    error: anyhow::Error,
    code: u8,
}

impl Unopened {
    pub(super) fn new(error: anyhow::Error, code: u8) -> Self {
        Self { error, code }
    }

    fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self {
            error: error.into(),
            code: output::FAILED,
        }
    }

    /// Why, with what led to it.
    pub(in crate::cli) fn why(&self) -> String {
        format!("{:#}", self.error)
    }

    /// Says on stderr why, and gives the exit code.
    pub(in crate::cli) fn say(&self) -> ExitCode {
        output::note(&format!("error: {}", self.why()));
        ExitCode::from(self.code)
    }
}

/// Opens what `store.url` names.
pub(super) fn open(config: &Config, clock: &dyn Clock, ids: &dyn Ids) -> Result<Opened, Unopened> {
    match &config.store.location {
        Location::Memory => memory(config, clock, ids),
        Location::Sqlite(path) => sqlite(config, path, clock, ids),
    }
}

fn memory(config: &Config, clock: &dyn Clock, ids: &dyn Ids) -> Result<Opened, Unopened> {
    tracing::warn!(
        event = "store.memory",
        "the store is memory: it forgets everything when this process ends, and intents from \
         before its start are refused"
    );
    let epoch = Epoch {
        id: ids.uuid(),
        since: clock.now(),
    };
    let keys = match &config.store.key_file {
        Some(path) => keys(path, ids)?,
        None => Keys::random(ids),
    };
    Ok(Opened {
        store: Arc::new(Memory::new(1, epoch)),
        keys,
        location: "memory".to_owned(),
    })
}

fn sqlite(
    config: &Config,
    path: &Path,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> Result<Opened, Unopened> {
    has_folder(config)?;
    let options = sqlite::Options {
        queue: config.store.queue,
        readers: config.store.readers,
        forget_leases: true,
        make_folder: config.store.in_data_folder,
        ..sqlite::Options::default()
    };
    let key_file = config.store.key_file.clone();
    let key_file = key_file.unwrap_or_else(|| path.with_extension("key"));
    refuse_lost_key(path, &key_file)?;
    // Read first where there is one, so that a wrong one leaves no new store behind.
    let known = key_file
        .exists()
        .then(|| keys(&key_file, ids))
        .transpose()?;
    let fresh = !path.exists();
    let store = sqlite::Sqlite::open(path, &options, clock.now(), ids).map_err(|error| {
        let held = matches!(error, sqlite::OpenError::Held { .. });
        Unopened {
            code: if held {
                output::UNREACHABLE
            } else {
                output::FAILED
            },
            error: error.into(),
        }
    })?;
    if fresh {
        tracing::warn!(
            event = "store.made",
            path = %path.display(),
            "a new ledger was made here, which remembers nothing: if there should be one already, \
             this path (store.url) is wrong, and what was called before is not known to it; stop \
             this service then"
        );
    }
    Ok(Opened {
        store: Arc::new(store),
        keys: match known {
            Some(known) => known,
            None => keys(&key_file, ids)?,
        },
        location: format!("sqlite:{}", path.display()),
    })
}

/// Why there can be no store where `store.url` has it, as far as is seen without making anything:
/// a folder that somebody named must be there. Asked by `serve`, and by whoever only checks.
pub(in crate::cli) fn has_folder(config: &Config) -> Result<(), Unopened> {
    match &config.store.location {
        Location::Sqlite(path) if !config.store.in_data_folder => {
            sqlite::has_folder(path).map_err(Unopened::failed)
        }
        Location::Sqlite(_) | Location::Memory => Ok(()),
    }
}

/// A store that has been served before has its key. Making another one would only hide that
/// it is lost, and somebody might keep the wrong one.
fn refuse_lost_key(store: &Path, key_file: &Path) -> Result<(), Unopened> {
    // Asked first: inspecting counts the records, which takes long in a large store.
    if key_file.exists() {
        return Ok(());
    }
    let served_before = sqlite::inspect(store).is_ok_and(|info| {
        info.records
            .get(&Kind::Meta)
            .is_some_and(|count| *count > 0)
    });
    if !served_before {
        return Ok(());
    }
    let error = anyhow::anyhow!(
        "the key file {} is missing, and the numbers in {} are sealed under it; put it back, or \
         name it by store.key_file",
        key_file.display(),
        store.display()
    );
    Err(Unopened {
        error,
        code: EXIT_CONFIG,
    })
}

fn keys(path: &Path, ids: &dyn Ids) -> Result<Keys, Unopened> {
    let (keys, made) = Keys::from_file(path, ids).map_err(Unopened::failed)?;
    if made {
        tracing::warn!(
            event = "store.key_made",
            path = %path.display(),
            "a key file was made; back it up apart from the store, which no other key opens"
        );
    }
    Ok(keys)
}
