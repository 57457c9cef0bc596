//! Faults: what breaks, and what goes on all the same.

use ringonce::lab::platform::{Fault, FaultError, Settings, fault_names};
use serde_json::json;

use super::world::{
    ANSWERS, Fate, RINGS, Sent, World, body, create, participants, room, secs, sip_calls, status,
    token, world,
};

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
    // Nobody is left to send a CANCEL: the carrier gives up by itself.
    assert_eq!(w.platform.state().legs_by_number[RINGS].now, 1);
    w.pass(secs(150));
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
    assert_eq!(w.platform.state().legs_by_number[RINGS].now, 1, "no CANCEL");
    w.pass(secs(150));
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
fn a_slow_platform_has_done_it_long_before_it_says_so() {
    let mut w = world();
    for method in ["CreateRoom", "CreateSIPParticipant"] {
        w.fault(Fault {
            millis: Some(7_000),
            ..Fault::on("slow", method)
        });
    }
    let sent = w.send("CreateRoom", &token("room"), None, &json!({"name": "room"}));
    assert_eq!(w.platform.state().rooms.len(), 1);
    assert_eq!((status(&w.wait(sent)), w.now), (200, secs(7)));
    let dialed_at = w.now;
    let sent = w.dial("room", ANSWERS);
    w.pass(secs(7));
    assert_eq!(w.platform.state().sip_calls[0].status, "active");
    assert_eq!(w.fate_of(sent), None);
    assert_eq!(status(&w.wait(sent)), 200);
    assert!(w.now > dialed_at + secs(8));
}

#[test]
fn an_absent_agent_is_not_asked_for_again() {
    let mut w = world();
    create(&mut w, "room");
    w.fault(Fault::named("agent_absent"));
    let wanted = json!({"room": "room", "agent_name": "caller"});
    assert_eq!(status(&w.ask("CreateDispatch", "room", &wanted)), 200);
    w.pass(secs(60));
    assert_eq!(participants(&mut w, "room"), 0);
    w.ask("CreateDispatch", "room", &wanted);
    w.pass(secs(1));
    assert_eq!(participants(&mut w, "room"), 1);
}
