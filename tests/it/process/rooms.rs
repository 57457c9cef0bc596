//! `ringonce rooms` against a server that really calls, and on the logs that it wrote.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::calls::place;
use super::stack::{Ran, Stack};

const FOREIGN: [&str; 4] = [
    "GET /healthz 200 3ms",
    r#"{"level":"info","msg":"room.started","room":"lobby"}"#,
    "\u{1b}[32mINFO\u{1b}[0m {not json",
    "",
];

/// That nothing lives in a room is LiveKit's answer after 3 s, and so the sandbox's: whoever
/// waits for less never learns that a room is gone.
const LOOK: &str = "livekit.request_timeout=5s";

impl Stack {
    fn leaks_in(&self, logs: &[PathBuf], more: &[&str]) -> Ran {
        let mut words = vec!["rooms", "leaks", "--json"];
        words.extend(more);
        words.push("--logs");
        words.extend(logs.iter().map(|log| log.to_str().unwrap()));
        self.run(&words)
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }
}

/// The log of two servers on one store, the first of which was killed while a phone rang.
async fn recorded(format: &str) -> (Stack, Vec<String>) {
    let flags = ["--set", format, "--set", LOOK];
    let mut stack = Stack::with(&[], &flags).await;
    for (n, to) in ["+12025550186", "+12025550103", "+12025550104"]
        .iter()
        .enumerate()
    {
        stack.call(&place(&format!("a{n}"), &format!("c{n}"), to));
    }
    let caller = stack.begin(&place("a8", "c8", "+12025550108"));
    stack.ringing().await;
    stack.serve.kill();
    caller.end();
    let mut lines: Vec<String> = stack.serve.log().lines().map(str::to_owned).collect();
    stack.serve_again().await;
    stack.call(&place("a9", "c9", "+12025550186"));
    // On a busy host it may be beyond UNCERTAIN by the time that somebody looks.
    let lost = ["STATE_UNCERTAIN", "STATE_NEEDS_REVIEW"];
    stack
        .attempt("a8", |attempt| {
            lost.map(Value::from).contains(&attempt["state"])
        })
        .await;
    stack
        .platform("no room", |state| state["rooms"] == json!([]))
        .await;
    super::stack::until("the last end", async || {
        let ends = stack.serve.log().matches("room.deleted").count();
        (ends >= 2).then_some(())
    })
    .await;
    stack.serve.signal("TERM");
    assert_eq!(stack.serve.ended().await, 0);
    lines.extend(stack.serve.log().lines().map(str::to_owned));
    (stack, lines)
}

