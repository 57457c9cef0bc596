//! How fast the file store is. Ignored: figures, not promises. Run with
//! `cargo test --release --test it store::speed -- --ignored --nocapture --test-threads 1`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use ringonce::ledger::store::sqlite::{Options, Sqlite};
use ringonce::ledger::store::{
    Commit, CommitId, Committed, Due, Entry, Event, Key, Kind, Put, Queue, Scan, Store,
};
use ringonce::model::time::Time;
use ringonce::runtime::ids::RandomIds;
use tempfile::TempDir;
use tokio::time::Instant;
use uuid::Uuid;

use super::P;

/// As a claim: five records of 600 bytes, indexed as an attempt is, and one event.
fn claim(store: &dyn Store, n: u32) -> Commit {
    let name = format!("workspace/attempt-{n:08}");
    let at = Time::from_secs(i64::from(n));
    let entry = |name, value: &str| Entry {
        name,
        value: format!("workspace/{value}"),
    };
    let keys = Kind::ALL[..5]
        .iter()
        .map(|kind| Key::new(*kind, name.clone()));
    let put = |key: Key| Put {
        format: 1,
        due: (key.kind() == Kind::Attempt).then_some(Due {
            queue: Queue::Waiting,
            at,
        }),
        index: if key.kind() == Kind::Attempt {
            vec![
                entry("time", &format!("{n:012}")),
                entry("campaign", &format!("spring/{n:012}")),
                entry("state", &format!("queued/{n:012}")),
            ]
        } else {
            Vec::new()
        },
        body: vec![b'x'; 600],
        key,
    };
    let put: Vec<Put> = keys.map(put).collect();
    Commit {
        id: CommitId(Uuid::from_u128(u128::from(n) + 1)),
        epoch: store.epoch(),
        at,
        expect: put.iter().map(|put| (put.key.clone(), None)).collect(),
        events: vec![Event {
            key: put[0].key.clone(),
            body: vec![b'e'; 600],
        }],
        put,
        delete: Vec::new(),
    }
}

async fn fill(store: &dyn Store, count: u32, callers: u32) {
    let next = AtomicU32::new(0);
    let caller = || async {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            let answer = store.commit(P, &claim(store, n)).await;
            assert!(matches!(answer, Ok(Committed::Applied(_))), "{answer:?}");
        }
    };
    join_all((0..callers).map(|_| caller())).await;
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name| status.lines().find(|line| line.starts_with(name));
    format!("{:?} {:?}", line("VmRSS"), line("VmHWM"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn claims_a_second_and_opening_with_many() {
    let count = 100_000;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ringonce.db");
    let ids = RandomIds::seeded(1);
    let open = || Sqlite::open(&path, &Options::default(), Time::ZERO, &ids).unwrap();

    let store = Arc::new(open());
    let began = Instant::now();
    fill(store.as_ref(), count, 512).await;
    let took = began.elapsed();
    let rate = f64::from(count) / took.as_secs_f64();
    println!(
        "{count} claims, 512 callers: {took:?}, {rate:.0}/s; {}",
        memory()
    );
    let began = Instant::now();
    store.close().await;
    println!("closed in {:?}", began.elapsed());

    let began = Instant::now();
    let store = open();
    println!("opened in {:?}; {}", began.elapsed(), memory());

    let began = Instant::now();
    let scan = Scan {
        index: "time",
        from: "workspace/".to_owned(),
        to: "workspace0".to_owned(),
        after: None,
        descending: true,
        limit: 50,
    };
    let page = store.scan(P, &scan).await.unwrap();
    println!("a page of {} in {:?}", page.records.len(), began.elapsed());

    let lease = std::time::Duration::from_secs(30);
    let now = Time::from_secs(1_000_000_000);
    let began = Instant::now();
    let due = store.claim_due(P, Queue::Waiting, now, 100, lease).await;
    println!("{} due in {:?}", due.unwrap().len(), began.elapsed());
    let began = Instant::now();
    let info = store.info().await.unwrap();
    println!("info in {:?}: {info:?}", began.elapsed());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn claims_a_second_by_size_of_group() {
    for (group, callers) in [(64, 128), (256, 512), (512, 1024), (1024, 2048)] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ringonce.db");
        let ids = RandomIds::seeded(1);
        let options = Options {
            queue: 4096,
            group,
            ..Options::default()
        };
        let store = Sqlite::open(&path, &options, Time::ZERO, &ids).unwrap();
        let count = 30_000;
        let began = Instant::now();
        fill(&store, count, callers).await;
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        println!("groups of {group}, {callers} callers: {rate:.0}/s");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn one_caller_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ringonce.db");
    let ids = RandomIds::seeded(1);
    let store = Sqlite::open(&path, &Options::default(), Time::ZERO, &ids).unwrap();
    let began = Instant::now();
    fill(&store, 2_000, 1).await;
    println!(
        "2000 claims, one caller: {:?} each",
        began.elapsed() / 2_000
    );
    store.close().await;
}
