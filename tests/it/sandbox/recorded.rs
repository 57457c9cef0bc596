//! Every recorded answer, field by field.

use ringonce::lab::platform::{Behaviour, Fault, Settings, Worker, sign};
use serde_json::{Value, json};

use super::world::{Fate, KEY, RINGS, SECRET, World, lines, masked, secs, token};

const RECORDED: &str = include_str!("../../fixtures/livekit/twirp.jsonl");

/// Fields that the platform writes and the recording left out.
const LEFT_OUT: [&str; 3] = ["turn_password", "enabled_codecs", "tracks"];

/// What the sandbox cannot express, and why. Nothing at present: a scenario that is
/// neither here nor replayed fails the test.
const NOT_EXPRESSED: [(&str, &str); 0] = [];

/// The callee of a carrier's status.
const STATUSES: [(&str, &str); 22] = [
    ("302", "02"),
    ("400", "40"),
    ("401", "41"),
    ("402", "42"),
    ("403", "43"),
    ("404", "04"),
    ("408", "48"),
    ("410", "10"),
    ("480", "80"),
    ("484", "84"),
    ("486", "86"),
    ("487", "87"),
    ("488", "88"),
    ("500", "50"),
    ("501", "51"),
    ("503", "53"),
    ("504", "54"),
    ("600", "60"),
    ("603", "03"),
    ("604", "61"),
    ("607", "07"),
    ("608", "09"),
];

pub(super) fn callee_of_status(status: &str) -> String {
    let (_, digits) = STATUSES
        .iter()
        .find(|(known, _)| *known == status)
        .unwrap_or_else(|| panic!("no callee gives {status}"));
    format!("+120255501{digits}")
}

fn world() -> World {
    World::new(Settings {
        workers: Vec::new(),
        ..Settings::default()
    })
}

/// A dial, with fields changed.
fn dialed(world: &mut World, to: &str, changes: &Value) -> Fate {
    let mut body = world.dial_body("room", to);
    for (key, value) in changes.as_object().expect("changes are an object") {
        body[key] = value.clone();
    }
    let sent = world.send("CreateSIPParticipant", &token("room"), None, &body);
    world.wait(sent)
}

