//! Every recorded webhook, field by field and in its order.

use std::time::Duration;

use ringonce::lab::platform::Fault;
use serde_json::{Value, json};

use super::recorded::{callee_of_status, with_agent};
use super::world::{Sent, World, lines, masked, secs, token};

const RECORDED: &str = include_str!("../../fixtures/livekit/webhooks.jsonl");

/// Fields that are not compared, and why.
const NOT_COMPARED: [(&str, &str); 2] = [
    (
        "numParticipants",
        "refreshed by the real server at moments of its own",
    ),
    (
        "numPublishers",
        "refreshed by the real server at moments of its own",
    ),
];

/// One scenario's recording.
struct Scenario {
    name: String,
    events: Vec<Value>,
}

impl Scenario {
    fn room(&self) -> &Value {
        &self.events[0]["room"]
    }

    fn room_name(&self) -> &str {
        self.room()["name"].as_str().unwrap_or_default()
    }

    /// The SIP participant, as recorded when it joined.
    fn callee(&self) -> Option<&Value> {
        self.events
            .iter()
            .map(|event| &event["participant"])
            .find(|participant| participant["kind"] == "SIP")
    }

    fn create(&self, world: &mut World) {
        let room = self.room();
        let body = json!({
            "name": room["name"],
            "empty_timeout": room["emptyTimeout"],
            "departure_timeout": room["departureTimeout"],
            "metadata": room.get("metadata").unwrap_or(&json!("")),
        });
        world.ask("CreateRoom", "", &body);
    }

    fn dial(&self, world: &mut World, to: &str, timeout_ms: Option<u64>, changes: &Value) -> Sent {
        let name = self.room_name().to_owned();
        let mut body = world.dial_body(&name, to);
        if let Some(callee) = self.callee() {
            body["participant_identity"] = callee["identity"].clone();
            body["participant_name"] = callee.get("name").cloned().unwrap_or(json!(""));
        }
        for (key, value) in changes.as_object().expect("changes are an object") {
            body[key] = value.clone();
        }
        world.send("CreateSIPParticipant", &token(&name), timeout_ms, &body)
    }

    fn delete(&self, world: &mut World) {
        let room = self.room_name();
        world.ask("DeleteRoom", "", &json!({"room": room}));
    }
}

fn scenarios() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = Vec::new();
    for line in lines(RECORDED) {
        let name = line["scenario"].as_str().unwrap_or_default();
        assert_eq!(line["content_type"], "application/webhook+json");
        match all.iter_mut().find(|scenario| scenario.name == name) {
            Some(scenario) => scenario.events.push(line["body"].clone()),
            None => all.push(Scenario {
                name: name.to_owned(),
                events: vec![line["body"].clone()],
            }),
        }
    }
    all
}

