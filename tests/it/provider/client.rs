//! The client over a wire that answers from a script.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use livekit_api::access_token::{Claims, TokenVerifier};
use livekit_protocol as proto;
use prost::Message;
use ringonce::model::id::{AttemptId, Partition, RoomName, SessionId, TrunkName};
use ringonce::model::time::Time;
use ringonce::model::verdict::TryFailure;
use ringonce::provider::call::{Call, Doubt, Refused};
use ringonce::provider::client::{Client, Limits};
use ringonce::provider::dial::{Dial, SESSION_HEADER};
use ringonce::provider::dispatch::Lives;
use ringonce::provider::participants::{CallStatus, Kind, State};
use ringonce::provider::rooms::{Gone, NewRoom};
use ringonce::provider::token::{Credentials, Grant};
use ringonce::provider::trunks::{TrunkError, TrunkId};
use ringonce::provider::wire::{Answer, Lost, Method, NotSent, Refusal, Reply, Request, Wire};
use ringonce::runtime::clock::{Clock, SystemClock};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

/// Answers in the order of the script; out of answers is a fault of the test.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Request>>,
    date: Option<Time>,
}

#[async_trait]
impl Wire for Script {
    async fn send(&self, request: Request) -> Reply {
        // Others get their turn, as on a network.
        tokio::task::yield_now().await;
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        Reply {
            answer: answer.expect("the script has an answer for every request"),
            date: self.date,
        }
    }
}

impl Script {
    fn methods(&self) -> Vec<Method> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|r| r.method)
            .collect()
    }

    fn left(&self) -> usize {
        self.answers.lock().unwrap().len()
    }
}

#[derive(Debug)]
struct At(Time);

impl Clock for At {
    fn now(&self) -> Time {
        self.0
    }
}

fn credentials() -> Credentials {
    Credentials {
        key: "devkey".to_owned(),
        secret: SecretString::from("a secret of at least thirty-two bytes"),
    }
}

fn client(answers: impl IntoIterator<Item = Answer>) -> (Client, Arc<Script>) {
    let script = Arc::new(Script {
        answers: Mutex::new(answers.into_iter().collect()),
        date: Time::parse("2026-11-29T12:00:00Z"),
        ..Script::default()
    });
    let client = Client::new(
        script.clone(),
        credentials(),
        Arc::new(SystemClock),
        Limits::default(),
    );
    (client, script)
}

fn room() -> RoomName {
    session().room(Partition(0))
}

fn session() -> SessionId {
    SessionId::parse("6f0b1d5e-4c1a-4d07-9a39-1b8e72f455d1").unwrap()
}

fn main_trunk() -> TrunkName {
    "main".parse().unwrap()
}

fn done(message: &impl Message) -> Answer {
    Answer::Done(message.encode_to_vec())
}

fn twirp(status: u16, code: &str, msg: &str) -> Answer {
    Answer::Refused(Refusal {
        status,
        code: code.to_owned(),
        msg: format!("twirp error unknown: {msg}"),
        ..Refusal::default()
    })
}

fn trunks(listed: &[(&str, &str, &[&str])]) -> Answer {
    let items = listed
        .iter()
        .map(|(id, name, numbers)| proto::SipOutboundTrunkInfo {
            sip_trunk_id: (*id).to_owned(),
            name: (*name).to_owned(),
            numbers: numbers.iter().map(|n| (*n).to_owned()).collect(),
            ..Default::default()
        });
    done(&proto::ListSipOutboundTrunkResponse {
        items: items.collect(),
    })
}

fn one(id: &str) -> Answer {
    trunks(&[(id, "main", &["+12025550100"])])
}

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

/// R09: a thousand dials that find their trunk missing cause one list.
#[tokio::test(start_paused = true)]
async fn r09_a_thousand_at_once_list_once() {
    let (client, script) = client([one("ST_old"), one("ST_new")]);
    let name = main_trunk();
    let old = client.resolve_trunk(&name).await.unwrap();
    let healed = join_all((0..1000).map(|_| async {
        client.evict_trunk(&name, &old);
        client.resolve_trunk(&name).await.unwrap()
    }))
    .await;
    assert!(healed.iter().all(|id| id.as_str() == "ST_new"));
    assert_eq!(script.left(), 0);
    // One that comes late with the old id does not throw the new one away.
    client.evict_trunk(&name, &old);
    assert_eq!(
        client.resolve_trunk(&name).await.unwrap().as_str(),
        "ST_new"
    );
}

/// R09: what cannot heal is said, by one list for all, and nothing is kept of it.
#[tokio::test(start_paused = true)]
async fn r09_what_cannot_heal_is_said() {
    let number: &[&str] = &["+12025550100"];
    for (answer, wanted, failure) in [
        (trunks(&[]), TrunkError::NotFound, TryFailure::TrunkNotFound),
        (
            trunks(&[("ST_1", "Main", number), ("ST_2", "main ", number)]),
            TrunkError::NotFound,
            TryFailure::TrunkNotFound,
        ),
        (
            trunks(&[("ST_1", "main", number), ("ST_2", "main", number)]),
            TrunkError::Ambiguous(2),
            TryFailure::TrunkNotFound,
        ),
        (
            trunks(&[("ST_1", "main", &[])]),
            TrunkError::NoNumber,
            TryFailure::TrunkNoNumber,
        ),
        (
            Answer::Strange(401),
            TrunkError::Refused(Refused::Credentials),
            TryFailure::CredentialsRefused,
        ),
    ] {
        let (client, script) = client([answer, one("ST_9")]);
        let name = main_trunk();
        let all = join_all((0..100).map(|_| client.resolve_trunk(&name))).await;
        assert!(all.iter().all(|result| *result == Err(wanted)), "{all:?}");
        assert_eq!(wanted.failure(), failure);
        assert_eq!(script.left(), 1);
        assert_eq!(client.resolve_trunk(&name).await.unwrap().as_str(), "ST_9");
    }
    let (client, _) = client(vec![twirp(503, "unavailable", "x"); 3]);
    let error = client.resolve_trunk(&main_trunk()).await.unwrap_err();
    assert_eq!(error, TrunkError::Unclear(Doubt::Failed(503)));
    assert_eq!(error.failure(), TryFailure::PlatformUnreachable);
}

