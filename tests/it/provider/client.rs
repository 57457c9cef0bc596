//! The client over a wire that answers from a script: what is sent, how often, and how the
//! answers are read.

use std::collections::BTreeMap;
use std::time::Duration;

use livekit_protocol as proto;
use prost::Message;
use ringonce::model::id::{AttemptId, RoomName};
use ringonce::provider::call::{Call, Doubt, Refused};
use ringonce::provider::dial::{Dial, SESSION_HEADER};
use ringonce::provider::dispatch::Lives;
use ringonce::provider::participants::{CallStatus, Kind, State};
use ringonce::provider::rooms::{Gone, NewRoom};
use ringonce::provider::trunks::TrunkId;
use ringonce::provider::wire::{Answer, Lost, Method, NotSent};
use secrecy::SecretString;
use tokio::time::Instant;

use super::script::{client, done, main_trunk, room, session, twirp};

fn new_room() -> NewRoom {
    NewRoom {
        name: room(),
        metadata: "{}".to_owned(),
        empty_timeout: Duration::from_millis(1500),
        departure_timeout: Duration::from_secs(20),
    }
}

fn dial<'a>(
    trunk: &'a TrunkId,
    room: &'a RoomName,
    attempt: &'a AttemptId,
    headers: &'a BTreeMap<String, String>,
) -> Dial<'a> {
    Dial {
        trunk,
        to: "+12025550186",
        from: None,
        room,
        session: session(),
        attempt,
        ringing_timeout: Duration::from_secs(45),
        max_call_duration: Duration::from_hours(1),
        digits: Some("1w2"),
        headers,
        hide_phone_number: true,
        token: SecretString::from("token"),
        timeout: Duration::from_secs(75),
        server_deadline: Duration::from_secs(65),
        send_by: None,
    }
}

/// R03, R01: whatever comes back, a create and a dial leave once.
#[tokio::test(start_paused = true)]
async fn r03_what_is_not_safe_to_repeat_is_sent_once() {
    let faults = || {
        [
            Answer::Lost(Lost::Broken),
            Answer::Lost(Lost::Timeout),
            Answer::NotSent(NotSent::NoConnection),
            Answer::Strange(429),
            Answer::Strange(502),
            twirp(500, "internal", "x"),
            twirp(503, "unavailable", "no response from servers"),
            twirp(408, "canceled", "request canceled"),
        ]
    };
    let (trunk, room, attempt) = (
        TrunkId::from("ST_1".to_owned()),
        room(),
        "a".parse().unwrap(),
    );
    let headers = BTreeMap::new();
    for fault in faults() {
        let (client, script) = client([fault.clone(), fault.clone(), fault.clone()]);
        let created = client.create_room(&new_room()).await;
        let dispatched = client
            .create_dispatch(&room, &"caller".parse().unwrap(), "{}")
            .await;
        let dialed = client.dial(dial(&trunk, &room, &attempt, &headers)).await;
        assert!(created.done().is_none() && dispatched.done().is_none());
        assert_eq!(dialed.answer, fault);
        assert_eq!(
            script.methods(),
            [Method::CreateRoom, Method::CreateDispatch, Method::Dial]
        );
    }
}

/// R03: a safe request is repeated, a bounded number of times, and only without an answer.
#[tokio::test(start_paused = true)]
async fn r03_safe_requests_are_repeated_within_bounds() {
    let (first, script) = client([
        Answer::Lost(Lost::Broken),
        Answer::Strange(503),
        done(&proto::DeleteRoomResponse::default()),
    ]);
    assert_eq!(first.delete_room(&room()).await, Gone::Deleted);
    assert_eq!(script.left(), 0);

    let (second, script) = client(vec![Answer::NotSent(NotSent::NoConnection); 4]);
    let started = Instant::now();
    assert_eq!(
        second.all_rooms().await,
        Call::Refused(Refused::NotSent(NotSent::NoConnection))
    );
    assert_eq!(script.left(), 1);
    assert_eq!(started.elapsed(), Duration::from_millis(300));

    let (third, script) = client([Answer::Strange(401)]);
    assert_eq!(third.all_rooms().await, Call::Refused(Refused::Credentials));
    assert_eq!(script.left(), 0);
}

