//! Races and faults: what the recordings show only in part.

use std::time::Duration;

use ringonce::lab::platform::{
    Behaviour, Delivery, Fault, FaultError, Settings, Worker, fault_names, sign,
};
use serde_json::{Value, json};

use super::world::{Fate, KEY, SECRET, Sent, World, secs, token};

const RINGS: &str = "+12025550108";
const ANSWERS: &str = "+12025550100";

fn world() -> World {
    World::new(Settings::default())
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn status(fate: &Fate) -> u16 {
    match fate {
        Fate::Answered(status, _) => *status,
        Fate::Cut => panic!("the connection was cut"),
    }
}

fn body(fate: Fate) -> Value {
    match fate {
        Fate::Answered(_, body) => body,
        Fate::Cut => panic!("the connection was cut"),
    }
}

fn room(name: &str) -> Value {
    json!({"room": name})
}

fn create(world: &mut World, name: &str) -> Value {
    let metadata = json!({"workspace": "w", "attempt": "a1", "contact": "c1"}).to_string();
    let asked = json!({"name": name, "metadata": metadata});
    body(world.ask("CreateRoom", "", &asked))
}

fn sip_calls(world: &World) -> u32 {
    world
        .platform
        .state()
        .sip_calls
        .iter()
        .map(|call| call.count)
        .sum()
}

fn participants(world: &mut World, name: &str) -> usize {
    let listed = body(world.ask("ListParticipants", name, &room(name)));
    listed["participants"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_dial_that_was_held_up_rings_in_a_room_deleted_before() {
    let mut w = world();
    create(&mut w, "room");
    w.fault(Fault {
        millis: Some(3_000),
        ..Fault::on("late", "CreateSIPParticipant")
    });
    let sent = w.dial("room", ANSWERS);
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 200);
    assert_eq!(status(&w.wait(sent)), 200);
    assert_eq!(sip_calls(&w), 1);
    let started: Vec<&Value> = w
        .hooks
        .iter()
        .filter(|hook| hook["event"] == "room_started")
        .collect();
    assert_eq!(started.len(), 2);
    assert_eq!(started[1]["room"].get("metadata"), None, "it is not ours");
}

#[test]
fn a_dial_held_up_beyond_its_token_is_refused_and_rings_nobody() {
    let settings = Settings::default();
    let exp = settings.wall_start_micros / 1_000_000 + 5;
    let mut w = World::new(settings);
    let bearer = sign(
        SECRET,
        &json!({"iss": KEY, "exp": exp, "sip": {"call": true}}),
    );
    let dial = w.dial_body("room", ANSWERS);
    w.fault(Fault {
        millis: Some(66_000),
        ..Fault::on("late", "CreateSIPParticipant")
    });
    let sent = w.send("CreateSIPParticipant", &bearer, None, &dial);
    assert_eq!(status(&w.wait(sent)), 401);
    assert_eq!(sip_calls(&w), 0);
}

// Seen on livekit-server 1.13.5: its Redis was flushed while a phone rang.
#[test]
fn a_flush_of_the_records_empties_the_lists_and_ends_nothing() {
    let mut w = world();
    let sid = create(&mut w, "room")["sid"].clone();
    let mut dial = w.dial_body("room", RINGS);
    dial["ringing_timeout"] = json!("60s");
    let sent = w.send("CreateSIPParticipant", &token("room"), None, &dial);
    w.pass(secs(2));
    assert_eq!(participants(&mut w, "room"), 1);
    w.fault(Fault::named("redis_flush"));
    assert_eq!(participants(&mut w, "room"), 0);
    let rooms = body(w.ask("ListRooms", "", &json!({})));
    assert_eq!(rooms["rooms"], json!([]));
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 404);
    assert_eq!(status(&w.ask("ListDispatch", "room", &room("room"))), 200);
    w.pass(secs(6));
    let rooms = body(w.ask("ListRooms", "", &json!({})));
    assert_eq!(rooms["rooms"].as_array().map(Vec::len), Some(1));
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 500);
    assert_eq!(w.fate_of(sent), None, "the phone rings on");
    assert_eq!(create(&mut w, "room")["sid"], sid);
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 200);
    assert_eq!(status(&w.wait(sent)), 408);
}

