//! The demo, as a stranger runs it.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn demo(words: &[&str]) -> (Output, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringonce"));
    let ran = command
        .arg("demo")
        .arg("--json")
        .args(words)
        .env_clear()
        // A variable of the user's must not lead the demo to a real platform.
        .env("LIVEKIT_URL", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let report = serde_json::from_slice(&ran.stdout);
    let report = report.unwrap_or_else(|_| panic!("no JSON: {ran:?}"));
    (ran, report)
}

#[test]
fn nobody_is_rung_twice_and_no_room_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("serve.log");
    let (ran, report) = demo(&["--log", log.to_str().unwrap()]);
    assert!(ran.status.success(), "{report:#}");
    for none in [
        "double_rings",
        "contacts_called_twice_at_once",
        "leaked_rooms",
        "uncertain",
    ] {
        assert_eq!(report[none], 0, "{none}: {report:#}");
    }
    // What is promised of the time is promised of an optimized build.
    let seconds = report["elapsed_seconds"].as_f64().unwrap();
    assert!(seconds < 40.0 || cfg!(debug_assertions), "{seconds}");
    assert!(report["prevented"]["contact_reserved"].as_u64() > Some(0));
    assert!(report["prevented"]["redelivered_dialing"].as_u64() > Some(0));
    assert!(report["naive"]["double_rings"].as_u64() > Some(0));
    let call = |id: &str| {
        let mut calls = report["calls"].as_array().unwrap().iter();
        calls.find(|call| call["attempt"] == id).unwrap().clone()
    };
    for (id, sip_calls, outcome) in [
        ("answered", 1, "answered"),
        ("busy", 1, "busy"),
        ("declined", 1, "declined"),
        ("wrong-number", 1, "wrong number"),
        ("carrier-failure", 1, "carrier failure"),
        ("no-answer", 1, "no answer"),
        ("storm", 1, "no answer"),
        ("renewal", 1, "no answer"),
        ("survey", 1, "answered"),
        ("no-agent", 0, "no agent"),
        ("lost-reply", 1, "answered"),
        ("caller-gone", 1, "answered"),
        ("canceled", 1, "canceled"),
        ("burst-12", 1, "answered"),
        // Its reply was lost and no webhook came: it was looked for.
        ("outage", 1, "answered"),
        // The server was killed while it rang; a webhook told its successor.
        ("killed-1", 1, "unreached"),
        ("trunk-flush", 1, "busy"),
    ] {
        let call = call(id);
        assert_eq!(
            (&call["sip_calls"], &call["outcome"]),
            (&Value::from(sip_calls), &Value::from(outcome)),
            "{call}"
        );
    }
    // Each start and each room is in the log, in pairs.
    let log = fs::read_to_string(log).unwrap();
    let rooms = |event: &str| -> BTreeSet<String> {
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let lines = lines.filter(|line: &Value| line["event"] == event);
        lines.map(|line| line["room"].to_string()).collect()
    };
    assert_eq!(rooms("room.created"), rooms("room.deleted"));
    assert_eq!(report["rooms_created"], rooms("room.created").len());
    assert_eq!(log.matches("\"event\":\"ready\"").count(), 2);
}

#[test]
fn a_lock_and_three_calls_ring_twice_and_leave_rooms() {
    let (ran, report) = demo(&["--naive"]);
    assert!(ran.status.success(), "{report:#}");
    assert!(report["double_rings"].as_u64() > Some(0), "{report:#}");
    assert!(report["leaked_rooms"].as_u64() > Some(0), "{report:#}");
    // It is no straw man: what was said clearly is not asked for again, and its lock holds
    // while it holds.
    let calls = report["calls"].as_array().unwrap();
    for id in [
        "answered",
        "busy",
        "declined",
        "wrong-number",
        "carrier-failure",
        "canceled",
    ] {
        let call = calls.iter().find(|call| call["attempt"] == id).unwrap();
        assert_eq!(call["sip_calls"], 1, "{call}");
    }
    assert!(report["prevented"]["exists_check"].as_u64() > Some(0));
}
