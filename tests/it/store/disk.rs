//! What only a file can be: held, read-only, damaged, foreign, newer, copied, full.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringonce::ledger::store::sqlite::{OpenError, Options, Sqlite, adopt, inspect, restored};
use ringonce::ledger::store::{Committed, Due, Error, Failure, Queue, Store};
use ringonce::model::time::Time;
use ringonce::runtime::ids::RandomIds;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{P, commit_of, key};

const BORN: Time = Time::from_secs(100);
const LATER: Time = Time::from_secs(200);

struct Place {
    folder: TempDir,
    ids: RandomIds,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            ids: RandomIds::seeded(7),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ringonce.db")
    }

    fn open_with(&self, options: &Options, now: Time) -> Result<Sqlite, OpenError> {
        Sqlite::open(&self.path(), options, now, &self.ids)
    }

    fn open(&self, now: Time) -> Result<Sqlite, OpenError> {
        self.open_with(&Options::default(), now)
    }

    /// A closed store with one record.
    async fn filled() -> Self {
        let place = Self::new();
        let store = place.open(BORN).expect("a store");
        let commit = commit_of(&store, 1, "1", 10);
        assert!(matches!(
            store.commit(P, &commit).await,
            Ok(Committed::Applied(_))
        ));
        store.close().await;
        place
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(self.path())
            .expect("the file");
        file.write_all_at(bytes, offset).expect("the file");
    }
}

/// The message names the path and what to do.
fn says(error: &OpenError, path: &Path, remedy: &str) {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(text.contains(remedy), "{text}");
}

#[tokio::test]
async fn a_second_serve_is_refused_and_inspection_is_not() {
    let place = Place::new();
    let first = place.open(BORN).unwrap();
    let commit = commit_of(&first, 1, "1", 10);
    first.commit(P, &commit).await.unwrap();

    let second = place.open(LATER).unwrap_err();
    let OpenError::Held { holder, .. } = &second else {
        panic!("{second:?}");
    };
    assert_eq!(*holder, Some(std::process::id()));
    says(&second, &place.path(), "stop that one first");
    let adopted = adopt(&place.path(), BORN, LATER, &place.ids);
    assert!(
        matches!(adopted, Err(OpenError::Held { .. })),
        "{adopted:?}"
    );

    let info = inspect(&place.path()).unwrap();
    assert_eq!(info.epoch, first.epoch());
    assert_eq!(info.records.values().sum::<u64>(), 1);
    assert_eq!(info, first.info().await.unwrap());

    first.close().await;
    place.open(LATER).unwrap().close().await;
}

/// A second name of the file is the same store, and one lock is for both.
#[tokio::test]
async fn another_name_of_a_store_is_no_other_store() {
    let place = Place::new();
    let first = place.open(BORN).unwrap();
    let beside = |name: &str| place.path().with_file_name(name);
    let open = |path: &Path| Sqlite::open(path, &Options::default(), LATER, &place.ids).map(drop);
    std::os::unix::fs::symlink(place.path(), beside("soft.db")).unwrap();
    let second = open(&beside("soft.db"));
    assert!(matches!(second, Err(OpenError::Held { .. })), "{second:?}");
    first.close().await;
    fs::hard_link(place.path(), beside("hard.db")).unwrap();
    for name in [place.path(), beside("hard.db")] {
        let linked = open(&name).unwrap_err();
        says(&linked, &name, "remove all names but one");
    }
    fs::remove_file(beside("hard.db")).unwrap();
    place.open(LATER).unwrap().close().await;
}

/// A process that is killed holds no lease, however soon the next one comes.
#[tokio::test]
async fn a_lease_ends_with_the_process_that_took_it() {
    let place = Place::new();
    let options = Options {
        forget_leases: true,
        ..Options::default()
    };
    let lease = Duration::from_secs(30);
    for forget in [true, false] {
        let store = place.open_with(&options, BORN).unwrap();
        let mut commit = commit_of(&store, u128::from(forget), &forget.to_string(), 10);
        commit.put[0].due = Some(Due {
            queue: Queue::Waiting,
            at: BORN,
        });
        store.commit(P, &commit).await.unwrap();
        let claimed = store.claim_due(P, Queue::Waiting, LATER, 9, lease).await;
        let claimed = claimed.unwrap().len();
        let again = store.claim_due(P, Queue::Waiting, LATER, 9, lease).await;
        assert_eq!(again.unwrap().len(), 0);
        store.close().await;
        let options = Options {
            forget_leases: forget,
            ..Options::default()
        };
        let store = place.open_with(&options, LATER).unwrap();
        let again = store.claim_due(P, Queue::Waiting, LATER, 9, lease).await;
        assert_eq!(again.unwrap().len(), if forget { claimed } else { 0 });
        store.close().await;
    }
}