// Seen on livekit-server 1.13.5: server and bridge killed together while a phone rang.
#[test]
fn stale_records_stay_until_the_room_is_made_again_and_deleted() {
    let mut w = world();
    create(&mut w, "room");
    let sent = w.dial("room", RINGS);
    w.pass(secs(2));
    w.fault(Fault::named("server_restart"));
    assert_eq!(w.wait(sent), Fate::Cut);
    w.pass(secs(60));
    let listed = body(w.ask("ListParticipants", "room", &room("room")));
    let attributes = &listed["participants"][0]["attributes"];
    assert_eq!(attributes["sip.callStatus"], "ringing");
    assert_eq!(status(&w.ask("ListDispatch", "room", &room("room"))), 503);
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 503);
    create(&mut w, "room");
    assert_eq!(status(&w.ask("DeleteRoom", "", &room("room"))), 200);
    assert_eq!(participants(&mut w, "room"), 0);
    assert_eq!(w.platform.state().legs_by_number[RINGS].now, 0);
}

#[test]
fn a_killed_bridge_leaves_the_phone_ringing_and_the_dial_to_its_deadline() {
    let mut w = world();
    create(&mut w, "room");
    let mut dial = w.dial_body("room", RINGS);
    dial["ringing_timeout"] = json!("45s");
    let sent = w.send("CreateSIPParticipant", &token("room"), Some(65_000), &dial);
    w.pass(secs(3));
    w.fault(Fault::named("bridge_killed"));
    w.pass(secs(30));
    assert_eq!(w.platform.state().legs_by_number[RINGS].now, 1);
    assert_eq!(participants(&mut w, "room"), 0);
    let Fate::Answered(408, answer) = w.wait(sent) else {
        panic!("the deadline answers");
    };
    assert_eq!(answer["code"], "deadline_exceeded");
    assert_eq!(w.platform.state().legs_by_number[RINGS].now, 0);
}

#[test]
fn lost_replies_are_cut_and_the_call_goes_on() {
    let mut w = world();
    create(&mut w, "room");
    let answered = w.dial("room", "+12025550198");
    assert_eq!(w.wait(answered), Fate::Cut);
    assert_eq!(w.platform.state().sip_calls[0].status, "active");
    let mut w = world();
    create(&mut w, "room");
    let rings = w.dial("room", "+12025550199");
    assert_eq!(w.wait(rings), Fate::Cut);
    assert_eq!(w.platform.state().sip_calls[0].status, "ringing");
    w.pass(secs(10));
    assert_eq!(w.platform.state().sip_calls[0].status, "not_connected");
    let mut w = world();
    create(&mut w, "room");
    let dial = w.dial_body("room", "+12025550197");
    let late = w.send("CreateSIPParticipant", &token("room"), Some(8_000), &dial);
    assert_eq!(status(&w.wait(late)), 408);
    assert_eq!(w.platform.state().sip_calls[0].status, "active");
}

#[test]
fn a_lost_request_does_nothing_and_a_lost_reply_does_all() {
    let mut w = world();
    w.fault(Fault::on("lose_request", "CreateRoom"));
    assert_eq!(w.ask("CreateRoom", "", &json!({"name": "room"})), Fate::Cut);
    assert!(w.platform.state().rooms.is_empty());
    w.fault(Fault::on("lose_reply", "CreateRoom"));
    assert_eq!(w.ask("CreateRoom", "", &json!({"name": "room"})), Fate::Cut);
    assert_eq!(w.platform.state().rooms.len(), 1);
    w.fault(Fault::on("lose_reply", "CreateSIPParticipant"));
    let sent = w.dial("room", ANSWERS);
    assert_eq!(w.wait(sent), Fate::Cut);
    assert_eq!(sip_calls(&w), 1);
}

#[test]
fn faults_strike_their_number_as_often_as_told() {
    let mut w = world();
    w.fault(Fault {
        times: Some(2),
        to: Some(ANSWERS.to_owned()),
        ..Fault::named("overload")
    });
    let mut statuses = Vec::new();
    for to in [RINGS, ANSWERS, ANSWERS, ANSWERS] {
        let room = format!("room{}", statuses.len());
        let sent = w.dial(&room, to);
        statuses.push(status(&w.wait(sent)));
    }
    assert_eq!(statuses, [408, 503, 503, 200]);
    assert_eq!(
        w.platform.fault(w.now, Fault::named("no_such_fault")),
        Err(FaultError)
    );
    assert!(fault_names().contains(&"trunk_flush"));
}

