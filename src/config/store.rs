//! `[store]`: what remembers, and for how long.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault::Wrong;
use super::reader::Reader;
use super::typed::filled;
use super::units::{DAY, FOREVER, HOUR, MILLISECOND, MINUTE};

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// One file.
    Sqlite(PathBuf),
    /// This process's memory: forgets at each restart.
    Memory,
}

impl Location {
    /// The key file beside it.
    fn key_file(&self) -> Option<PathBuf> {
        match self {
            Self::Sqlite(path) => Some(path.with_extension("key")),
            Self::Memory => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory"),
        }
    }
}

/// The store that nobody named a file for.
const DATA_FOLDER: &str = "sqlite";

/// What remembers, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Where it is.
    pub location: Location,
    /// Whether it is in the data folder, which is made where it is missing. A folder that
    /// somebody named is not: what is missing there is mistyped, or a disk that was not mounted.
    pub in_data_folder: bool,
    /// The keys that seal phone numbers; made on first start. `None` with the memory store:
    /// keys of this process alone.
    pub key_file: Option<PathBuf>,
    /// Commits that may wait for the writer; beyond it callers get UNAVAILABLE.
    pub queue: usize,
    /// Connections that read beside the writer.
    pub readers: usize,
    /// For how long a commit is sent again whose answer is unknown.
    pub retry_for: Duration,
    /// The pause between two of those.
    pub retry_backoff: Duration,
    /// How often `decide` decides anew on conflicts before it gives up.
    pub conflicts_max: u32,
    /// How long the detail of a settled attempt is kept.
    pub detail_retention: Duration,
    /// How long an attempt id is remembered after its detail went.
    pub id_retention: Duration,
    /// The pause between two passes of forgetting.
    pub trim_interval: Duration,
    /// How much one pass forgets of each kind.
    pub trim_batch: usize,
}

impl Store {
    /// `data_folder` is where the file goes that nobody named.
    pub(super) fn read(reader: &mut Reader, data_folder: Option<&Path>) -> Self {
        let mut s = reader.section("store");
        let named = s.optional_text("url", |url| {
            location(url, data_folder).map(|location| (location, url == DATA_FOLDER))
        });
        let (location, in_data_folder) = named.unwrap_or((Location::Memory, false));
        let key_file = s.optional_text("key_file", |path| filled(path).map(PathBuf::from));
        let key_file = key_file.or_else(|| location.key_file());
        if let Some(origin) = s.origin("url") {
            s.show("url", location.to_string(), origin.clone());
            if let Some(path) = &key_file {
                let origin = s.origin("key_file").unwrap_or(origin);
                s.show("key_file", path.display().to_string(), origin);
            }
        }
        Self {
            location,
            in_data_folder,
            key_file,
            queue: s.number("queue", 1..=1_000_000),
            readers: s.number("readers", 1..=64),
            retry_for: s.duration("retry_for", MILLISECOND..=HOUR),
            retry_backoff: s.duration("retry_backoff", MILLISECOND..=MINUTE),
            conflicts_max: s.number("conflicts_max", 1..=10_000),
            detail_retention: s.duration("detail_retention", MILLISECOND..=FOREVER),
            id_retention: s.duration("id_retention", MILLISECOND..=FOREVER),
            trim_interval: s.duration("trim_interval", MILLISECOND..=DAY),
            trim_batch: s.number("trim_batch", 1..=1_000_000),
        }
    }
}

fn location(url: &str, data_folder: Option<&Path>) -> Result<Location, Wrong> {
    let remedy = "write \"sqlite:PATH\", \"sqlite\" (in the data folder) or \"memory\"";
    match url.split_once(':') {
        None if url == "memory" => Ok(Location::Memory),
        None if url == DATA_FOLDER => data_folder
            .map(|folder| Location::Sqlite(folder.join("ringonce.db")))
            .ok_or_else(|| {
                Wrong::new(
                    "there is no data folder: STATE_DIRECTORY, XDG_DATA_HOME and HOME are not set",
                    "name the file, as \"sqlite:/var/lib/ringonce/ringonce.db\"",
                )
            }),
        Some(("sqlite", path)) if !path.is_empty() => {
            // Both `sqlite:/a/b` and the URL form `sqlite:///a/b` are in use.
            let path = path.strip_prefix("//").unwrap_or(path);
            Ok(Location::Sqlite(PathBuf::from(path)))
        }
        Some(("redis" | "rediss", _)) => Err(Wrong::new("this version has no Redis store", remedy)),
        // What was written is not repeated: a URL may carry a password.
        Some(_) | None => Err(Wrong::new("names no store that there is", remedy)),
    }
}
