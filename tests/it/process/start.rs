//! What a server says before it serves, and when it refuses to.

use std::fs;

use super::calls::place;
use super::stack::{Ran, Stack, program};

/// A second `serve` on this stack's store, which is expected to end by itself.
fn refused(stack: &Stack, more: &[&str]) -> Ran {
    let words = stack.serve_words(more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    program(stack.folder(), &words).output().unwrap().into()
}

#[tokio::test]
async fn a_store_has_one_server() {
    let mut stack = Stack::new().await;
    // A new one is made loudly: the path may be mistyped.
    let made = stack.serve.said("event", "store.made").await;
    assert_eq!(made["level"], "WARN", "{made}");
    let second = refused(&stack, &[]);
    assert_eq!(second.code, 5, "{second:?}");
    assert!(
        second
            .stderr
            .contains("is held by another ringonce (process ")
    );
    let info = stack.run(&["store", "restored", "--store", &stack.store()]);
    assert_eq!(info.code, 5, "{info:?}");
    let placed = stack.call(&place("a1", "c1", "+12025550186"));
    assert_eq!(placed.code, 1, "the first goes on: {placed:?}");
}

#[tokio::test]
async fn a_store_keeps_its_keys_and_its_name() {
    let mut stack = Stack::with(&[], &["--set", "deployment.name=one"]).await;
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    let other = refused(&stack, &["--set", "deployment.name=two"]);
    assert_eq!(other.code, 78, "{other:?}");
    assert!(other.stderr.contains("belongs to the deployment one"));
    let keys = format!(
        "store.key_file={}",
        stack.folder().join("other.key").display()
    );
    let other = refused(&stack, &["--set", &keys]);
    assert_eq!(other.code, 78, "{other:?}");
    assert!(other.stderr.contains("store.key_file"), "{other:?}");
    stack.serve_again().await;
}

#[tokio::test]
async fn a_bad_configuration_is_refused_with_all_its_faults() {
    let stack = Stack::new().await;
    let bad = [
        "--set",
        "dial.ringing_timout=3s",
        "--set",
        "dial.send_by=soon",
        "--set",
        "queue.limit=0",
    ];
    let ran = refused(&stack, &bad);
    assert_eq!(ran.code, 78, "{ran:?}");
    for named in ["ringing_timeout", "send_by", "queue.limit"] {
        assert!(ran.stderr.contains(named), "{named}: {}", ran.stderr);
    }
    let checked = refused(&stack, &["--check-config"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_eq!(checked.stdout, "configuration is sound\n");
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_named_with_the_remedy() {
    let stack = Stack::new().await;
    let file = stack.folder().join("letter.db");
    fs::write(&file, "Dear store,\n".repeat(1000)).unwrap();
    let foreign = format!("sqlite:{}", file.display());
    let below = format!("sqlite:{}/calls.db", file.display());
    let typo = format!("sqlite:{}", stack.folder().join("typo/calls.db").display());
    for (store, says) in [
        (&foreign, "is not a ringonce store"),
        (&below, "letter.db"),
        (&typo, "there is no folder"),
    ] {
        let words = [
            "serve",
            "--store",
            store,
            "--listen",
            "127.0.0.1:0",
            "--set",
            "livekit.api_key=devkey",
            "--set",
            "livekit.api_secret=devsecret_that_is_at_least_32_chars_long",
        ];
        let ran: Ran = program(stack.folder(), &words).output().unwrap().into();
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains(says), "{ran:?}");
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap().len(),
        12_000,
        "left as it was"
    );
    for made in ["letter.db.lock", "letter.key", "typo"] {
        assert!(!stack.folder().join(made).exists(), "{made}");
    }
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_named_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/data/ringonce.db", home.path().display());
    let free = "127.0.0.1:0";
    // TEST-NET-1 (RFC 5737) is no host's.
    for (flag, key, address, code) in [
        ("--listen", "listen.grpc", address.as_str(), 5),
        ("--webhook-listen", "listen.webhook", address.as_str(), 5),
        ("--listen", "listen.grpc", "192.0.2.1:7081", 78),
    ] {
        let other = match flag {
            "--listen" => "--webhook-listen",
            _ => "--listen",
        };
        let words = [
            "serve",
            "--store",
            store.as_str(),
            flag,
            address,
            other,
            free,
            "--set",
            "listen.allow_unauthenticated=true",
            "--set",
            "livekit.api_key=devkey",
            "--set",
            "livekit.api_secret=devsecret_that_is_at_least_32_chars_long",
        ];
        let ran: Ran = program(home.path(), &words).output().unwrap().into();
        assert_eq!(ran.code, code, "{ran:?}");
        for said in [address, &format!("{flag} or {key}")] {
            assert!(ran.stderr.contains(said), "{said}: {ran:?}");
        }
        let left = fs::read_dir(home.path()).unwrap().count();
        assert_eq!(left, 0, "it did not start, and made no store: {ran:?}");
    }
}

#[tokio::test]
async fn a_server_is_ready_soon_and_says_how_it_is() {
    let mut stack = Stack::new().await;
    assert_eq!(stack.run(&["healthcheck"]).code, 0);
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    let began = tokio::time::Instant::now();
    stack.serve_again().await;
    let took = began.elapsed();
    assert!(
        took < std::time::Duration::from_secs(3),
        "ready after {took:?}"
    );
    assert_eq!(stack.run(&["healthcheck"]).code, 0);
    stack.serve.kill();
    assert_eq!(stack.run(&["healthcheck"]).code, 5);
    let ran = stack.call("get --attempt a1");
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("cannot reach the service"));
}