#[test]
fn more_dials_a_second_than_the_bridge_can_take_are_refused() {
    let mut w = World::new(Settings {
        capacity: Some(3),
        ..Settings::default()
    });
    let sent: Vec<Sent> = (0..5)
        .map(|at| w.dial(&format!("r{at}"), ANSWERS))
        .collect();
    let statuses: Vec<u16> = sent.into_iter().map(|it| status(&w.wait(it))).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503]);
    assert_eq!(sip_calls(&w), 3);
    assert_eq!(w.platform.state().dials["S1"], 5);
}

#[test]
fn a_flushed_trunk_comes_back_under_another_id() {
    let mut w = world();
    let old = w.dial_body("room", ANSWERS);
    w.fault(Fault::named("trunk_flush"));
    let sent = w.send("CreateSIPParticipant", &token("room"), None, &old);
    assert_eq!(status(&w.wait(sent)), 404);
    let sent = w.dial("room", ANSWERS);
    assert_eq!(status(&w.wait(sent)), 200);
    assert_eq!((w.platform.state().dials["S1"], sip_calls(&w)), (2, 1));
}

#[test]
fn two_trunks_of_one_name_can_be_made_and_one_without_numbers_cannot() {
    let mut w = world();
    let trunk = json!({"trunk": {"name": "main", "address": "127.0.0.1", "numbers": ["+1"]}});
    assert_eq!(status(&w.ask("CreateSIPOutboundTrunk", "", &trunk)), 200);
    let none = json!({"trunk": {"name": "main", "address": "127.0.0.1"}});
    assert_eq!(
        body(w.ask("CreateSIPOutboundTrunk", "", &none)),
        json!({"code": "invalid_argument", "msg": "no trunk numbers specified"})
    );
    let listed = body(w.ask("ListSIPOutboundTrunk", "", &json!({})));
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    assert!(items.len() == 2 && items.iter().all(|item| item["name"] == "main"));
    let first = json!({"sip_trunk_id": items[0]["sip_trunk_id"]});
    assert_eq!(status(&w.ask("DeleteSIPTrunk", "", &first)), 200);
    let listed = body(w.ask("ListSIPOutboundTrunk", "", &json!({})));
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn rooms_close_by_their_timeouts_and_agents_do_not_keep_them() {
    let mut w = world();
    create(&mut w, "empty");
    w.ask(
        "CreateDispatch",
        "empty",
        &json!({"room": "empty", "agent_name": "caller"}),
    );
    w.pass(secs(299));
    assert_eq!(w.platform.state().rooms.len(), 1);
    w.pass(secs(2));
    assert!(w.platform.state().rooms.is_empty());
    let mut w = world();
    create(&mut w, "room");
    w.ask(
        "CreateDispatch",
        "room",
        &json!({"room": "room", "agent_name": "caller"}),
    );
    let sent = w.dial("room", "+12025550186");
    assert_eq!(status(&w.wait(sent)), 429);
    w.pass(secs(19));
    assert_eq!(
        w.platform.state().rooms.len(),
        1,
        "the agent is still inside"
    );
    w.pass(secs(2));
    assert!(w.platform.state().rooms.is_empty());
    let left = &w.hooks[w.hooks.len() - 2]["participant"];
    assert_eq!(
        (&left["kind"], &left["disconnectReason"]),
        (&json!("AGENT"), &json!("ROOM_CLOSED"))
    );
}

fn agents_after(behaviour: Behaviour, unnamed: bool, at: Duration) -> usize {
    let mut workers = vec![Worker::new("caller", behaviour)];
    if unnamed {
        workers.push(Worker::new("", Behaviour::Joins { after: ms(100) }));
    }
    let mut w = World::new(Settings {
        workers,
        ..Settings::default()
    });
    create(&mut w, "room");
    w.ask(
        "CreateDispatch",
        "room",
        &json!({"room": "room", "agent_name": "caller"}),
    );
    w.pass(at);
    participants(&mut w, "room")
}

#[test]
fn agents_join_late_never_twice_or_leave() {
    let joins = Behaviour::Joins { after: ms(400) };
    assert_eq!(agents_after(joins, false, secs(1)), 1);
    assert_eq!(agents_after(joins, true, secs(1)), 2);
    assert_eq!(agents_after(Behaviour::Absent, false, secs(60)), 0);
    let late = Behaviour::Late { after: secs(20) };
    assert_eq!(agents_after(late, false, secs(19)), 0);
    assert_eq!(agents_after(late, false, secs(21)), 1);
    let leaves = Behaviour::Leaves {
        join: ms(400),
        after: secs(2),
    };
    assert_eq!(agents_after(leaves, false, secs(1)), 1);
    assert_eq!(agents_after(leaves, false, secs(3)), 0);
    let doubled = Behaviour::Doubled { after: ms(400) };
    assert_eq!(agents_after(doubled, false, secs(1)), 2);
}

#[test]
fn double_rings_of_a_contact_are_seen_across_attempts_and_rooms() {
    let mut w = world();
    create(&mut w, "one");
    create(&mut w, "two");
    w.dial("one", RINGS);
    w.dial("two", ANSWERS);
    w.pass(secs(60));
    let state = w.platform.state();
    let peak = state.legs_by_contact["w/c1"];
    assert_eq!((peak.now, peak.most), (0, 2));
    assert_eq!(state.legs_by_number[RINGS].most, 1);
    assert_eq!(state.sip_calls.iter().map(|call| call.count).max(), Some(1));
}

#[test]
fn a_webhook_is_tried_five_times_and_4xx_counts_as_delivered() {
    let mut w = world();
    w.receiver = Some(Delivery::Status {
        status: 503,
        retry_after: None,
    });
    create(&mut w, "room");
    w.pass(secs(14));
    assert_eq!(
        w.hooks.len(),
        4,
        "waits of 1, 2 and 4 s are over, that of 8 s is not"
    );
    w.pass(secs(2));
    let counts = w.platform.state().webhooks;
    assert_eq!((counts.sent, counts.retried, counts.dropped), (0, 4, 1));
    assert!(
        w.hooks
            .windows(2)
            .all(|pair| pair[0]["id"] == pair[1]["id"])
    );
    let mut w = world();
    w.receiver = Some(Delivery::Status {
        status: 415,
        retry_after: None,
    });
    create(&mut w, "room");
    w.pass(secs(30));
    let counts = w.platform.state().webhooks;
    assert_eq!((counts.sent, counts.retried, counts.dropped), (1, 0, 0));
}

#[test]
fn events_that_waited_too_long_behind_a_hanging_receiver_are_dropped() {
    let mut w = world();
    w.receiver = None;
    create(&mut w, "room");
    w.dial("room", "+12025550186");
    w.pass(secs(1));
    assert_eq!(
        w.told(),
        ["room_started"],
        "one is in flight, the others wait"
    );
    let mut settings = Settings::default();
    settings.times.webhook_wait = secs(10);
    let mut w = World::new(settings);
    w.fault(Fault {
        times: Some(4),
        ..Fault::named("webhook_outage")
    });
    create(&mut w, "room");
    w.dial("room", "+12025550186");
    w.pass(secs(400));
    assert_eq!(w.told().first(), Some(&"room_started"));
    assert!(!w.told().contains(&"participant_joined"));
    assert!(w.platform.state().webhooks.dropped >= 2);
}

#[test]
fn the_same_seed_gives_the_same_answers_and_events() {
    let run = |seed| {
        let mut w = World::new(Settings {
            seed,
            ..Settings::default()
        });
        create(&mut w, "room");
        let sent = w.dial("room", ANSWERS);
        let fate = w.wait(sent);
        w.pass(secs(60));
        (fate, w.hooks)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn grants_are_asked_for_room_by_room() {
    let mut w = world();
    create(&mut w, "room");
    let other = token("another");
    for method in ["ListParticipants", "ListDispatch", "CreateDispatch"] {
        let sent = w.send(method, &other, None, &room("room"));
        assert_eq!(
            body(w.wait(sent)),
            json!({"code": "unauthenticated", "msg": "permissions denied"})
        );
    }
    let sent = w.send("NoSuchMethod", &other, None, &json!({}));
    let Fate::Answered(404, answer) = w.wait(sent) else {
        panic!("an unknown method is a bad route");
    };
    assert_eq!(answer["code"], "bad_route");
}