#[tokio::test]
async fn the_file_and_its_folder_are_made_for_their_owner_only() {
    let place = Place::new();
    let deep = place.folder.path().join("a/b");
    let path = deep.join("ringonce.db");
    let store = Sqlite::open(&path, &Options::default(), BORN, &place.ids).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&deep)), (0o600, 0o700));
    store.close().await;
}

#[tokio::test]
async fn a_store_keeps_its_epoch_and_a_moved_file_does_too() {
    let place = Place::new();
    let store = place.open(BORN).unwrap();
    let epoch = store.epoch();
    assert_eq!(epoch.since, BORN);
    store.close().await;
    let store = place.open(LATER).unwrap();
    assert_eq!(store.epoch(), epoch);
    store.close().await;
    let moved = place.folder.path().join("moved.db");
    fs::rename(place.path(), &moved).unwrap();
    let store = Sqlite::open(&moved, &Options::default(), LATER, &place.ids).unwrap();
    assert_eq!(store.epoch(), epoch);
}

#[tokio::test]
async fn a_copied_file_is_another_history() {
    let place = Place::filled().await;
    let old = inspect(&place.path()).unwrap().epoch;
    let backup = place.folder.path().join("backup.db");
    fs::copy(place.path(), &backup).unwrap();
    fs::rename(&backup, place.path()).unwrap();

    let store = place.open(LATER).unwrap();
    assert_ne!(store.epoch().id, old.id);
    assert_eq!(store.epoch().since, LATER);
    let loaded = store.load(P, &[key("1")]).await.unwrap();
    assert_eq!(loaded.len(), 1, "what it held is kept");
    let new = store.epoch();
    store.close().await;
    assert_eq!(
        place.open(LATER).unwrap().epoch(),
        new,
        "once, not at every opening"
    );
}

#[tokio::test]
async fn a_file_put_in_its_place_stops_the_writer() {
    let place = Place::filled().await;
    let backup = place.folder.path().join("backup.db");
    fs::copy(place.path(), &backup).unwrap();
    let store = place.open(LATER).unwrap();
    fs::rename(&backup, place.path()).unwrap();
    let commit = commit_of(&store, 2, "2", 10);
    let refused = Err(Error::NotApplied(Failure::Epoch));
    assert_eq!(store.commit(P, &commit).await, refused);
    fs::remove_file(place.path()).unwrap();
    assert_eq!(store.commit(P, &commit).await, refused);
}

#[tokio::test]
async fn a_person_adopts_what_was_before() {
    let place = Place::filled().await;
    let old = inspect(&place.path()).unwrap().epoch;
    let since = Time::from_secs(5);
    let adopted = adopt(&place.path(), since, LATER, &place.ids).unwrap();
    assert_eq!(adopted.since, since);
    assert_eq!(adopted.id, old.id, "what waits in it is still trusted");
    assert_eq!(inspect(&place.path()).unwrap().epoch, adopted);
    assert_eq!(place.open(LATER).unwrap().epoch(), adopted);

    let none = place.folder.path().join("none.db");
    let missing = adopt(&none, since, LATER, &place.ids).unwrap_err();
    assert!(matches!(missing, OpenError::Missing { .. }), "{missing:?}");
    says(&missing, &none, "check the path");
    assert!(matches!(inspect(&none), Err(OpenError::Missing { .. })));
    assert!(!none.exists(), "looking makes nothing");
}

#[tokio::test]
async fn a_person_says_that_it_came_back_from_a_backup() {
    let place = Place::filled().await;
    let old = inspect(&place.path()).unwrap().epoch;
    let told = restored(&place.path(), LATER, &place.ids).unwrap();
    assert_eq!(told.since, LATER);
    assert_ne!(told.id, old.id, "what waits in it is distrusted");
    assert_eq!(place.open(LATER).unwrap().epoch(), told);
}