/// R22: the request asks for the ring that was meant, and our own limit outlasts it.
#[tokio::test(start_paused = true)]
async fn r22_the_dial_asks_for_its_ring() {
    let (client, script) = client([Answer::Lost(Lost::Timeout)]);
    let (trunk, room, attempt) = (
        TrunkId::from("ST_1".to_owned()),
        room(),
        "a".parse().unwrap(),
    );
    let headers = BTreeMap::from([("X-Own".to_owned(), "1".to_owned())]);
    client.dial(dial(&trunk, &room, &attempt, &headers)).await;
    let asked = script.asked.lock().unwrap().pop().unwrap();
    assert_eq!(asked.timeout, Duration::from_secs(75));
    assert_eq!(asked.server_deadline, Some(Duration::from_secs(65)));
    assert!(!format!("{asked:?}").contains("2025550186"));

    let sent = proto::CreateSipParticipantRequest::decode(asked.body.as_slice()).unwrap();
    assert!(sent.wait_until_answered && sent.play_dialtone && sent.hide_phone_number);
    assert_eq!(sent.ringing_timeout.unwrap().seconds, 45);
    assert_eq!(sent.max_call_duration.unwrap().seconds, 3600);
    assert_eq!(
        (sent.sip_call_to.as_str(), sent.sip_number.as_str()),
        ("+12025550186", "")
    );
    assert_eq!(
        (sent.sip_trunk_id.as_str(), sent.dtmf.as_str()),
        ("ST_1", "1w2")
    );
    assert_eq!(sent.room_name, room.as_str());
    assert_eq!(sent.participant_identity, session().identity());
    assert_eq!(sent.headers[SESSION_HEADER], session().to_string());
    assert_eq!(sent.headers["X-Own"], "1");
    assert_eq!(
        sent.participant_attributes["ringonce.session"],
        session().to_string()
    );
    assert_eq!(sent.participant_attributes["ringonce.attempt"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_dial_whose_time_has_passed_is_not_sent() {
    let (client, script) = client([Answer::Lost(Lost::Timeout)]);
    let (trunk, room, attempt) = (
        TrunkId::from("ST_1".to_owned()),
        room(),
        "a".parse().unwrap(),
    );
    let headers = BTreeMap::new();
    let send_by = Instant::now();
    tokio::time::advance(Duration::from_millis(1)).await;
    let late = Dial {
        send_by: Some(send_by),
        ..dial(&trunk, &room, &attempt, &headers)
    };
    let reply = client.dial(late).await;
    assert_eq!(reply.answer, Answer::NotSent(NotSent::TooLate));
    assert_eq!(script.left(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_room_is_made_with_whole_seconds_and_comes_as_it_is() {
    let (client, script) = client([done(&proto::Room {
        sid: "RM_1".to_owned(),
        name: room().as_str().to_owned(),
        metadata: "old".to_owned(),
        ..Default::default()
    })]);
    let created = client.create_room(&new_room()).await.done().unwrap();
    assert_eq!(
        (created.sid.as_str(), created.metadata.as_str()),
        ("RM_1", "old")
    );
    let body = script.asked.lock().unwrap().pop().unwrap().body;
    let sent = proto::CreateRoomRequest::decode(body.as_slice()).unwrap();
    assert_eq!((sent.empty_timeout, sent.departure_timeout), (2, 20));
}

#[tokio::test(start_paused = true)]
async fn rooms_are_listed_by_name_in_chunks_and_no_name_is_not_every_room() {
    let (client, script) = client(vec![done(&proto::ListRoomsResponse::default()); 2]);
    assert_eq!(client.list_rooms(&[]).await, Call::Done(Vec::new()));
    assert!(script.methods().is_empty());
    assert_eq!(
        client.list_rooms(&vec![room(); 501]).await,
        Call::Done(Vec::new())
    );
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_not_there_is_not_deleted_and_a_stale_one_is_made_first() {
    let missing = || twirp(404, "not_found", "requested room does not exist");
    let (first, _) = client([missing()]);
    assert_eq!(first.delete_room(&room()).await, Gone::NotThere);
    let (page, _) = client([Answer::Strange(404)]);
    assert_eq!(
        page.delete_room(&room()).await,
        Gone::Refused(Refused::NotSent(NotSent::NoConnection)),
        "another server answers"
    );
    let (stale, script) = client([
        done(&proto::Room::default()),
        done(&proto::DeleteRoomResponse::default()),
    ]);
    assert_eq!(stale.delete_stale(&room()).await, Gone::Deleted);
    assert_eq!(script.methods(), [Method::CreateRoom, Method::DeleteRoom]);
    // The record may have been made although no answer came: it is deleted all the same.
    let (lost, script) = client([Answer::Lost(Lost::Broken), missing()]);
    assert_eq!(
        lost.delete_stale(&room()).await,
        Gone::Unclear(Doubt::Lost(Lost::Broken))
    );
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn whether_a_room_lives_is_answered_by_its_node() {
    let (client, script) = client([
        twirp(503, "unavailable", "no response from servers"),
        done(&proto::ListAgentDispatchResponse::default()),
        Answer::Strange(503),
        Answer::Strange(503),
        Answer::Strange(503),
    ]);
    assert_eq!(client.dispatches(&room()).await, Call::Done(Lives::No));
    assert_eq!(
        client.dispatches(&room()).await,
        Call::Done(Lives::Yes(Vec::new()))
    );
    assert_eq!(
        client.dispatches(&room()).await,
        Call::Unclear(Doubt::Strange(503))
    );
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn participants_are_seen_as_recorded() {
    let mut leg = proto::ParticipantInfo {
        sid: "PA_1".to_owned(),
        identity: session().identity(),
        state: 2,
        kind: 3,
        ..Default::default()
    };
    leg.attributes
        .insert("sip.callStatus".to_owned(), "ringing".to_owned());
    leg.attributes
        .insert("sip.callID".to_owned(), "SCL_1".to_owned());
    let mut agent = proto::ParticipantInfo {
        state: 99,
        kind: 4,
        ..Default::default()
    };
    agent
        .attributes
        .insert("lk.agent_name".to_owned(), "caller".to_owned());
    let (client, _) = client([
        done(&leg),
        twirp(404, "not_found", "participant does not exist"),
        done(&proto::ListParticipantsResponse {
            participants: vec![agent],
        }),
    ]);
    let seen = client
        .participant(&room(), "x")
        .await
        .done()
        .flatten()
        .unwrap();
    assert_eq!((seen.kind, seen.state), (Kind::Sip, State::Active));
    assert_eq!(seen.call_status, Some(CallStatus::Ringing));
    assert_eq!(seen.call_id.as_deref(), Some("SCL_1"));
    assert_eq!(client.participant(&room(), "x").await, Call::Done(None));
    let agent = client.participants(&room()).await.done().unwrap().remove(0);
    assert_eq!((agent.kind, agent.state), (Kind::Agent, State::Other));
    assert_eq!(agent.agent_name.as_deref(), Some("caller"));
}

/// Every request can be awaited in a task of its own.
#[test]
fn the_clients_futures_move_between_threads() {
    fn moves<T: Send>(_: &T) {}
    let (client, _) = client([]);
    let (room, name, id) = (room(), main_trunk(), TrunkId::from("ST_1".to_owned()));
    let (attempt, headers) = ("a".parse().unwrap(), BTreeMap::new());
    moves(&client);
    moves(&client.create_room(&new_room()));
    moves(&client.delete_stale(&room));
    moves(&client.participants(&room));
    moves(&client.dispatches(&room));
    moves(&client.resolve_trunk(&name));
    moves(&client.dial(dial(&id, &room, &attempt, &headers)));
}
