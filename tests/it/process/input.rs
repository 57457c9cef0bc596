//! Bad input: a clear error or a recorded refusal, nothing dialed, nothing lost.

use std::fs;

use ringonce::runtime::clock::{Clock as _, SystemClock};

use super::calls::{after, in_seconds};
use super::stack::{Ran, Stack};

/// A sound request, as flags and their values.
fn sound(attempt: &str) -> Vec<(String, String)> {
    [
        ("--attempt", attempt),
        ("--contact", attempt),
        ("--outreach", "o"),
        ("--to", "+12025550100"),
        ("--intend-time", &in_seconds(0)),
    ]
    .map(|(flag, value)| (flag.to_owned(), value.to_owned()))
    .into()
}

/// Places it with one flag changed or added.
fn place(stack: &Stack, attempt: &str, flag: &str, value: &str) -> Ran {
    let mut flags = sound(attempt);
    flags.retain(|(name, _)| name != flag);
    flags.push((flag.to_owned(), value.to_owned()));
    let mut words = vec!["call".to_owned(), "place".to_owned()];
    // As one word, since a value may begin with a dash.
    words.extend(flags.iter().map(|(name, value)| format!("{name}={value}")));
    words.push("--output=json".to_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    stack.run(&words)
}

#[tokio::test]
async fn malformed_requests_are_errors_that_name_the_field() {
    let stack = Stack::new().await;
    let long = "a".repeat(129);
    let metadata = "m".repeat(60_001);
    let future = in_seconds(3600);
    let cases = [
        ("--attempt", "", "attempt_id"),
        ("--attempt", &long, "attempt_id"),
        ("--contact", "", "contact_id"),
        ("--contact", "two words", "contact_id"),
        ("--contact", "line\nbreak", "contact_id"),
        ("--outreach", "bell\u{7}", "outreach_id"),
        ("--campaign", &long, "campaign_id"),
        ("--to", "", "to "),
        ("--to", "2025550100", "to "),
        ("--to", "+1 202 555 0100", "to "),
        ("--to", "+12025550100x5", "to "),
        ("--to", "+12025550100;ext=5", "to "),
        ("--to", "tel:+12025550100", "to "),
        ("--to", "sip:a@example.com", "to "),
        ("--to", "911", "to "),
        ("--to", "+911", "to "),
        ("--to", "112", "to "),
        ("--to", "+0123456789", "to "),
        ("--to", "+1234567890123456", "to "),
        ("--trunk", "nobody", "trunk"),
        ("--trunk", "line\nbreak", "trunk"),
        ("--agent", &long, "agent"),
        ("--from", "+12025550199x", "from"),
        ("--ringing-timeout", "0s", "ringing_timeout"),
        ("--ringing-timeout", "10m", "ringing_timeout"),
        ("--max-call-duration", "1s", "max_call_duration"),
        ("--max-call-duration", "25h", "max_call_duration"),
        ("--intend-time", &future, "intend_time"),
        ("--intend-time", "1969-12-31T23:59:59Z", "intend_time"),
        ("--expire-time", "2100-01-01T00:00:00Z", "expire_time"),
        ("--expire-time", "2020-01-01T00:00:00Z", "expire_time"),
        ("--sip-header", "X-A=one\r\nX-B: two", "sip_headers"),
        ("--sip-header", "Via=elsewhere", "sip_headers"),
        ("--agent-metadata", &metadata, "agent.metadata"),
        ("--dial-digits", "12;3", "dial_digits"),
        ("--time-zone", "No where", "contact_time_zone"),
        ("--priority", "10", "priority"),
    ];
    for (n, (flag, value, field)) in cases.into_iter().enumerate() {
        let ran = place(&stack, &format!("a{n}"), flag, value);
        let shown = &value[..value.len().min(30)];
        assert_eq!(ran.code, 2, "{flag} {shown:?}: {ran:?}");
        assert!(ran.stdout.is_empty());
        assert!(ran.stderr.contains(field), "{flag} {shown:?}: {ran:?}");
        assert!(
            !ran.stderr.contains("2025550"),
            "no number is told: {ran:?}"
        );
    }
    assert_eq!(stack.call("list").lines().len(), 0, "nothing was decided");
    stack.assert_sip_calls(0).await;
    let told = stack.serve.log();
    assert!(!told.contains("202555"), "a number is in the log");
}

#[tokio::test]
async fn what_may_not_be_dialed_is_a_recorded_refusal() {
    let stack = Stack::new().await;
    let cases = [
        ("--to", "+19002345678", "NUMBER_PREMIUM"),
        ("--to", "+10000000000", "NUMBER_INVALID"),
        ("--to", "+1911555", "NUMBER_INVALID"),
        ("--to", "+4411200", "NUMBER_INVALID"),
        // Before this store remembers anything.
        ("--intend-time", "2020-01-01T00:00:00Z", "HISTORY_LOST"),
    ];
    for (n, (flag, value, rule)) in cases.into_iter().enumerate() {
        let ran = place(&stack, &format!("a{n}"), flag, value);
        assert_eq!(ran.code, 3, "{flag} {value}: {ran:?}");
        assert_eq!(ran.json()["reason"]["rule"], rule, "{flag} {value}");
    }
    // It passes on the way: the shortest life that an expiry after its intent can have.
    let now = SystemClock.now();
    let (intended, expires) = (after(now, 0), after(now, 1));
    let passed = stack.call(&format!(
        "place --attempt late --contact late --outreach o --to +12025550100 \
         --intend-time {intended} --expire-time {expires}",
    ));
    assert_eq!(passed.code, 3, "{passed:?}");
    assert_eq!(passed.json()["reason"]["rule"], "EXPIRED");
    assert_eq!(stack.call("list").lines().len(), 6);
    stack.assert_sip_calls(0).await;
}

#[tokio::test]
async fn a_trunk_that_livekit_lacks_is_named_and_nothing_is_dialed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trunks.toml");
    fs::write(&file, "[trunks.other]\n").unwrap();
    let mut stack = Stack::with(&[], &["--config", file.to_str().unwrap()]).await;
    let said = stack.serve.said("event", "trunk.unusable").await;
    assert_eq!(said["trunk"], "other");
    assert_eq!(place(&stack, "a1", "--trunk", "other").code, 0);
    let over = stack.call("get --attempt a1 --wait dial-over").json();
    let over = if over["settled"] == true {
        over
    } else {
        stack
            .attempt("a1", |attempt| attempt["settled"] == true)
            .await
    };
    assert_eq!(over["state"], "STATE_NOT_DIALED", "{over}");
    assert_eq!(over["disposition"], "DISPOSITION_TRUNK_NOT_FOUND");
    assert_eq!(over["try"], 5);
    stack.assert_sip_calls(0).await;
    assert_eq!(
        stack.state().await["requests"]["CreateRoom"],
        serde_json::Value::Null
    );
}

#[tokio::test]
async fn what_is_beyond_a_limit_is_said_and_decides_nothing() {
    let limits = [
        "--set",
        "queue.limit=1",
        "--set",
        "grpc.message_max_bytes=65536",
    ];
    let stack = Stack::with(&[], &limits).await;
    let metadata = "m".repeat(70_000);
    let large = place(&stack, "a0", "--agent-metadata", &metadata);
    assert_eq!(large.code, 2, "{}", large.stderr);
    assert!(
        large.stderr.contains("MESSAGE_TOO_LARGE"),
        "{}",
        large.stderr
    );
    assert_eq!(stack.call("get --attempt a0").code, 1);

    assert_eq!(place(&stack, "a1", "--to", "+12025550108").code, 0);
    stack.ringing().await;
    let waits = place(&stack, "a2", "--contact", "a1").json();
    assert_eq!(waits["state"], "STATE_QUEUED", "{waits}");
    let full = place(&stack, "a3", "--contact", "a1");
    assert_eq!(full.code, 5, "{full:?}");
    assert!(full.stderr.contains("QUEUE_FULL"), "{full:?}");
    assert_eq!(stack.call("get --attempt a3").code, 1);
    assert_eq!(stack.call("list").lines().len(), 2);
}
