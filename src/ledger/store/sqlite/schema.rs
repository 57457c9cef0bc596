//! Tables, and what the file says of itself.

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::fault::Fault;
use super::file::Identity;
use crate::ledger::store::{Epoch, Failure};
use crate::model::time::Time;

/// "RONC": tells our files from other programs' databases.
pub(super) const APPLICATION: i32 = 0x524f_4e43;

/// The format of the tables. A file of a newer one is not opened.
pub(super) const FORMAT: i32 = 1;

/// The tables of format 1.
///
/// - A record has a row id, so that the wide rows sit in a table and only their keys in an
///   index; `body` is last, so that nothing else is read past it. `entries` holds its index
///   entries as JSON: a rewrite that leaves them alone then touches no index.
/// - `wake` is `due`, or later while somebody has claimed the record.
/// - A log's position is `version * 65536 + ordinal`: it only ever grows at its end.
const TABLES: &str = "
    CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value ANY
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE record (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        format INTEGER NOT NULL,
        version INTEGER NOT NULL,
        commit_id BLOB NOT NULL,
        queue TEXT,
        due INTEGER,
        wake INTEGER,
        written INTEGER NOT NULL,
        entries TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX record_wake ON record (queue, wake, key) WHERE wake IS NOT NULL;
    CREATE INDEX record_idle ON record (kind, written) WHERE due IS NULL;
    CREATE TABLE entry (
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        key TEXT NOT NULL,
        record INTEGER NOT NULL,
        PRIMARY KEY (name, value, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE log (
        position INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
";

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Empty,
    /// A store of our format.
    Ours,
    /// A store of a newer format.
    Newer(i32),
    /// Another program's database.
    Foreign,
}

pub(super) fn find(conn: &Connection) -> rusqlite::Result<Found> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, format) = (pragma("application_id")?, pragma("user_version")?);
    if application == APPLICATION {
        return Ok(if format > FORMAT {
            Found::Newer(format)
        } else {
            Found::Ours
        });
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && format == 0 && tables == 0 {
        Found::Empty
    } else {
        Found::Foreign
    })
}

/// Makes the tables; inside the caller's transaction.
pub(super) fn create(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(TABLES)?;
    conn.pragma_update(None, "application_id", APPLICATION)?;
    conn.pragma_update(None, "user_version", FORMAT)?;
    set_version(conn, 0)
}

pub(super) fn epoch(conn: &Connection) -> Result<Option<Epoch>, Fault> {
    let id: Option<Vec<u8>> = get(conn, "epoch")?;
    let since: Option<i64> = get(conn, "epoch_since")?;
    let (Some(id), Some(since)) = (id, since) else {
        return Ok(None);
    };
    let id = Uuid::from_slice(&id)
        .map_err(|_| Failure::Corrupt("the epoch is not a UUID".to_owned()))?;
    Ok(Some(Epoch {
        id,
        since: Time::from_micros(since),
    }))
}

pub(super) fn set_epoch(conn: &Connection, epoch: Epoch) -> rusqlite::Result<()> {
    set(conn, "epoch", epoch.id.as_bytes().as_slice())?;
    set(conn, "epoch_since", epoch.since.as_micros())
}

pub(super) fn identity(conn: &Connection) -> rusqlite::Result<Option<Identity>> {
    let Some(inode) = get::<i64>(conn, "inode")? else {
        return Ok(None);
    };
    let born = get(conn, "born")?;
    Ok(Some(Identity {
        inode: inode.cast_unsigned(),
        born,
    }))
}

pub(super) fn set_identity(conn: &Connection, identity: Identity) -> rusqlite::Result<()> {
    set(conn, "inode", identity.inode.cast_signed())?;
    match identity.born {
        Some(born) => set(conn, "born", born),
        None => conn
            .execute("DELETE FROM meta WHERE name = 'born'", [])
            .map(drop),
    }
}

/// The number of the last commit.
pub(super) fn version(conn: &Connection) -> Result<i64, Fault> {
    Ok(get(conn, "version")?
        .ok_or_else(|| Failure::Corrupt("it has no commit number".to_owned()))?)
}

pub(super) fn set_version(conn: &Connection, version: i64) -> rusqlite::Result<()> {
    set(conn, "version", version)
}

fn get<T: rusqlite::types::FromSql>(conn: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    conn.prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn set<T: rusqlite::ToSql>(conn: &Connection, name: &str, value: T) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")?
        .execute(params![name, value])
        .map(drop)
}