#[tokio::test]
async fn a_closed_store_is_whole_in_its_file() {
    for _ in 0..20 {
        let place = Place::filled().await;
        let log = place.path().with_extension("db-wal");
        let left = fs::metadata(&log).map_or(0, |found| found.len());
        assert_eq!(left, 0, "the log still has what the file lacks");
    }
}

#[tokio::test]
async fn a_read_only_file_is_told() {
    let place = Place::filled().await;
    // Byte 18 is the write version: a greater one than SQLite knows makes the file
    // read-only, for a superuser too.
    place.overwrite(18, &[9]);
    let error = place.open(LATER).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
    says(&error, &place.path(), "writable");
}

#[tokio::test]
async fn damage_is_told() {
    let place = Place::filled().await;
    place.overwrite(4096, &[0xff; 4096]);
    let error = place.open(LATER).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    says(&error, &place.path(), "restore a backup");

    // Damage behind the root pages is found by the check of a small file, and at the
    // latest where it is read.
    let place = Place::filled().await;
    let length = fs::metadata(place.path()).unwrap().len();
    for page in 2..length / 4096 {
        place.overwrite(page * 4096, &[0xff; 4096]);
    }
    let error = place.open(LATER).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    let unchecked = Options {
        check_bytes: 0,
        ..Options::default()
    };
    let store = place.open_with(&unchecked, LATER).unwrap();
    let read = store.load(P, &[key("1")]).await;
    assert!(
        matches!(read, Err(Error::NotApplied(Failure::Corrupt(_)))),
        "{read:?}"
    );
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let place = Place::new();
    fs::write(
        place.path(),
        "[server]\nlisten = \"127.0.0.1\"\n".repeat(200),
    )
    .unwrap();
    let before = fs::read(place.path()).unwrap();
    let error = place.open(LATER).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    says(&error, &place.path(), "not a ringonce store");
    assert_eq!(fs::read(place.path()).unwrap(), before);

    let place = Place::new();
    let theirs = Connection::open(place.path()).unwrap();
    theirs
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    drop(theirs);
    let before = fs::read(place.path()).unwrap();
    let error = place.open(LATER).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    assert!(matches!(
        inspect(&place.path()),
        Err(OpenError::Foreign { .. })
    ));
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

#[tokio::test]
async fn a_newer_format_is_not_opened() {
    let place = Place::filled().await;
    let newer = Connection::open(place.path()).unwrap();
    newer.pragma_update(None, "user_version", 2).unwrap();
    drop(newer);
    for error in [
        place.open(LATER).map(drop).unwrap_err(),
        inspect(&place.path()).map(drop).unwrap_err(),
    ] {
        let OpenError::Newer { found, known, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((*found, *known), (2, 1));
        says(&error, &place.path(), "start the newer program");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_one_commit_and_loses_none() {
    let place = Place::new();
    let small = Options {
        max_bytes: Some(128 * 1024),
        ..Options::default()
    };
    let store = Arc::new(place.open_with(&small, BORN).unwrap());
    let mut written = Vec::new();
    let refused = loop {
        let n = written.len();
        assert!(n < 1000, "it never fills");
        let commit = commit_of(store.as_ref(), n as u128 + 1, &n.to_string(), 2000);
        match store.commit(P, &commit).await {
            Ok(_) => written.push(key(&n.to_string())),
            Err(error) => {
                assert_eq!(error, Error::NotApplied(Failure::Full));
                break commit;
            }
        }
    };
    assert!(written.len() > 10);
    // A group in which one is too large: the others are done.
    let few = commit_of(store.as_ref(), 5001, "few", 1);
    let huge = commit_of(store.as_ref(), 5000, "huge", 1_000_000);
    let ends = tokio::join!(biased; store.commit(P, &huge), store.commit(P, &few));
    assert_eq!(ends.0, Err(Error::NotApplied(Failure::Full)));
    drop(ends.1);
    let loaded = store.load(P, &written).await.unwrap();
    assert_eq!(loaded.len(), written.len());
    assert!(
        store
            .load(P, &[refused.put[0].key.clone()])
            .await
            .unwrap()
            .is_empty()
    );
    store.close().await;

    let store = place.open(LATER).unwrap();
    let loaded = store.load(P, &written).await.unwrap();
    assert_eq!(loaded.len(), written.len());
    let again = store.commit(P, &refused).await;
    assert!(matches!(again, Ok(Committed::Applied(_))), "{again:?}");
}