#[test]
fn every_recorded_webhook_is_sent_in_its_order() {
    let mut differ = Vec::new();
    for scenario in scenarios() {
        let ours = replay(&scenario);
        if ours.len() != scenario.events.len() {
            let names: Vec<&Value> = ours.iter().map(|event| &event["event"]).collect();
            differ.push(format!("{}: other events: {names:?}", scenario.name));
            continue;
        }
        for (ours, recorded) in ours.iter().zip(&scenario.events) {
            let (ours, recorded) = (comparable(ours), comparable(recorded));
            if ours != recorded && !is_known(&scenario.name, &ours, &recorded) {
                differ.push(format!("{}:\n  {recorded}\n  {ours}", scenario.name));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Once the phone rang before the server had told of the bridge's join.
fn is_known(scenario: &str, ours: &Value, recorded: &Value) -> bool {
    let status = "/participant/attributes/sip.callStatus";
    let mut ours = ours.clone();
    if scenario == "X-Twirp-Timeout-Ms 5000 while ringing"
        && ours["event"] == "participant_joined"
        && let Some(value) = ours.pointer_mut(status)
    {
        *value = json!("ringing");
    }
    ours == *recorded
}

fn comparable(event: &Value) -> Value {
    let mut event = masked(event);
    if let Some(Value::Object(room)) = event.get_mut("room") {
        for (field, _) in NOT_COMPARED {
            room.remove(field);
        }
    }
    event
}

fn replay(scenario: &Scenario) -> Vec<Value> {
    let mut settings = with_agent();
    settings.times.talk = secs(3);
    settings.times.slow_answer = secs(8);
    if scenario.name != "answered, callee hung up" {
        settings.times.talk = secs(60);
    }
    if scenario.name.starts_with("trunk host dead") {
        "127.0.0.1:5999".clone_into(&mut settings.trunks[0].address);
    }
    let mut world = World::new(settings);
    let w = &mut world;
    if let Some(status) = scenario.name.strip_prefix("carrier status ") {
        scenario.dial(w, &callee_of_status(status), None, &json!({}));
    } else {
        act(scenario, w);
    }
    // Long enough for every room to be finished, short of the empty timeout of one that
    // nobody ever joined.
    w.pass(secs(200));
    world.hooks
}

fn act(scenario: &Scenario, w: &mut World) {
    let none = json!({});
    match scenario.name.as_str() {
        "answered, then DeleteRoom" => {
            scenario.create(w);
            let sent = scenario.dial(w, "+12025550100", None, &none);
            w.wait(sent);
            w.pass(secs(4));
            scenario.delete(w);
        }
        "rang, ringing_timeout 6 s" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", None, &none);
        }
        "DeleteRoom while ringing" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", None, &none);
            w.pass(secs(3));
            scenario.delete(w);
        }
        "RemoveParticipant while ringing" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", None, &none);
            w.pass(secs(3));
            let name = scenario.room_name();
            let who = json!({"room": name, "identity": format!("sip-{name}")});
            w.ask("RemoveParticipant", name, &who);
        }
        "HTTP client gone after 2 s, callee answered at 8 s, DeleteRoom later" => {
            scenario.create(w);
            let long = json!({"ringing_timeout": "20s"});
            let sent = scenario.dial(w, "+12025550111", None, &long);
            w.pass(secs(2));
            if let Sent::Waits(ticket) = sent {
                w.platform.gone(w.now, ticket);
            }
            w.pass(secs(10));
            scenario.delete(w);
            assert_eq!(w.fate_of(sent), None, "who went away hears nothing");
        }
        "second dial with the same identity while the first rings" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", None, &none);
            w.pass(secs(3));
            scenario.dial(w, "+12025550108", None, &json!({"ringing_timeout": "5s"}));
        }
        "X-Twirp-Timeout-Ms 5000 while ringing" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", Some(5_000), &none);
        }
        _ => act_on(scenario, w),
    }
}

fn act_on(scenario: &Scenario, w: &mut World) {
    let none = json!({});
    match scenario.name.as_str() {
        "busy 486" => drop(scenario.dial(w, "+12025550186", None, &none)),
        "unavailable 480" => drop(scenario.dial(w, "+12025550180", None, &none)),
        "carrier silent, 32 s" => {
            scenario.dial(w, "+12025550116", None, &json!({"ringing_timeout": "45s"}));
        }
        "100 Trying only, ringing_timeout 6 s" => {
            scenario.dial(w, "+12025550106", None, &none);
        }
        "trunk host dead (UDP), ringing_timeout 10 s" => {
            scenario.dial(w, "+12025550117", None, &json!({"ringing_timeout": "10s"}));
        }
        "200 OK without a common codec" => {
            scenario.dial(w, "+12025550112", None, &none);
        }
        "answered, callee hung up" => {
            scenario.create(w);
            scenario.dial(w, "+12025550100", None, &none);
        }
        "SIP bridge killed while ringing" => {
            scenario.create(w);
            scenario.dial(
                w,
                "+12025550108",
                Some(20_000),
                &json!({"ringing_timeout": "45s"}),
            );
            w.pass(secs(3));
            w.fault(Fault::named("bridge_killed"));
        }
        "no SIP bridge running" => {
            scenario.create(w);
            w.fault(Fault::named("no_bridge"));
            scenario.dial(w, "+12025550100", None, &none);
        }
        "agent joined, answered, DeleteRoom" => {
            scenario.create(w);
            let name = scenario.room_name();
            let wanted = json!({"room": name, "agent_name": "caller"});
            w.ask("CreateDispatch", name, &wanted);
            w.pass(Duration::from_millis(600));
            let sent = scenario.dial(w, "+12025550100", None, &none);
            w.wait(sent);
            scenario.delete(w);
        }
        "dial into a room deleted just before" => {
            scenario.create(w);
            scenario.delete(w);
            let sent = scenario.dial(w, "+12025550100", None, &none);
            w.wait(sent);
            scenario.delete(w);
        }
        "livekit-server killed while ringing, restarted 7 s later" => {
            scenario.create(w);
            scenario.dial(w, "+12025550108", None, &json!({"ringing_timeout": "25s"}));
            w.pass(secs(1));
            w.fault(Fault::named("server_crash"));
        }
        "hide_phone_number, max_call_duration 4 s" => {
            scenario.create(w);
            let hidden = json!({"hide_phone_number": true, "max_call_duration": "4s"});
            scenario.dial(w, "+12025550100", None, &hidden);
        }
        other => panic!("not replayed: {other}"),
    }
}
