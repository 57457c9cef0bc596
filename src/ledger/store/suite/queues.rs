//! Wake-ups and leases.

use std::time::Duration;

use super::Harness;
use super::draft::{P, Words, applied, attempt, contact, draft, due, get, paths, put, write};
use crate::ledger::store::{Queue, Record};
use crate::model::time::Time;

const LEASE: Duration = Duration::from_secs(30);

const fn secs(n: i64) -> Time {
    Time::from_secs(n)
}

async fn claim(h: &mut dyn Harness, queue: Queue, now: Time, limit: usize) -> Vec<Record> {
    let claimed = h.store().await.claim_due(P, queue, now, limit, LEASE).await;
    claimed.expect("a claim")
}

async fn next(h: &mut dyn Harness, queue: Queue) -> Option<Time> {
    h.store().await.next_due(P, queue).await.expect("a time")
}

/// What is due now and no other, at most `limit`, whole.
pub async fn due_records_come_earliest_first(h: &mut dyn Harness) {
    for (id, name, at) in [(1, "c", 3), (2, "a", 1), (3, "b", 2), (4, "later", 11)] {
        write(h, id, due(&attempt(name), Queue::Waiting, secs(at))).await;
    }
    write(h, 5, put(&attempt("never"), "x")).await;
    let first = claim(h, Queue::Waiting, secs(10), 2).await;
    assert_eq!(paths(&first), ["w/a", "w/b"]);
    assert_eq!(Some(&first[0]), get(h, &attempt("a")).await.as_ref());
    let second = claim(h, Queue::Waiting, secs(10), 2).await;
    assert_eq!(paths(&second), ["w/c"]);
    assert!(claim(h, Queue::Waiting, secs(10), 2).await.is_empty());
}

/// A lease saves work: the record stays as it is, comes again when the lease is over, and
/// a commit sets its time anew.
pub async fn a_lease_puts_off_and_a_commit_ends_it(h: &mut dyn Harness) {
    let key = attempt("1");
    let version = write(h, 1, due(&key, Queue::Waiting, secs(1))).await;
    assert_eq!(claim(h, Queue::Waiting, secs(10), 9).await.len(), 1);
    assert!(claim(h, Queue::Waiting, secs(39), 9).await.is_empty());
    let record = get(h, &key).await.expect("the record");
    assert_eq!(record.version, version);
    assert_eq!(record.due.map(|due| due.at), Some(secs(1)));
    assert_eq!(claim(h, Queue::Waiting, secs(40), 9).await.len(), 1);

    let sooner = due(&key, Queue::Waiting, secs(50));
    let commit = draft(h, 2).await.writes(sooner, Some(version));
    let version = applied(h, &commit).await;
    assert_eq!(claim(h, Queue::Waiting, secs(50), 9).await.len(), 1);

    let commit = draft(h, 3).await.writes(put(&key, "rests"), Some(version));
    let version = applied(h, &commit).await;
    assert!(claim(h, Queue::Waiting, secs(999), 9).await.is_empty());
    assert_eq!(next(h, Queue::Waiting).await, None);

    let again = due(&key, Queue::Waiting, secs(1));
    let commit = draft(h, 4).await.writes(again, Some(version));
    let version = applied(h, &commit).await;
    let commit = draft(h, 5).await.deletes(&key, version);
    applied(h, &commit).await;
    assert!(claim(h, Queue::Waiting, secs(999), 9).await.is_empty());
}

/// Each queue sees its own records, also after a record changed its queue.
pub async fn queues_do_not_mix(h: &mut dyn Harness) {
    for (id, queue) in (1..).zip(Queue::ALL) {
        write(h, id, due(&attempt(queue.name()), queue, secs(1))).await;
    }
    for queue in Queue::ALL {
        let claimed = claim(h, queue, secs(1), 9).await;
        assert_eq!(paths(&claimed), [format!("w/{}", queue.name())]);
    }
    let key = contact("moves");
    let version = write(h, 9, due(&key, Queue::Waiting, secs(2))).await;
    let moved = due(&key, Queue::Rooms, secs(2));
    let commit = draft(h, 10).await.writes(moved, Some(version));
    applied(h, &commit).await;
    assert!(claim(h, Queue::Waiting, secs(2), 9).await.is_empty());
    assert_eq!(claim(h, Queue::Rooms, secs(2), 9).await.len(), 1);
}

/// The sleeper must know of the end of a lease too.
pub async fn the_next_wake_up_counts_leases(h: &mut dyn Harness) {
    assert_eq!(next(h, Queue::Rooms).await, None);
    write(h, 1, due(&attempt("1"), Queue::Rooms, secs(7))).await;
    write(h, 2, due(&attempt("2"), Queue::Rooms, secs(20))).await;
    write(h, 3, due(&attempt("3"), Queue::Waiting, secs(1))).await;
    assert_eq!(next(h, Queue::Rooms).await, Some(secs(7)));
    claim(h, Queue::Rooms, secs(8), 9).await;
    assert_eq!(next(h, Queue::Rooms).await, Some(secs(20)));
    claim(h, Queue::Rooms, secs(21), 9).await;
    assert_eq!(next(h, Queue::Rooms).await, Some(secs(38)));
}
