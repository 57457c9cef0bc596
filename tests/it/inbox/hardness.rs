//! What is done to the listener on purpose: each has a clear answer, nothing is lost, and
//! nothing is done.

use std::time::Duration;

use ringonce::inbox::Counted;
use ringonce::model::attempt::{Passage, State};
use ringonce::model::id::{Partition, SessionId};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::listener::{BODY, PATIENCE, Served, head, status};
use super::sign;
use crate::world::workspace;

/// As many connections as are asked for, if the host lets one process have its ends of them.
const CONNECTIONS: usize = 10_000;

/// Files that the rest of the tests and the listener's ends may need.
const OTHERS: u64 = 4_000;

/// How many connections this process may open now.
fn connections() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it may not be raised, what there is must do.
    let _raised = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let ours = usize::try_from(files.saturating_sub(OTHERS)).unwrap_or(usize::MAX);
    ours.min(CONNECTIONS)
}

/// They say half a word and stay. Whoever signs is served all the while, at once.
#[tokio::test]
async fn ten_thousand_silent_connections_keep_no_webhook_out() {
    let served = Served::new("[webhooks]\nread_timeout = \"5m\"\n").await;
    let count = connections();
    assert!(count >= 1_000, "{count} connections say nothing of many");
    let mut silent = Vec::new();
    for n in 0..count {
        let mut stream = served.connect().await;
        // One that was shown out at once cannot be written to.
        drop(stream.write_all(b"POST /web").await);
        silent.push(stream);
        if n % (count / 100) == 0 {
            let body = format!("{{\"event\":\"room_started\",\"id\":\"EV_{n}\"}}");
            assert_eq!(served.post(body.as_bytes(), "").await, 200, "behind {n}");
        }
    }
    assert!(served.count(Counted::Kept) >= 100);
    let limit = served.lab.config.webhooks.connections_max;
    let over = u64::try_from(count - limit).unwrap();
    // Each webhook that was served has left its place to the next.
    assert!(served.count(Counted::Connections) >= over / 2);
    assert_eq!(served.alive.node.tasks().panics(), 0);
}

