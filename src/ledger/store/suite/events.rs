//! The log, and what may be forgotten.

use super::Harness;
use super::draft::{AT, P, Words, applied, attempt, contact, draft, due, event, get, put, write};
use crate::ledger::store::{Bounds, Commit, Kind, Position, Queue, Trim, Version};
use crate::model::time::Time;

/// A commit with `count` events about `name`, written at `at`.
async fn saying(h: &mut dyn Harness, id: u128, name: &str, count: usize, at: Time) -> Version {
    let key = attempt(name);
    let mut commit = Commit {
        at,
        ..draft(h, id).await
    }
    .writes(put(&key, "x"), None);
    for n in 0..count {
        commit = commit.says(event(&key, &format!("{name}-{n}")));
    }
    applied(h, &commit).await
}

async fn texts(h: &mut dyn Harness, after: Position, limit: usize) -> (Vec<String>, Position) {
    let log = h.store().await.changes_since(P, after, limit).await;
    let log = log.expect("the log");
    let last = log.last().map_or(after, |logged| logged.position);
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    let texts = log.iter().map(|logged| text(&logged.event.body)).collect();
    (texts, last)
}

/// Pages follow each other, inside a commit too.
pub async fn events_are_read_in_order_and_in_pages(h: &mut dyn Harness) {
    saying(h, 1, "a", 3, AT).await;
    saying(h, 2, "b", 0, AT).await;
    saying(h, 3, "c", 2, AT).await;
    let (first, next) = texts(h, Position::START, 2).await;
    assert_eq!(first, ["a-0", "a-1"]);
    let (second, next) = texts(h, next, 2).await;
    assert_eq!(second, ["a-2", "c-0"]);
    let (third, next) = texts(h, next, 2).await;
    assert_eq!(third, ["c-1"]);
    assert_eq!(texts(h, next, 2).await.0, [""; 0]);
    let log = h.store().await.changes_since(P, Position::START, 1).await;
    let logged = log.expect("the log").remove(0);
    assert_eq!((logged.at, logged.event.key), (AT, attempt("a")));
}

/// First and last event, and nothing of an empty log.
pub async fn the_log_says_where_it_begins_and_ends(h: &mut dyn Harness) {
    assert_eq!(h.store().await.log_bounds(P).await, Ok(None));
    write(h, 1, put(&contact("silent"), "x")).await;
    assert_eq!(h.store().await.log_bounds(P).await, Ok(None));
    let first = saying(h, 2, "a", 2, AT).await;
    let last = saying(h, 3, "b", 2, AT).await;
    let bounds = Bounds {
        first: at(first, 0),
        last: at(last, 1),
    };
    assert_eq!(h.store().await.log_bounds(P).await, Ok(Some(bounds)));
}

const fn at(version: Version, ordinal: u32) -> Position {
    Position { version, ordinal }
}

/// The wall clock stepped back between the second and the third commit.
pub async fn trimming_events_leaves_no_hole_and_keeps_the_last(h: &mut dyn Harness) {
    let old = Time::from_secs(10);
    let new = Time::from_secs(20);
    saying(h, 1, "a", 3, old).await;
    let second = saying(h, 2, "b", 1, new).await;
    let third = saying(h, 3, "c", 1, old).await;
    let trim = |before, limit| (Trim::Events, before, limit);
    for ((what, before, limit), expected) in [
        (trim(old, 9), 0),
        (trim(new, 2), 2),
        (trim(new, 9), 1),
        (trim(new, 9), 0),
    ] {
        let trimmed = h.store().await.trim(P, what, before, limit).await;
        assert_eq!(trimmed, Ok(expected));
    }
    let (left, _) = texts(h, Position::START, 9).await;
    assert_eq!(left, ["b-0", "c-0"], "a younger event stops the trim");
    let bounds = |first| Bounds {
        first: at(first, 0),
        last: at(third, 0),
    };
    assert_eq!(
        h.store().await.log_bounds(P).await,
        Ok(Some(bounds(second)))
    );
    let all = Time::from_secs(99);
    assert_eq!(h.store().await.trim(P, Trim::Events, all, 9).await, Ok(1));
    assert_eq!(h.store().await.trim(P, Trim::Events, all, 9).await, Ok(0));
    assert_eq!(h.store().await.log_bounds(P).await, Ok(Some(bounds(third))));
}

/// Only records of that kind, without a due time, written before the moment.
pub async fn trimming_records_spares_the_due_and_the_young(h: &mut dyn Harness) {
    let moment = Time::from_secs(50);
    let mut id = 0;
    for (put, at) in [
        (put(&attempt("old-1"), "x"), 10),
        (put(&attempt("old-2"), "x"), 11),
        (put(&attempt("old-3"), "x"), 12),
        (put(&attempt("young"), "x"), 50),
        (due(&attempt("due"), Queue::Attempts, Time::ZERO), 10),
        (put(&contact("other"), "x"), 10),
    ] {
        id += 1;
        let commit = Commit {
            at: Time::from_secs(at),
            ..draft(h, id).await
        };
        applied(h, &commit.writes(put, None)).await;
    }
    let what = Trim::Records(Kind::Attempt);
    for expected in [2, 1, 0] {
        let trimmed = h.store().await.trim(P, what, moment, 2).await;
        assert_eq!(trimmed, Ok(expected));
    }
    for (key, stays) in [
        (attempt("old-1"), false),
        (attempt("old-2"), false),
        (attempt("old-3"), false),
        (attempt("young"), true),
        (attempt("due"), true),
        (contact("other"), true),
    ] {
        assert_eq!(get(h, &key).await.is_some(), stays, "{key}");
    }
}