#[test]
fn every_recorded_answer_is_given() {
    let mut differ = Vec::new();
    for line in lines(RECORDED) {
        let scenario = line["scenario"].as_str().unwrap_or_default().to_owned();
        if NOT_EXPRESSED.iter().any(|(name, _)| *name == scenario) {
            continue;
        }
        let w = &mut world();
        let Fate::Answered(status, mut body) = replay(&scenario, w) else {
            panic!("{scenario}: the connection was cut");
        };
        let recorded = &line["body"];
        leave_out(&mut body, recorded);
        if line["http_status"] != json!(status) || masked(&body) != masked(recorded) {
            differ.push(format!("{scenario}:\n  {recorded}\n  {status} {body}"));
        }
        // Waits of seconds are the platform's own; shorter ones were the machine's.
        let seconds = line["seconds"].as_f64().unwrap_or_default();
        let took = w.took.as_secs_f64();
        if seconds > 2.0 && (seconds - took).abs() > 1.0 {
            differ.push(format!("{scenario}: took {took} s instead of {seconds} s"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn leave_out(ours: &mut Value, recorded: &Value) {
    if let Value::Object(fields) = ours {
        fields.retain(|key, _| !LEFT_OUT.contains(&key.as_str()) || recorded.get(key).is_some());
    }
}

fn replay(scenario: &str, w: &mut World) -> Fate {
    if let Some(status) = scenario.strip_prefix("carrier status ") {
        return dialed(w, &callee_of_status(status), &json!({}));
    }
    replay_dial(scenario, w)
        .or_else(|| replay_ringing(scenario, w))
        .or_else(|| replay_room(scenario, w))
        .or_else(|| replay_failure(scenario, w))
        .unwrap_or_else(|| panic!("neither replayed nor named as not expressed: {scenario}"))
}

fn replay_dial(scenario: &str, w: &mut World) -> Option<Fate> {
    let (to, changes) = match scenario {
        "trunk missing" => ("+12025550100", json!({"sip_trunk_id": "ST_missing00000"})),
        "answered after 1.2 s" => {
            let changes = json!({"room_name": "ans-1", "participant_identity": "sip-a1"});
            ("+12025550100", changes)
        }
        "rang, ringing_timeout 6 s" => ("+12025550108", json!({})),
        "100 Trying only, ringing_timeout 6 s" => ("+12025550106", json!({})),
        "carrier silent (transaction timer)" => ("+12025550116", json!({"ringing_timeout": "45s"})),
        "200 OK without a common codec" => ("+12025550112", json!({})),
        "trunk host dead, UDP, ringing_timeout 10 s" => {
            ("+12025550117", json!({"ringing_timeout": "10s"}))
        }
        "trunk host dead, TCP" => ("+12025550115", json!({})),
        "trunk host unknown to DNS" => ("+12025550114", json!({"ringing_timeout": "45s"})),
        "wait_until_answered false" => {
            let changes = json!({
                "room_name": "r-f9ac2628", "participant_identity": "sip-r-f9ac2628",
                "wait_until_answered": false,
            });
            ("+12025550100", changes)
        }
        "callee number empty" => ("", json!({})),
        "callee is a SIP URI" => ("sip:someone@example.invalid", json!({})),
        _ => return None,
    };
    Some(dialed(w, to, &changes))
}

fn replay_ringing(scenario: &str, w: &mut World) -> Option<Fate> {
    let fate = match scenario {
        "room deleted at 3 s while ringing" => {
            let sent = w.dial("room", RINGS);
            w.pass(secs(3));
            w.ask("DeleteRoom", "room", &json!({"room": "room"}));
            w.wait(sent)
        }
        "participant removed at 3 s while ringing" => {
            let sent = w.dial("room", RINGS);
            w.pass(secs(3));
            let who = json!({"room": "room", "identity": "sip-room"});
            w.ask("RemoveParticipant", "room", &who);
            w.wait(sent)
        }
        "GetParticipant while ringing" => {
            w.dial("lost-1", "+12025550111");
            w.pass(secs(3));
            let who = json!({"room": "lost-1", "identity": "sip-lost-1"});
            w.ask("GetParticipant", "lost-1", &who)
        }
        "X-Twirp-Timeout-Ms 5000 while ringing" => {
            let body = w.dial_body("room", RINGS);
            let sent = w.send("CreateSIPParticipant", &token("room"), Some(5_000), &body);
            w.wait(sent)
        }
        "same identity again: first call" => {
            let sent = w.dial("room", RINGS);
            w.pass(secs(3));
            w.dial("room", RINGS);
            w.wait(sent)
        }
        "same identity again: second call" => {
            w.dial("room", RINGS);
            w.pass(secs(3));
            let second = w.dial("room", RINGS);
            w.wait(second)
        }
        "SIP bridge killed while ringing, X-Twirp-Timeout-Ms 20000" => {
            let body = w.dial_body("room", RINGS);
            let sent = w.send("CreateSIPParticipant", &token("room"), Some(20_000), &body);
            w.pass(secs(3));
            w.fault(Fault::named("bridge_killed"));
            w.wait(sent)
        }
        _ => return None,
    };
    Some(fate)
}

fn replay_room(scenario: &str, w: &mut World) -> Option<Fate> {
    let ans = json!({
        "name": "ans-1", "empty_timeout": 120, "departure_timeout": 60,
        "metadata": "{\"v\":1,\"attempt\":\"a1\"}",
    });
    let fate = match scenario {
        "CreateRoom" => w.ask("CreateRoom", "", &ans),
        "GetParticipant while active" => {
            let mut body = w.dial_body("ans-1", "+12025550100");
            body["participant_identity"] = json!("sip-a1");
            let sent = w.send("CreateSIPParticipant", &token("ans-1"), None, &body);
            w.wait(sent);
            let who = json!({"room": "ans-1", "identity": "sip-a1"});
            w.ask("GetParticipant", "ans-1", &who)
        }
        "ListRooms" => {
            w.ask("CreateRoom", "", &ans);
            w.ask("ListRooms", "", &json!({"names": ["ans-1", "missing"]}))
        }
        "DeleteRoom" => {
            w.ask("CreateRoom", "", &ans);
            w.ask("DeleteRoom", "", &json!({"room": "ans-1"}))
        }
        "DeleteRoom again" => w.ask("DeleteRoom", "", &json!({"room": "ans-1"})),
        "ListParticipants after it" | "ListParticipants, room missing" => {
            w.ask("ListParticipants", "room", &json!({"room": "room"}))
        }
        "GetParticipant missing" => {
            let who = json!({"room": "room", "identity": "nobody"});
            w.ask("GetParticipant", "room", &who)
        }
        "CreateRoom on a live room with other metadata" => {
            let one = json!({"name": "meta-1", "departure_timeout": 5, "metadata": "one"});
            w.ask("CreateRoom", "", &one);
            let two = json!({"name": "meta-1", "departure_timeout": 90, "metadata": "two"});
            w.ask("CreateRoom", "", &two)
        }
        "room name of 300 bytes" => w.ask("CreateRoom", "", &json!({"name": "n".repeat(300)})),
        "CreateDispatch, no worker" => w.ask("CreateDispatch", "disp-1", &caller()),
        "ListDispatch after two CreateDispatch" => {
            w.ask("CreateDispatch", "disp-1", &caller());
            w.ask("CreateDispatch", "disp-1", &caller());
            w.ask("ListDispatch", "disp-1", &json!({"room": "disp-1"}))
        }
        "ListDispatch, room missing" => {
            let fate = w.ask("ListDispatch", "room", &json!({"room": "room"}));
            assert!(
                w.now >= secs(3),
                "nobody answers at once for a room that is nowhere"
            );
            fate
        }
        "ListSIPOutboundTrunk" => w.ask("ListSIPOutboundTrunk", "", &json!({})),
        _ => return None,
    };
    Some(fate)
}

fn caller() -> Value {
    json!({"room": "disp-1", "agent_name": "caller", "metadata": "{}"})
}

fn replay_failure(scenario: &str, w: &mut World) -> Option<Fate> {
    let claims = |exp: i64, call: bool| json!({"iss": KEY, "exp": exp, "sip": {"call": call}});
    let good = 9_000_000_000;
    let bearer = match scenario {
        "token without the grant" => sign(SECRET, &claims(good, false)),
        "token with a bad signature" => sign("another secret", &claims(good, true)),
        "token expired" => sign(SECRET, &claims(1_700_000_000, true)),
        "no SIP bridge running" => {
            w.fault(Fault::named("no_bridge"));
            return Some(dialed(w, "+12025550100", &json!({})));
        }
        "CreateRoom right after the platform's Redis was flushed" => {
            w.fault(Fault::named("redis_flush"));
            return Some(w.ask("CreateRoom", "", &json!({"name": "room"})));
        }
        _ => return None,
    };
    let body = w.dial_body("room", "+12025550100");
    let sent = w.send("CreateSIPParticipant", &bearer, None, &body);
    let Fate::Answered(status, answer) = w.wait(sent) else {
        panic!("a bad token is answered");
    };
    let answer = match answer.as_str() {
        Some(text) => Value::String(text.replace(&bearer, "<the token sent>")),
        None => answer,
    };
    Some(Fate::Answered(status, answer))
}

/// The workers of the recordings.
pub(super) fn with_agent() -> Settings {
    let after = std::time::Duration::from_millis(400);
    Settings {
        workers: vec![Worker::new("caller", Behaviour::Joins { after })],
        ..Settings::default()
    }
}
