//! What only reads: plain functions over a connection.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::fault::Fault;
use crate::ledger::store::{
    Bounds, CommitId, Cursor, Due, Event, Failure, Key, Kind, Logged, Page, Position, Queue,
    Record, Scan, Version,
};
use crate::model::time::Time;

/// How many bits of a log position hold the ordinal.
const ORDINAL_BITS: u32 = 16;

pub(super) fn load(conn: &Connection, keys: &[Key]) -> Result<BTreeMap<Key, Record>, Fault> {
    if let [key] = keys {
        let found = one(conn, key)?;
        return Ok(found
            .map(|record| (key.clone(), record))
            .into_iter()
            .collect());
    }
    // One transaction, so that all of them are seen at one moment.
    let tx = conn.unchecked_transaction()?;
    let mut found = BTreeMap::new();
    for key in keys {
        if let Some(record) = one(&tx, key)? {
            found.insert(key.clone(), record);
        }
    }
    tx.commit()?;
    Ok(found)
}

pub(super) fn one(conn: &Connection, key: &Key) -> Result<Option<Record>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT key, format, version, commit_id, queue, due, body FROM record WHERE key = ?1",
    )?;
    let mut rows = statement.query([key.text()])?;
    rows.next()?.map(record).transpose()
}

/// From the columns `key, format, version, commit_id, queue, due, body`.
pub(super) fn record(row: &Row<'_>) -> Result<Record, Fault> {
    let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    let damaged = |what: &str| Failure::Corrupt(format!("the record {text} has {what}"));
    let key = Key::parse(text).ok_or_else(|| damaged("an unknown kind"))?;
    let commit = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
    let commit = Uuid::from_slice(commit).map_err(|_| damaged("a bad commit id"))?;
    let queue = row
        .get_ref(4)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?;
    let due = match (queue, row.get::<_, Option<i64>>(5)?) {
        (Some(name), Some(at)) => Some(Due {
            queue: (Queue::ALL.into_iter())
                .find(|queue| queue.name() == name)
                .ok_or_else(|| damaged("an unknown queue"))?,
            at: Time::from_micros(at),
        }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(damaged("half a due time").into()),
    };
    Ok(Record {
        key,
        format: row.get(1)?,
        version: Version(row.get::<_, i64>(2)?.cast_unsigned()),
        commit: CommitId(commit),
        due,
        body: row.get(6)?,
    })
}

pub(super) fn scan(conn: &Connection, scan: &Scan) -> Result<Page, Fault> {
    // A key is never empty, so (value, '') stands before every record of that value: one
    // bound then serves the beginning and the cursor alike.
    let bound = |value: &String| (value.clone(), String::new());
    let after = (scan.after.as_ref()).map(|after| (after.value.clone(), after.key.clone()));
    let (sql, begin, end) = if scan.descending {
        let top = bound(&scan.to);
        let begin = after.map_or(top.clone(), |after| after.min(top));
        (
            "SELECT r.key, r.format, r.version, r.commit_id, r.queue, r.due, r.body, e.value
             FROM entry e JOIN record r ON r.id = e.record
             WHERE e.name = ?1 AND (e.value, e.key) < (?2, ?3) AND e.value >= ?4
             ORDER BY e.value DESC, e.key DESC LIMIT ?5",
            begin,
            &scan.from,
        )
    } else {
        let bottom = bound(&scan.from);
        let begin = after.map_or(bottom.clone(), |after| after.max(bottom));
        (
            "SELECT r.key, r.format, r.version, r.commit_id, r.queue, r.due, r.body, e.value
             FROM entry e JOIN record r ON r.id = e.record
             WHERE e.name = ?1 AND (e.value, e.key) > (?2, ?3) AND e.value < ?4
             ORDER BY e.value, e.key LIMIT ?5",
            begin,
            &scan.to,
        )
    };
    let mut statement = conn.prepare_cached(sql)?;
    let more = rows(scan.limit).saturating_add(1);
    let mut found = statement.query(params![scan.index, begin.0, begin.1, end, more])?;
    let mut page = Page::default();
    let mut last = None;
    while let Some(row) = found.next()? {
        if page.records.len() == scan.limit {
            page.next = last;
            break;
        }
        let record = record(row)?;
        last = Some(Cursor {
            value: row.get(7)?,
            key: record.key.to_string(),
        });
        page.records.push(record);
    }
    Ok(page)
}

pub(super) fn next_due(conn: &Connection, queue: Queue) -> Result<Option<Time>, Fault> {
    let at: Option<i64> = conn
        .prepare_cached("SELECT min(wake) FROM record WHERE queue = ?1 AND wake IS NOT NULL")?
        .query_row([queue.name()], |row| row.get(0))?;
    Ok(at.map(Time::from_micros))
}

pub(super) fn changes_since(
    conn: &Connection,
    after: Position,
    limit: usize,
) -> Result<Vec<Logged>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT position, at, key, body FROM log WHERE position > ?1 ORDER BY position LIMIT ?2",
    )?;
    let mut found = statement.query(params![pack(after), rows(limit)])?;
    let mut logged = Vec::new();
    while let Some(row) = found.next()? {
        let text = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let key = Key::parse(text)
            .ok_or_else(|| Failure::Corrupt("an event is about an unknown kind".to_owned()))?;
        logged.push(Logged {
            position: unpack(row.get(0)?),
            at: Time::from_micros(row.get(1)?),
            event: Event {
                key,
                body: row.get(3)?,
            },
        });
    }
    Ok(logged)
}

