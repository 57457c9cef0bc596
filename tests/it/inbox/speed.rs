//! How fast webhooks are kept, and whether the drain keeps up. Run it on a build for release.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use ringonce::inbox::Taken;
use ringonce::lab::platform::Behaviour;
use ringonce::ledger::store::sqlite::{Options, Sqlite};
use ringonce::runtime::clock::Clock as _;
use ringonce::runtime::ids::RandomIds;
use ringonce::runtime::life::Life;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use super::sign;
use crate::world::Lab;

const SESSIONS: usize = 200;
const EVENTS: usize = 20_000;
const CALLERS: usize = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn webhooks_a_second_on_a_file() {
    let config = "[deployment]\nname = \"d-1\"\n[agent]\njoin_timeout = \"100s\"\n";
    let lab = Lab::with(1, config, |settings| {
        for worker in &mut settings.workers {
            worker.behaviour = Behaviour::Absent;
        }
    });
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ringonce.db");
    let ids = RandomIds::seeded(1);
    let now = lab.clock.now();
    let store = Sqlite::open(&path, &Options::default(), now, &ids).unwrap();
    let alive = lab.node_on(Arc::new(store), None, Life::new()).await;
    let mut rooms = Vec::new();
    for n in 0..SESSIONS {
        let mut call = lab.call(&format!("a{n}"), &format!("+9991{n:07}00"));
        call.spec.agent.join_ms = 100_000;
        rooms.push(alive.place(call).await.placed.unwrap());
    }
    let at = lab.now().as_secs();
    let webhooks: Vec<(String, Vec<u8>)> = (0..EVENTS)
        .map(|n| {
            let placed = &rooms[n % SESSIONS];
            let body = json!({
                "event": "participant_joined",
                "id": format!("EV_{n}"),
                "createdAt": at.to_string(),
                "room": {"sid": "RM_1", "name": placed.room.as_str(), "emptyTimeout": 300,
                    "departureTimeout": 20, "creationTime": at.to_string()},
                "participant": {"sid": format!("PA_{}", n % 3), "state": "ACTIVE", "kind": "SIP",
                    "identity": placed.session.identity(), "joinedAt": at.to_string(),
                    "attributes": {"sip.callID": "SCL_1", "sip.callStatus": "dialing",
                        "sip.phoneNumber": "+12025550100", "sip.trunkID": "ST_1"}},
            });
            let body = body.to_string().into_bytes();
            (sign::over(&body, at), body)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let caller = || async {
        let mut waits = Vec::new();
        while let Some((token, body)) = webhooks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let became = alive.node.inbox().take(Some(token.as_bytes()), body).await;
            assert_eq!(became, Taken::Kept);
            waits.push(began.elapsed());
        }
        waits
    };
    let began = Instant::now();
    let mut waits: Vec<_> = join_all((0..CALLERS).map(|_| caller()))
        .await
        .into_iter()
        .flatten()
        .collect();
    let took = began.elapsed();
    sign::until_read(&alive).await;
    let applied = began.elapsed();
    waits.sort_unstable();
    println!(
        "{EVENTS} webhooks, {CALLERS} at once: {took:?}, p99 {:?}; all applied after {applied:?}",
        waits[EVENTS * 99 / 100]
    );
}
