//! Secondary indexes.

use super::Harness;
use super::draft::{P, Words, applied, attempt, draft, indexed, paths, put, write};
use crate::ledger::store::{Cursor, Page, Scan};

fn range(from: &str, to: &str) -> Scan {
    Scan {
        index: "time",
        from: from.to_owned(),
        to: to.to_owned(),
        after: None,
        descending: false,
        limit: 100,
    }
}

async fn scan(h: &mut dyn Harness, scan: &Scan) -> Page {
    h.store().await.scan(P, scan).await.expect("a page")
}

/// Two records a value, so that keys decide among equals.
async fn fill(h: &mut dyn Harness) {
    let mut id = 0;
    for value in ["1", "2", "3", "30"] {
        for name in ["b", "a"] {
            id += 1;
            let key = attempt(&format!("{value}{name}"));
            write(h, id, indexed(&key, "time", &[value])).await;
        }
    }
    write(h, 99, indexed(&attempt("other"), "other", &["2"])).await;
}

/// From `from` to before `to`, by value and then by key, as text.
pub async fn a_scan_walks_its_range_both_ways(h: &mut dyn Harness) {
    fill(h).await;
    let all = scan(h, &range("", "~")).await;
    let mut order = [
        "w/1a", "w/1b", "w/2a", "w/2b", "w/3a", "w/3b", "w/30a", "w/30b",
    ];
    assert_eq!(paths(&all.records), order);
    assert_eq!(all.next, None);
    let down = Scan {
        descending: true,
        ..range("", "~")
    };
    order.reverse();
    assert_eq!(paths(&scan(h, &down).await.records), order);
    let part = scan(h, &range("2", "3")).await;
    assert_eq!(paths(&part.records), ["w/2a", "w/2b"]);
    let part = Scan {
        descending: true,
        ..range("2", "30")
    };
    let part = scan(h, &part).await;
    assert_eq!(paths(&part.records), ["w/3b", "w/3a", "w/2b", "w/2a"]);
    for (from, to) in [("3", "3"), ("3", "2"), ("4", "9")] {
        assert_eq!(scan(h, &range(from, to)).await, Page::default());
    }
}

/// Pages of every size, both ways, give the same as one page.
pub async fn pages_meet_without_gap_or_overlap(h: &mut dyn Harness) {
    fill(h).await;
    for descending in [false, true] {
        let whole = Scan {
            descending,
            ..range("1", "30")
        };
        let expected = scan(h, &whole).await.records;
        assert_eq!(expected.len(), 6);
        for limit in 1..=7 {
            let mut found = Vec::new();
            let mut after = None;
            loop {
                let page = Scan {
                    after,
                    limit,
                    ..whole.clone()
                };
                let page = scan(h, &page).await;
                assert!(page.records.len() <= limit);
                found.extend(page.records);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "pages of {limit}");
        }
    }
    // A cursor stays good when its record is gone, and outside the range it is no way in.
    let after = |value: &str, key: &str| {
        Some(Cursor {
            value: value.to_owned(),
            key: key.to_owned(),
        })
    };
    let page = Scan {
        after: after("2", "a/w/2aa"),
        ..range("1", "3")
    };
    assert_eq!(paths(&scan(h, &page).await.records), ["w/2b"]);
    let page = Scan {
        after: after("0", "a/w/0"),
        ..range("2", "3")
    };
    assert_eq!(paths(&scan(h, &page).await.records), ["w/2a", "w/2b"]);
}

/// A rewrite replaces all entries, a deletion removes them, several values find a record
/// several times.
pub async fn index_entries_follow_their_record(h: &mut dyn Harness) {
    let key = attempt("1");
    let version = write(h, 1, indexed(&key, "time", &["1", "2", "2"])).await;
    let all = range("", "~");
    assert_eq!(scan(h, &all).await.records.len(), 2);
    let moved = indexed(&key, "time", &["2", "5"]);
    let commit = draft(h, 2).await.writes(moved, Some(version));
    let version = applied(h, &commit).await;
    assert!(scan(h, &range("1", "2")).await.records.is_empty());
    let found = scan(h, &range("2", "9")).await.records;
    assert_eq!(paths(&found), ["w/1", "w/1"]);
    assert_eq!(
        found[0].version, version,
        "an entry leads to the present record"
    );
    let bare = draft(h, 3).await.writes(put(&key, "bare"), Some(version));
    let version = applied(h, &bare).await;
    assert!(scan(h, &all).await.records.is_empty());
    let back = indexed(&key, "time", &["7"]);
    let commit = draft(h, 4).await.writes(back, Some(version));
    let version = applied(h, &commit).await;
    assert_eq!(scan(h, &all).await.records.len(), 1);
    let gone = draft(h, 5).await.deletes(&key, version);
    applied(h, &gone).await;
    assert!(scan(h, &all).await.records.is_empty());
}