pub(super) fn log_bounds(conn: &Connection) -> Result<Option<Bounds>, Fault> {
    let end = |sql: &str| -> rusqlite::Result<Option<i64>> {
        conn.prepare_cached(sql)?
            .query_row([], |row| row.get(0))
            .optional()
    };
    let tx = conn.unchecked_transaction()?;
    let first = end("SELECT position FROM log ORDER BY position LIMIT 1")?;
    let last = end("SELECT position FROM log ORDER BY position DESC LIMIT 1")?;
    tx.commit()?;
    Ok(first.zip(last).map(|(first, last)| Bounds {
        first: unpack(first),
        last: unpack(last),
    }))
}

/// How many records of each kind, and how many events. It walks whole indexes.
pub(super) fn count(conn: &Connection) -> Result<(BTreeMap<Kind, u64>, u64), Fault> {
    let number = |sql: &str, range: &[String]| -> rusqlite::Result<u64> {
        conn.query_row(sql, rusqlite::params_from_iter(range), |row| {
            row.get::<_, i64>(0).map(i64::unsigned_abs)
        })
    };
    let tx = conn.unchecked_transaction()?;
    let mut records = BTreeMap::new();
    for kind in Kind::ALL {
        // '0' is the character after '/'.
        let range = [format!("{}/", kind.letter()), format!("{}0", kind.letter())];
        let sql = "SELECT count(*) FROM record WHERE key >= ?1 AND key < ?2";
        let count = number(sql, &range)?;
        if count > 0 {
            records.insert(kind, count);
        }
    }
    let events = number("SELECT count(*) FROM log", &[])?;
    tx.commit()?;
    Ok((records, events))
}

/// A position as the log's row id; one beyond what fits is after every event.
pub(super) fn pack(position: Position) -> i64 {
    let most = (1 << ORDINAL_BITS) - 1;
    i64::try_from(position.version.0)
        .ok()
        .and_then(|version| version.checked_mul(1 << ORDINAL_BITS))
        .map_or(i64::MAX, |base| {
            base.saturating_add(i64::from(position.ordinal.min(most)))
        })
}

fn unpack(id: i64) -> Position {
    let ordinal = id & ((1 << ORDINAL_BITS) - 1);
    Position {
        version: Version((id >> ORDINAL_BITS).cast_unsigned()),
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
    }
}

/// A limit as `SQLite` takes it.
pub(super) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_keep_their_order_as_row_ids() {
        let at = |version, ordinal| Position {
            version: Version(version),
            ordinal,
        };
        for position in [at(0, 0), at(1, 0), at(1, 65535), at(2, 0), at(1 << 46, 7)] {
            assert_eq!(unpack(pack(position)), position);
        }
        assert!(pack(at(1, 65535)) < pack(at(2, 0)));
        assert_eq!(pack(at(u64::MAX, u32::MAX)), i64::MAX);
    }
}