/// All places are held by those who have signed: one more is told to come again.
#[tokio::test]
async fn more_connections_than_allowed_are_told_to_come_again() {
    let served = Served::new("[webhooks]\nconnections_max = 4\n").await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = served.connect().await;
        let begins = head(BODY.len(), &served.token(BODY), "");
        let begins = begins.replace("connection: close\r\n", "");
        stream.write_all(begins.as_bytes()).await.unwrap();
        stream.write_all(BODY).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        held.push(stream);
    }
    for _ in 0..50 {
        assert!([503, 0].contains(&served.post(BODY, "").await));
    }
    assert_eq!(served.count(Counted::Connections), 50);
    drop(held);
    let again = async {
        while served.post(BODY, "").await != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

/// One who has not signed makes room for one who does, and hears of it by a close.
#[tokio::test]
async fn who_says_nothing_makes_room_for_who_signs() {
    let served = Served::new("[webhooks]\nconnections_max = 1\n").await;
    let mut silent = served.connect().await;
    silent.write_all(b"POST").await.unwrap();
    assert_eq!(served.post(BODY, "").await, 200);
    assert_eq!(status(&mut silent).await, 0);
}

/// A clock that is a little off is borne, one that is far off is refused and named.
#[tokio::test]
async fn tokens_of_wrong_clocks_are_refused_and_counted_by_direction() {
    let served = Served::new("").await;
    let now = served.lab.now().as_secs();
    let post = async |at: i64| {
        let token = sign::over(BODY, at);
        let begins = head(BODY.len(), &token, "");
        served.send(&[begins.as_bytes(), BODY]).await
    };
    // A token lives for 300 s from `nbf`, and 60 s are borne at either end.
    for (off, wanted) in [(0, 200), (50, 200), (-350, 200), (120, 401), (-420, 401)] {
        assert_eq!(post(now + off).await, wanted, "{off} s off");
    }
    for off in [
        3_600,
        315_360_000,
        i64::MAX / 2 - now,
        -3_600,
        -now,
        -now - 500,
    ] {
        assert_eq!(post(now + off).await, 401, "{off} s off");
    }
    let counts = [Counted::Early, Counted::Late].map(|what| served.count(what));
    assert_eq!(
        counts.iter().sum::<u64>() + served.count(Counted::Malformed),
        8,
        "{counts:?}"
    );
    assert_eq!(served.count(Counted::Kept), 1);
}

fn event(kind: &str, id: &str, room: &str, metadata: &Value, at: &str) -> Vec<u8> {
    json!({
        "event": kind,
        "id": id,
        "createdAt": at,
        "room": {"sid": "RM_x", "name": room, "metadata": metadata, "creationTime": at},
        "participant": {"sid": "PA_x", "identity": "callee-x", "kind": "SIP", "joinedAt": at,
            "disconnectReason": "USER_UNAVAILABLE"},
    })
    .to_string()
    .into_bytes()
}

/// The ledger knows no such session; the name alone makes it nobody's of ours.
#[tokio::test]
async fn a_name_like_ours_with_strange_metadata_is_kept_and_makes_nothing() {
    let served = Served::new("[deployment]\nname = \"d-1\"\n").await;
    let (ours, id) = ("d-1".parse().unwrap(), "ghost".parse().unwrap());
    let session = SessionId::of(&ours, &workspace(), &id, 1);
    let room = session.room(Partition(0));
    let strange = [
        json!("{\"v\":1,\"deployment\":\"d-2\",\"workspace\":\"w\",\"attempt\":\"ghost\"}"),
        json!("no JSON"),
        json!("{"),
        json!("[]"),
        json!("{\"deployment\":\"d-1\"}"),
        json!(""),
        json!(null),
        json!(7),
        json!({"deployment": "d-1"}),
        json!("\u{0}"),
    ];
    for (n, metadata) in strange.iter().enumerate() {
        for kind in ["room_started", "participant_joined", "participant_left"] {
            let id = format!("EV_{n}_{kind}");
            let body = event(kind, &id, room.as_str(), metadata, "1795967305");
            assert_eq!(served.post(&body, "").await, 200, "{metadata}");
        }
    }
    sign::until_read(&served.alive).await;
    assert_eq!(served.count(Counted::Kept), 30, "nothing is lost");
    assert_eq!(served.count(Counted::Foreign), 30, "and nothing is done");
    let ledger = served.alive.node.ledger();
    assert_eq!(ledger.attempt(&workspace(), &id).await.unwrap(), None);
    assert_eq!(served.lab.dials(), 0);
    // A call of that very attempt is placed as any other: nothing was believed of it.
    served
        .alive
        .place(served.lab.call("ghost", "+12025550186"))
        .await;
    let attempt = served
        .alive
        .until("ghost", |a| a.passage(served.lab.now()) != Passage::Open);
    assert_ne!(attempt.await.state, State::Uncertain);
}

/// Ten years ago no leg of this session was there; its own answer counts.
#[tokio::test(start_paused = true)]
async fn an_event_of_ten_years_ago_ends_no_call_of_today() {
    let lab = crate::world::Lab::with(1, "[deployment]\nname = \"d-1\"\n", |settings| {
        settings.times.talk = Duration::from_mins(10);
    });
    let alive = lab.node().await;
    alive.place(lab.call("a", "+12025550100")).await;
    let before = alive.until_state("a", State::Answered).await;
    let placed = before.placed.clone().unwrap();
    let mut old: Value = serde_json::from_slice(&event(
        "participant_left",
        "EV_old",
        placed.room.as_str(),
        &json!(""),
        "1480000000",
    ))
    .unwrap();
    old["participant"]["identity"] = placed.session.identity().into();
    let body = old.to_string().into_bytes();
    let token = sign::over(&body, lab.now().as_secs());
    let became = alive.node.inbox().take(Some(token.as_bytes()), &body).await;
    assert_eq!(became.status(), 200);
    sign::until_read(&alive).await;
    assert_eq!(alive.attempt("a").await.state, State::Answered);
    assert_eq!(lab.sip_calls(), 1);
    lab.assert_promises();
}
