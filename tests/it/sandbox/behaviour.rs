//! Races, timeouts, agents and queues: what the recordings show only in part.

use std::time::Duration;

use ringonce::lab::platform::{Behaviour, Delivery, Fault, Settings, Worker, sign};
use serde_json::{Value, json};

use super::world::{
    ANSWERS, Fate, KEY, RINGS, SECRET, World, body, create, ms, participants, room, secs,
    sip_calls, status, token, world,
};

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
fn the_shortest_ringing_bounds_the_wait_for_the_carrier_and_not_what_comes_before() {
    for (to, says, took) in [
        // The name is looked up before the INVITE leaves.
        ("+12025550114", 400, ms(5_430)),
        ("+12025550115", 412, ms(530)),
        ("+12025550106", 408, ms(5_030)),
        ("+12025550116", 408, ms(5_030)),
        ("+12025550111", 408, ms(5_030)),
    ] {
        let mut w = world();
        create(&mut w, "room");
        let mut dial = w.dial_body("room", to);
        dial["ringing_timeout"] = json!("5s");
        let sent = w.send("CreateSIPParticipant", &token("room"), None, &dial);
        assert_eq!((status(&w.wait(sent)), w.took), (says, took), "{to}");
    }
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
// Seen on livekit-server 1.13.5: server and bridge killed together while a phone rang.
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
