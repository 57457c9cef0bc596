//! Conditional commits, conflicts and repetitions.

use futures_util::future::join_all;

use super::Harness;
use super::draft::{
    P, Words, applied, attempt, body, conflict, contact, draft, event, get, put, send, write,
};
use crate::ledger::store::{Committed, Error, Failure, Position, Put, Version};
use crate::model::id::Partition;

/// Several records of one commit are there together, whole.
pub async fn a_commit_writes_all_its_records(h: &mut dyn Harness) {
    let (one, two, none) = (attempt("1"), contact("2"), attempt("none"));
    let commit = draft(h, 1)
        .await
        .writes(put(&one, "one"), None)
        .writes(put(&two, "two"), None);
    let version = applied(h, &commit).await;
    let keys = [one.clone(), two.clone(), none];
    let found = h.store().await.load(P, &keys).await.expect("a load");
    assert_eq!(found.len(), 2);
    for (key, body) in [(one, "one"), (two, "two")] {
        let record = &found[&key];
        assert_eq!(record.body, body.as_bytes());
        assert_eq!(record.version, version);
        assert_eq!(record.commit, commit.id);
        assert_eq!((record.format, &record.due), (1, &None));
        assert_eq!(record.key, key);
    }
}

/// `None` means absent: it holds once.
pub async fn an_expected_absence_holds_or_conflicts(h: &mut dyn Harness) {
    let key = attempt("1");
    write(h, 1, put(&key, "first")).await;
    let again = draft(h, 2).await.writes(put(&key, "second"), None);
    conflict(h, &again).await;
    assert_eq!(body(h, &key).await.as_deref(), Some("first"));
    let absent = draft(h, 3)
        .await
        .writes(put(&attempt("2"), "x"), Some(Version(1)));
    conflict(h, &absent).await;
    assert_eq!(body(h, &attempt("2")).await, None);
}

/// One expectation that fails takes the whole commit with it.
pub async fn an_old_version_conflicts_and_changes_nothing(h: &mut dyn Harness) {
    let (one, two) = (attempt("1"), attempt("2"));
    let old = write(h, 1, put(&one, "old")).await;
    let second = draft(h, 2).await.writes(put(&one, "new"), Some(old));
    let new = applied(h, &second).await;
    assert!(new > old);
    let stale = draft(h, 3)
        .await
        .writes(put(&two, "two"), None)
        .writes(put(&one, "stale"), Some(old))
        .says(event(&one, "stale"));
    conflict(h, &stale).await;
    assert_eq!(body(h, &one).await.as_deref(), Some("new"));
    assert_eq!(body(h, &two).await, None);
    let log = h.store().await.changes_since(P, Position::START, 9).await;
    assert_eq!(log, Ok(vec![]));
}

/// A record may be expected without being written.
pub async fn a_record_that_is_only_read_is_expected_too(h: &mut dyn Harness) {
    let (read, written) = (contact("1"), attempt("1"));
    let version = write(h, 1, put(&read, "held")).await;
    let absent = draft(h, 2)
        .await
        .reads(&read, None)
        .writes(put(&written, "x"), None);
    conflict(h, &absent).await;
    let present = draft(h, 3)
        .await
        .reads(&read, Some(version))
        .reads(&contact("none"), None)
        .writes(put(&written, "x"), None);
    applied(h, &present).await;
    let unchanged = get(h, &read).await.expect("the record that was read");
    assert_eq!(unchanged.version, version);
}

/// A conflict shows every expected key: present, changed and absent.
pub async fn a_conflict_answers_with_what_stands(h: &mut dyn Harness) {
    let (one, two) = (attempt("1"), attempt("2"));
    write(h, 1, put(&one, "stands")).await;
    let commit = draft(h, 2)
        .await
        .writes(put(&one, "x"), None)
        .reads(&two, None);
    let present = conflict(h, &commit).await;
    assert_eq!(present.len(), 2);
    assert_eq!(present[&two], None);
    assert_eq!(present[&one], get(h, &one).await);
}

/// A deletion has an expectation like any write.
pub async fn a_deletion_is_conditional_and_removes(h: &mut dyn Harness) {
    let key = attempt("1");
    let version = write(h, 1, put(&key, "x")).await;
    let wrong = draft(h, 2).await.deletes(&key, Version(version.0 + 1));
    conflict(h, &wrong).await;
    assert!(get(h, &key).await.is_some());
    let right = draft(h, 3).await.deletes(&key, version);
    let deleted = applied(h, &right).await;
    assert!(deleted > version);
    assert_eq!(get(h, &key).await, None);
    let anew = write(h, 4, put(&key, "again")).await;
    assert!(anew > deleted, "a version never comes back");
}

/// The same commit again, as after an unknown answer, is done once.
pub async fn a_repetition_answers_with_the_first_number(h: &mut dyn Harness) {
    let (one, two, read) = (attempt("1"), attempt("2"), contact("1"));
    write(h, 1, put(&contact("9"), "other")).await;
    let commit = draft(h, 2)
        .await
        .writes(put(&one, "1"), None)
        .writes(put(&two, "2"), None)
        .reads(&read, None)
        .says(event(&one, "once"));
    let first = applied(h, &commit).await;
    // A record that was only read may change meanwhile: the commit was done before that.
    write(h, 3, put(&read, "later")).await;
    assert_eq!(applied(h, &commit).await, first);
    assert_eq!(applied(h, &commit).await, first);
    let log = h.store().await.changes_since(P, Position::START, 9).await;
    assert_eq!(log.expect("the log").len(), 1);
}