fn names(ran: &Ran) -> Vec<String> {
    let leaked = ran.json()["leaked"].clone();
    let name = |room: &Value| room["room"].as_str().unwrap().to_owned();
    leaked.as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn a_missing_end_is_found_in_the_logs_however_they_are_cut_up() {
    for format in ["log.format=json", "log.format=text"] {
        let (stack, lines) = recorded(format).await;
        let whole = stack.write("whole.log", &lines);
        let none = stack.leaks_in(&[whole], &[]);
        assert_eq!((none.code, names(&none)), (0, vec![]), "{none:?}");
        let found = none.json();
        assert_eq!(
            (found["created"].clone(), found["deleted"].clone()),
            (json!(5), json!(5))
        );
        assert_eq!(found["unreadable"], 0, "{none:?}");

        let ends: Vec<usize> = (0..lines.len())
            .filter(|n| lines[*n].contains("room.deleted"))
            .collect();
        for end in ends {
            let begin = lines[end].find("ringonce-0-").unwrap();
            let room = &lines[end][begin..begin + "ringonce-0-".len() + 36];
            let mut rest = lines.clone();
            rest.remove(end);
            let one = stack.leaks_in(&[stack.write("rest.log", &rest)], &[]);
            assert_eq!(
                (one.code, names(&one)),
                (1, vec![room.to_owned()]),
                "{one:?}"
            );
            // Three replicas' files, the newest first, each with what others wrote, and one
            // behind the prefix that a container engine writes.
            let mut parts = [vec![], vec![], vec![]];
            for (n, line) in rest.iter().rev().enumerate() {
                let prefix = if n % 3 == 2 {
                    "2026-11-29T12:00:00.1Z stderr F "
                } else {
                    ""
                };
                parts[n % 3].push(format!("{prefix}{line}"));
                parts[n % 3].push(FOREIGN[n % FOREIGN.len()].to_owned());
            }
            let files: Vec<_> = (0..3)
                .map(|n| stack.write(["b.log", "a.log.1", "c.log"][n], &parts[n]))
                .collect();
            let same = stack.leaks_in(&files, &[]);
            assert_eq!(
                (same.code, names(&same)),
                (1, vec![room.to_owned()]),
                "{same:?}"
            );
            assert_eq!(same.json()["unreadable"], 0, "{same:?}");
        }
    }
}

#[tokio::test]
async fn a_cut_line_is_told_and_a_young_room_may_be_open() {
    let (stack, mut lines) = recorded("log.format=json").await;
    let end = lines
        .iter()
        .rposition(|line| line.contains("room.deleted"))
        .unwrap();
    let half = lines[end].len() / 2;
    lines[end].truncate(half);
    let log = stack.write("cut.log", &lines);
    let cut = stack.leaks_in(std::slice::from_ref(&log), &[]);
    assert_eq!((cut.code, names(&cut).len()), (1, 1), "{cut:?}");
    assert_eq!(cut.json()["unreadable"], 1);
    assert!(
        cut.stderr
            .contains("1 line that looks like ours could not be read")
    );
    let young = stack.leaks_in(std::slice::from_ref(&log), &["--older-than", "1h"]);
    assert_eq!((young.code, names(&young).len()), (0, 0), "{young:?}");
    assert_eq!(young.json()["open"].as_array().unwrap().len(), 1);
    let text = stack.run(&["rooms", "leaks", "--logs", log.to_str().unwrap()]);
    assert_eq!(text.code, 1);
    assert!(text.stdout.starts_with("LEAKED ringonce-0-"), "{text:?}");
    assert!(text.stdout.contains(" w/a"), "{text:?}");
    let nothing = stack.leaks_in(
        &[stack.write("others.log", &FOREIGN.map(str::to_owned))],
        &[],
    );
    assert_eq!(nothing.code, 0);
    assert!(
        nothing.stderr.contains("hint: no line tells of a room"),
        "{nothing:?}"
    );
    assert_eq!(stack.leaks_in(&[log], &["--workspace", "w"]).code, 2);
    assert_eq!(stack.run(&["rooms", "leaks", "--older-than", "1h"]).code, 2);
    let packed = stack.folder().join("old.log.gz");
    fs::write(&packed, [0x1f, 0x8b, 8, 0]).unwrap();
    let refused = stack.leaks_in(&[packed], &[]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("unpack it first"), "{refused:?}");
    let missing = stack.leaks_in(&[stack.folder().join("nowhere.log")], &[]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("nowhere.log"), "{missing:?}");
}

#[tokio::test]
async fn a_server_lists_its_rooms_and_deletes_one_when_told() {
    let stack = Stack::with(&["--talk", "60s"], &["--set", LOOK]).await;
    let none = stack.run(&["rooms", "leaks"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:?}");
    stack.call(&place("a1", "c1", "+12025550100"));
    let listed = stack.run(&["rooms", "list", "--output", "json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let room = listed.json();
    assert_eq!(room["attemptId"], "a1");
    assert_eq!(room["attemptState"], "STATE_ANSWERED");
    assert_eq!(
        (room["owned"].clone(), room["leg"].clone()),
        (json!(true), json!("LEG_LIVES"))
    );
    let name = room["name"].as_str().unwrap();
    let text = stack.run(&["rooms", "list"]);
    let line = format!("{name} w/a1 ANSWERED ");
    assert!(text.stdout.starts_with(&line), "{text:?}");
    assert!(
        text.stdout.contains("ON_THE_PHONE: a live attempt owns it"),
        "{text:?}"
    );
    assert!(text.stderr.contains("1 room, 0 leaked"), "{text:?}");

    let refused = stack.run(&["rooms", "delete", name]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("ROOM_OWNED"), "{refused:?}");
    let who = ["--requested-by", "kim", "--reason", "a dead line"];
    let gone = stack.run(&[&["rooms", "delete", name, "--force"][..], &who].concat());
    assert_eq!(
        (gone.code, gone.stdout.trim()),
        (0, format!("deleted {name}").as_str()),
        "{gone:?}"
    );
    let ended = stack
        .attempt("a1", |attempt| attempt["state"] == "STATE_ENDED")
        .await;
    assert_eq!(ended["endCause"], "END_CAUSE_CANCELED");
    assert_eq!(ended["stop"]["requestedBy"], "kim");
    let text = stack.run(&["call", "get", "--attempt", "a1"]).stdout;
    let told = "hung up by kim: its room was deleted by hand: a dead line";
    assert!(text.contains(told), "{text}");
    let ends: Vec<Value> = stack
        .serve
        .events()
        .into_iter()
        .filter(|line| line["event"] == "room.deleted")
        .collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["cause"], "operator");
    let unknown = stack.run(&["rooms", "delete", "lobby"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stderr.contains("ROOM_NOT_OURS"), "{unknown:?}");
}

#[tokio::test]
async fn a_server_tells_a_leak_with_its_reason_until_it_is_gone() {
    let stack = Stack::with(
        &[],
        &[
            "--set",
            LOOK,
            "--set",
            "janitor.delete_timeout=500ms",
            "--set",
            "room.departure_timeout=10m",
        ],
    )
    .await;
    let refuse = |times: u32| {
        json!({"name": "refuse", "method": "DeleteRoom", "status": 500, "code": "internal",
            "times": times})
    };
    stack.throw(&refuse(1_000_000)).await;
    stack.call(&place("a1", "c1", "+12025550186"));
    let leaks = ["rooms", "leaks", "--json"];
    let told = super::stack::until("a leak", async || {
        Some(stack.run(&leaks)).filter(|ran| ran.code == 1)
    })
    .await;
    let room = told.json();
    assert_eq!(room["leak"], "LEAK_NOT_DELETED", "{told:?}");
    assert_eq!(room["attemptId"], "a1");
    assert_ne!(room["owned"], true);
    let text = stack.run(&leaks[..2]);
    assert!(
        text.stdout.starts_with("LEAK NOT_DELETED ringonce-0-"),
        "{text:?}"
    );
    assert!(text.stderr.contains("1 room, 1 leaked"), "{text:?}");
    let failed = stack.run(&["rooms", "delete", room["name"].as_str().unwrap()]);
    assert_eq!(failed.code, 5, "{failed:?}");
    assert!(failed.stderr.contains("PLATFORM_UNAVAILABLE"), "{failed:?}");
    stack.throw(&refuse(0)).await;
    let gone = super::stack::until("no leak", async || {
        Some(stack.run(&leaks)).filter(|ran| ran.code == 0)
    })
    .await;
    assert_eq!(gone.stdout, "", "{gone:?}");
    let state = stack.state().await;
    assert_eq!(state["rooms"], json!([]));
}