/// One that lists is dropped half-way; the next in line lists, and nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn a_dropped_list_wedges_nobody() {
    let (client, script) = client([one("ST_1")]);
    let name = main_trunk();
    let mut dropped = Box::pin(client.resolve_trunk(&name));
    let mut next = Box::pin(client.resolve_trunk(&name));
    assert!(futures_util::poll!(dropped.as_mut()).is_pending());
    assert!(futures_util::poll!(next.as_mut()).is_pending());
    drop(dropped);
    assert_eq!(next.await.unwrap().as_str(), "ST_1");
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_trunk_is_listed_by_its_id() {
    let (client, script) = client([one("ST_1"), trunks(&[])]);
    let id = TrunkId::from("ST_1".to_owned());
    assert_eq!(client.trunk_listed(&id).await, Call::Done(true));
    assert_eq!(client.trunk_listed(&id).await, Call::Done(false));
    let body = script.asked.lock().unwrap().pop().unwrap().body;
    let sent = proto::ListSipOutboundTrunkRequest::decode(body.as_slice()).unwrap();
    assert_eq!(sent.trunk_ids, ["ST_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_created_room_comes_with_the_platforms_date() {
    let (client, script) = client([done(&proto::Room {
        sid: "RM_1".to_owned(),
        name: room().as_str().to_owned(),
        metadata: "old".to_owned(),
        ..Default::default()
    })]);
    let created = client.create_room(&new_room()).await.done().unwrap();
    assert_eq!(
        (created.room.sid.as_str(), created.room.metadata.as_str()),
        ("RM_1", "old")
    );
    assert_eq!(created.date, Time::parse("2026-11-29T12:00:00Z"));
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
        client.list_rooms(&vec![room(); 201]).await,
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
        Gone::Refused(Refused::Rejected(404))
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

fn claims(token: &SecretString) -> Claims {
    let credentials = credentials();
    TokenVerifier::with_api_key(&credentials.key, credentials.secret.expose_secret())
        .verify(token.expose_secret())
        .unwrap()
}

#[test]
fn a_token_has_the_least_grant_and_the_given_times() {
    let now = SystemClock.now();
    let room = room();
    for (grant, video, sip) in [
        (Grant::Rooms, (true, false, false), (false, false)),
        (Grant::ListRooms, (false, true, false), (false, false)),
        (Grant::Room(&room), (false, false, true), (false, false)),
        (Grant::Trunks, (false, false, false), (true, false)),
        (Grant::Dial, (false, false, false), (false, true)),
    ] {
        let token = credentials().mint(grant, now, now.plus(Duration::from_secs(5)));
        let claims = claims(&token);
        let allowed = &claims.video;
        assert_eq!(
            (allowed.room_create, allowed.room_list, allowed.room_admin),
            video
        );
        assert_eq!((claims.sip.admin, claims.sip.call), sip);
        assert_eq!(allowed.room == room.as_str(), allowed.room_admin);
        assert_eq!(claims.iss, "devkey");
        assert_eq!(claims.nbf as i64, now.as_secs());
        assert_eq!(claims.exp as i64, now.as_secs() + 5);
    }
}

/// The dial's token ends at `send_by`, never after it, whatever the machine's clock says.
#[test]
fn the_dials_token_expires_at_send_by() {
    let now = Time::from_micros(1_795_967_305_900_000);
    let send_by = now.plus(Duration::from_secs(5));
    let (client, _) = client([]);
    let token = client.mint_dial(now, send_by);
    let claims = Claims::from_unverified(token.expose_secret()).unwrap();
    assert_eq!(claims.exp, 1_795_967_310);
    assert_eq!(claims.nbf, 1_795_967_305);
    assert!(claims.sip.call && !claims.sip.admin);
}

#[test]
fn an_expired_or_foreign_token_is_refused() {
    let credentials = credentials();
    let verifier =
        TokenVerifier::with_api_key(&credentials.key, credentials.secret.expose_secret());
    let now = SystemClock.now();
    let late = credentials.mint(Grant::Dial, now, now.minus(Duration::from_secs(65)));
    assert!(verifier.verify(late.expose_secret()).is_err());
    let other = Credentials {
        secret: SecretString::from("another secret of thirty-two bytes!"),
        ..credentials
    };
    let foreign = other.mint(Grant::Dial, now, now.plus(Duration::from_secs(5)));
    assert!(verifier.verify(foreign.expose_secret()).is_err());
}

/// The times of a safe request's token are those of the clock that was given.
#[tokio::test(start_paused = true)]
async fn tokens_follow_the_clock_that_was_given() {
    let script = Arc::new(Script {
        answers: Mutex::new([done(&proto::ListRoomsResponse::default())].into()),
        ..Script::default()
    });
    let clock = Arc::new(At(Time::from_secs(1000)));
    let client = Client::new(script.clone(), credentials(), clock, Limits::default());
    assert!(client.all_rooms().await.done().is_some());
    let token = script.asked.lock().unwrap().pop().unwrap().token;
    let claims = Claims::from_unverified(token.expose_secret()).unwrap();
    assert_eq!((claims.nbf, claims.exp), (1000, 1060));
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