/// Where a record moved on, a repetition must not say that its state still stands.
pub async fn a_repetition_over_newer_records_conflicts(h: &mut dyn Harness) {
    let (one, two) = (attempt("1"), attempt("2"));
    let commit = draft(h, 1)
        .await
        .writes(put(&one, "1"), None)
        .writes(put(&two, "2"), None);
    let first = applied(h, &commit).await;
    let newer = draft(h, 2).await.writes(put(&two, "newer"), Some(first));
    applied(h, &newer).await;
    let present = conflict(h, &commit).await;
    let shown = |key| present[key].as_ref().map(|record| record.commit);
    assert_eq!(shown(&one), Some(commit.id), "it shows that it was done");
    assert_eq!(shown(&two), Some(newer.id));
}

/// A record that is gone again proves nothing.
pub async fn a_deleted_record_is_no_repetition(h: &mut dyn Harness) {
    let (one, two) = (attempt("1"), attempt("2"));
    let commit = draft(h, 1)
        .await
        .writes(put(&one, "1"), None)
        .writes(put(&two, "2"), None);
    let first = applied(h, &commit).await;
    let gone = draft(h, 2).await.deletes(&two, first);
    applied(h, &gone).await;
    conflict(h, &commit).await;
}

/// Every commit has a greater number, and all that it writes has that one.
pub async fn versions_grow_and_are_shared(h: &mut dyn Harness) {
    let mut last = Version(0);
    for n in 1..=5_u32 {
        let (one, two) = (attempt(&format!("{n}")), contact(&format!("{n}")));
        let commit = draft(h, n.into())
            .await
            .writes(put(&one, "1"), None)
            .writes(put(&two, "2"), None)
            .says(event(&one, "a"))
            .says(event(&two, "b"));
        let version = applied(h, &commit).await;
        assert!(version > last);
        let since = Position {
            version: last,
            ordinal: u32::MAX,
        };
        let log = h.store().await.changes_since(P, since, 9).await;
        let positions: Vec<Position> = (log.expect("the log").iter())
            .map(|logged| logged.position)
            .collect();
        let at = |ordinal| Position { version, ordinal };
        assert_eq!(positions, [at(0), at(1)]);
        for key in [one, two] {
            assert_eq!(
                get(h, &key).await.map(|record| record.version),
                Some(version)
            );
        }
        last = version;
    }
}

/// An older writer does not overwrite what it cannot read; an equal or newer one does.
pub async fn a_newer_format_is_not_overwritten(h: &mut dyn Harness) {
    let key = attempt("1");
    let of = |format, body| Put {
        format,
        ..put(&key, body)
    };
    let new = write(h, 1, of(2, "new")).await;
    let commit = draft(h, 2).await.writes(of(1, "old"), Some(new));
    let refused = Failure::Newer("a/w/1".to_owned());
    assert_eq!(send(h, &commit).await, Err(Error::NotApplied(refused)));
    assert_eq!(body(h, &key).await.as_deref(), Some("new"));
    let commit = draft(h, 3).await.writes(of(3, "newest"), Some(new));
    applied(h, &commit).await;
}

/// Commits that break the port's rules, and partitions that are not there.
pub async fn what_breaks_the_rules_is_refused(h: &mut dyn Harness) {
    let key = attempt("1");
    let empty = draft(h, 1).await;
    let mut unexpected = empty.clone();
    unexpected.put.push(put(&key, "x"));
    let mut unexpected_deletion = empty.clone();
    unexpected_deletion.delete.push(key.clone());
    let twice = (empty.clone())
        .writes(put(&key, "x"), None)
        .writes(put(&key, "y"), None);
    let only_events = empty.clone().says(event(&key, "x"));
    for commit in [unexpected, unexpected_deletion, twice, only_events] {
        let answer = send(h, &commit).await;
        assert!(
            matches!(answer, Err(Error::NotApplied(Failure::Other(_)))),
            "{answer:?}"
        );
    }
    let store = h.store().await;
    let nowhere = Partition(store.partitions());
    let commit = empty.writes(put(&key, "x"), None);
    assert!(matches!(
        store.commit(nowhere, &commit).await,
        Err(Error::NotApplied(_))
    ));
    assert!(store.load(nowhere, &[]).await.is_err());
}

/// Many at once for one key: one is applied each time, and the others see its record.
pub async fn two_writers_of_one_key_have_one_winner(h: &mut dyn Harness) {
    let key = attempt("contested");
    let mut present: Option<Version> = None;
    for round in 0..25_u128 {
        let mut commits = Vec::new();
        for writer in 0..4_u128 {
            let own = attempt(&format!("{round}-{writer}"));
            commits.push(
                draft(h, round * 100 + writer + 1)
                    .await
                    .writes(put(&own, "own"), None)
                    .writes(put(&key, &format!("{round}-{writer}")), present),
            );
        }
        let store = h.store().await;
        let answers = join_all(commits.iter().map(|commit| store.commit(P, commit))).await;
        let mut won = None;
        for (commit, answer) in commits.iter().zip(answers) {
            match answer.expect("an answer") {
                Committed::Applied(version) => {
                    assert_eq!(won.replace((version, commit.id)), None, "two winners");
                }
                Committed::Conflict(_) => {}
            }
        }
        let (version, id) = won.expect("a winner");
        let record = get(h, &key).await.expect("the contested record");
        assert_eq!((record.version, record.commit), (version, id));
        let mut written = 0;
        for commit in &commits {
            written += usize::from(get(h, &commit.put[0].key).await.is_some());
        }
        assert_eq!(written, 1, "a loser wrote something");
        present = Some(version);
    }
}
