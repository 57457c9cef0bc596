//! The write-ahead log beside the file: it grows with what is written, and must end somewhere.

use std::fs;
use std::path::PathBuf;

use ringonce::ledger::store::Store;
use ringonce::ledger::store::sqlite::{Options, Sqlite};
use ringonce::model::time::Time;
use ringonce::runtime::ids::RandomIds;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{P, commit_of};

fn store_of(place: &TempDir) -> PathBuf {
    place.path().join("ringonce.db")
}

fn open(place: &TempDir, options: &Options) -> Sqlite {
    let ids = RandomIds::seeded(7);
    Sqlite::open(&store_of(place), options, Time::from_secs(100), &ids).unwrap()
}

/// Commits so often; how many pages the log had at most.
async fn longest_log(place: &TempDir, store: &Sqlite, commits: u128) -> u64 {
    let log = place.path().join("ringonce.db-wal");
    let mut longest = 0;
    for n in 0..commits {
        let commit = commit_of(store, n + 1, &n.to_string(), 600);
        store.commit(P, &commit).await.unwrap();
        longest = longest.max(fs::metadata(&log).unwrap().len() / 4096);
    }
    longest
}

#[tokio::test]
async fn the_log_of_the_file_stays_short_under_load() {
    let place = tempfile::tempdir().unwrap();
    let options = Options {
        checkpoint_pages: 16,
        group: 4,
        ..Options::default()
    };
    let store = open(&place, &options);
    let longest = longest_log(&place, &store, 400).await;
    // Four times the soft limit, and what the one group beyond it wrote.
    assert!(longest < 128, "{longest} pages");
}

/// The log must not fill the disk: to be moved, it needs space as well.
#[tokio::test]
async fn the_log_stays_very_short_while_little_is_left_on_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let options = Options {
        spare_bytes: u64::MAX,
        group: 4,
        ..Options::default()
    };
    let store = open(&place, &options);
    let longest = longest_log(&place, &store, 200).await;
    // What is too few to be moved, and what the one group beyond it wrote.
    assert!(longest < 100, "{longest} pages");
    let moved = fs::metadata(store_of(&place)).unwrap().len();
    assert!(moved > 100 * 600, "{moved} bytes are in the file");
}

/// Whoever reads for long lets the log grow, and it becomes short again afterwards.
#[tokio::test]
async fn a_log_that_a_reader_let_grow_is_cut_once_the_reader_is_done() {
    let place = tempfile::tempdir().unwrap();
    let options = Options {
        checkpoint_pages: 16,
        group: 4,
        ..Options::default()
    };
    let store = open(&place, &options);
    let log = || {
        let log = place.path().join("ringonce.db-wal");
        fs::metadata(log).unwrap().len() / 4096
    };
    let write = async |from: u128, to: u128| {
        for n in from..to {
            let commit = commit_of(&store, n + 1, &n.to_string(), 600);
            store.commit(P, &commit).await.unwrap();
        }
    };
    let reader = Connection::open(store_of(&place)).unwrap();
    let begin = "BEGIN; SELECT count(*) FROM record;";
    reader.execute_batch(begin).unwrap();
    write(0, 200).await;
    assert!(log() > 300, "{} pages", log());
    drop(reader);
    write(200, 300).await;
    assert!(log() < 128, "{} pages", log());
}
