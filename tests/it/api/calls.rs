//! `PlaceCall` and `CancelAttempt`.

use std::time::Duration;

use ringonce::api::proto::attempt::{Disposition as Named, Next, State as Shown};
use ringonce::api::{DOMAIN, Reason, proto};
use ringonce::model::attempt::State;
use ringonce::model::disposition::Disposition;
use tokio::time::Instant;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use super::fake::{Answer, Server, sound};

/// The reason of an error, which every one has.
pub(super) fn reason(status: &Status) -> Reason {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("{status:?} has no reason"));
    assert_eq!(info.domain, DOMAIN);
    let reason = Reason::of_name(&info.reason).unwrap();
    assert_eq!(reason.code(), status.code());
    reason
}

fn span(seconds: i64) -> pbjson_types::Duration {
    pbjson_types::Duration { seconds, nanos: 0 }
}

#[tokio::test]
async fn a_sound_request_is_accepted_and_its_number_never_comes_back() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let attempt = client.place_call(sound("a1")).await.unwrap().into_inner();
    assert_eq!(attempt.state(), Shown::Reserved);
    assert_eq!(attempt.next(), Next::Ack);
    assert_eq!(attempt.to, "+1********00");
    assert_eq!(
        (attempt.trunk.as_str(), attempt.agent_name.as_str()),
        ("main", "caller")
    );
    assert!(!attempt.settled && !attempt.etag.is_empty());
    assert_eq!(attempt.history.len(), 1);
    assert!(!format!("{attempt:?}").contains("2025550100"));
    let again = client.place_call(sound("a1")).await.unwrap().into_inner();
    assert_eq!(again.etag, attempt.etag);
}

/// A request with something wrong in every field.
fn wrong() -> proto::PlaceCallRequest {
    let mut wrong = sound("a 1");
    wrong.workspace = String::new();
    wrong.contact_id = "c".repeat(129);
    wrong.outreach_id = "o\u{0}".into();
    wrong.campaign_id = "é".into();
    wrong.to = "tel:+1-202-555-0100;ext=3".into();
    wrong.from = "911".into();
    wrong.intend_time = wrong.intend_time.map(|mut time| {
        time.seconds += 3600;
        time
    });
    wrong.expire_time = Some(pbjson_types::Timestamp {
        seconds: 1,
        nanos: 0,
    });
    wrong.keep = 9;
    wrong.wait = 9;
    wrong.follows = Some(proto::Follows::default());
    wrong.policy = "gentle".into();
    wrong.trunk = "other".into();
    wrong.agent = Some(proto::Agent {
        name: "a/b".into(),
        metadata: "m".repeat(60_001),
        gate: 9,
        join_timeout: Some(span(121)),
    });
    wrong.ringing_timeout = Some(span(600));
    wrong.max_call_duration = Some(span(86_401));
    wrong.dial_digits = "12E".into();
    wrong.sip_headers = [("X-A".to_owned(), "b\r\nVia: c".to_owned())].into();
    wrong.contact_time_zone = "+01:00".into();
    wrong.priority = 10;
    wrong.labels = [(String::new(), String::new())].into();
    wrong
}

#[tokio::test]
async fn everything_that_is_wrong_is_said_at_once() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let status = client.place_call(wrong()).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidFields);
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let mut fields: Vec<&str> = violations.iter().map(|v| v.field.as_str()).collect();
    fields.sort_unstable();
    let expected = [
        "agent.gate",
        "agent.join_timeout",
        "agent.metadata",
        "agent.name",
        "attempt_id",
        "campaign_id",
        "contact_id",
        "contact_time_zone",
        "dial_digits",
        "expire_time",
        "follows.attempt_id",
        "follows.reason",
        "from",
        "intend_time",
        "keep",
        "labels",
        "max_call_duration",
        "outreach_id",
        "policy",
        "priority",
        "ringing_timeout",
        "sip_headers[\"X-A\"]",
        "to",
        "trunk",
        "wait",
        "workspace",
    ];
    assert_eq!(fields, expected);
    let said = |field: &str| {
        let found = violations.iter().find(|v| v.field == field);
        found.unwrap().description.clone()
    };
    assert!(said("to").contains("tel:"), "the kind of the fault");
    assert!(said("from").contains("emergency"));
    assert!(said("trunk").contains("main"), "the known names");
    assert!(!status.message().contains("202-555"), "never the number");
}

#[tokio::test]
async fn times_and_spans_keep_to_their_bounds() {
    type Change = fn(&mut proto::PlaceCallRequest);
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let cases: [(&str, Change); 7] = [
        ("intend_time", |r| r.intend_time = None),
        ("intend_time", |r| {
            r.intend_time.as_mut().unwrap().seconds = -1;
        }),
        ("intend_time", |r| {
            r.intend_time.as_mut().unwrap().seconds += 60;
        }),
        ("expire_time", |r| r.expire_time = r.intend_time),
        ("ringing_timeout", |r| r.ringing_timeout = Some(span(0))),
        ("ringing_timeout", |r| r.ringing_timeout = Some(span(-5))),
        ("max_call_duration", |r| {
            r.max_call_duration = Some(span(55));
        }),
    ];
    for (field, change) in cases {
        let mut request = sound("a1");
        change(&mut request);
        let status = client.place_call(request).await.unwrap_err();
        let violations = status.get_details_bad_request().unwrap().field_violations;
        let fields: Vec<&str> = violations.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, [field]);
    }
    let mut at_the_edge = sound("a1");
    at_the_edge.intend_time.as_mut().unwrap().seconds += 20;
    at_the_edge.ringing_timeout = Some(span(80));
    at_the_edge.max_call_duration = Some(span(91));
    at_the_edge.dial_digits = "ww12#".into();
    at_the_edge.contact_time_zone = "Europe/Berlin".into();
    client.place_call(at_the_edge).await.unwrap();
}

#[tokio::test]
async fn what_was_not_decided_has_a_reason_and_says_when_to_come_again() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    for (answer, expected, retry) in [
        (Answer::Full, Reason::QueueFull, true),
        (Answer::Reused, Reason::AttemptIdReused, false),
        (Answer::Away, Reason::StoreUnavailable, true),
        (Answer::Panic, Reason::DecisionUnknown, false),
    ] {
        server.core.answer(answer);
        let status = client.place_call(sound("a1")).await.unwrap_err();
        assert_eq!(reason(&status), expected);
        assert_eq!(
            status.get_details_retry_info().is_some(),
            retry,
            "{expected:?}"
        );
        assert!(
            !status.message().contains("disk"),
            "the store's words are the operator's"
        );
    }
    assert_eq!(server.tasks.panics(), 1);
}

#[tokio::test]
async fn a_message_over_the_limit_and_one_that_is_none_have_reasons_too() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut large = sound("a1");
    large.agent = Some(proto::Agent {
        metadata: "m".repeat(2 << 20),
        ..proto::Agent::default()
    });
    let status = client.place_call(large).await.unwrap_err();
    assert_eq!(reason(&status), Reason::MessageTooLarge);
    client.place_call(sound("a1")).await.unwrap();
}

/// The limit is in bytes, it is said by its number, and nothing is begun.
#[tokio::test]
async fn r36_a_text_is_measured_in_bytes_before_anything_is_made() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let with = |id: &str, metadata: String| {
        let mut request = sound(id);
        request.agent = Some(proto::Agent {
            metadata,
            ..proto::Agent::default()
        });
        request
    };
    // Two bytes each.
    let most = "é".repeat(30_000);
    client.place_call(with("a1", most.clone())).await.unwrap();
    let status = client.place_call(with("a2", most + "m")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidFields);
    let said = status.get_details_bad_request().unwrap().field_violations;
    assert_eq!(said[0].field, "agent.metadata");
    assert!(said[0].description.contains("60000"), "{said:?}");
    for bytes in [2 << 20, 5 << 20] {
        let status = client.place_call(with("a2", "m".repeat(bytes))).await;
        assert_eq!(reason(&status.unwrap_err()), Reason::MessageTooLarge);
    }
    let get = proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: "a2".into(),
        ..proto::GetAttemptRequest::default()
    };
    let status = client.get_attempt(get).await.unwrap_err();
    assert_eq!(reason(&status), Reason::AttemptNotFound);
}

#[tokio::test]
async fn dial_over_returns_when_the_dial_is_over() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut request = sound("a1");
    request.set_wait(proto::Wait::DialOver);
    let meanwhile = async {
        server.core.committed(1).await;
        server.core.enter("a1", State::Dialing, |_| {});
        server
            .core
            .settle("a1", State::NotConnected, Disposition::Busy);
    };
    let (answer, ()) = tokio::join!(client.place_call(request), meanwhile);
    let attempt = answer.unwrap().into_inner();
    assert_eq!(attempt.state(), Shown::NotConnected);
    assert_eq!(attempt.disposition(), Named::Busy);
    assert!(attempt.settled && attempt.end_time.is_some());
}

#[tokio::test]
async fn a_wait_ends_before_its_deadline_with_the_present_state() {
    let server = Server::start(|limits| limits.wait_margin = Duration::from_millis(250)).await;
    let mut client = server.client().await;
    let deadline = Duration::from_millis(600);
    let mut request = sound("a1");
    request.set_wait(proto::Wait::DialOver);
    let mut request = Request::new(request);
    request.set_timeout(deadline);
    let begin = Instant::now();
    let attempt = client.place_call(request).await.unwrap().into_inner();
    assert_eq!(
        attempt.state(),
        Shown::Reserved,
        "it is no error that it goes on"
    );
    assert!(
        begin.elapsed() >= Duration::from_millis(340),
        "{:?}",
        begin.elapsed()
    );

    let get = proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: "a1".into(),
        wait: proto::Wait::DialOver.into(),
        wait_timeout: Some(Duration::from_millis(20).into()),
    };
    let attempt = client.get_attempt(get).await.unwrap().into_inner();
    assert_eq!(attempt.state(), Shown::Reserved);
}

#[tokio::test]
async fn r43_a_caller_who_goes_away_stops_nothing() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    server.core.gate.send_replace(false);
    let mut placing = Box::pin(client.place_call(sound("a1")));
    let running = async {
        while server.tasks.running("api.place") == 0 {
            tokio::task::yield_now().await;
        }
    };
    let running = tokio::time::timeout(Duration::from_secs(5), running);
    tokio::select! {
        biased;
        _ = &mut placing => panic!("the gate is shut"),
        running = running => running.expect("it runs in a task of its own"),
    }
    // The stream is reset; tonic drops the handler.
    drop(placing);
    server.core.gate.send_replace(true);
    server.core.committed(1).await;
    let get = proto::GetAttemptRequest {
        workspace: "w".into(),
        attempt_id: "a1".into(),
        ..proto::GetAttemptRequest::default()
    };
    let attempt = client.get_attempt(get).await.unwrap().into_inner();
    assert_eq!(attempt.state(), Shown::Reserved);
}

fn cancel(attempt: &str) -> proto::CancelAttemptRequest {
    proto::CancelAttemptRequest {
        workspace: "w".into(),
        attempt_id: attempt.into(),
        ..proto::CancelAttemptRequest::default()
    }
}

#[tokio::test]
async fn a_cancel_waits_for_its_stop_and_then_says_pending() {
    use proto::cancel_attempt_response::Result as Came;
    let server = Server::start(|limits| limits.cancel_wait = Duration::from_millis(100)).await;
    let mut client = server.client().await;
    let status = client.cancel_attempt(cancel("none")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::AttemptNotFound);
    assert_eq!(status.code(), Code::NotFound);

    client.place_call(sound("a1")).await.unwrap();
    server.core.enter("a1", State::Dialing, |_| {});
    let response = client
        .cancel_attempt(cancel("a1"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(response.result(), Came::Pending);

    client.place_call(sound("a2")).await.unwrap();
    server.core.enter("a2", State::Dialing, |_| {});
    let meanwhile = async {
        server.core.committed(6).await;
        server
            .core
            .settle("a2", State::Canceled, Disposition::Canceled);
    };
    let (response, ()) = tokio::join!(client.cancel_attempt(cancel("a2")), meanwhile);
    let response = response.unwrap().into_inner();
    assert_eq!(response.result(), Came::Stopped);
    assert_eq!(response.attempt.unwrap().state(), Shown::Canceled);
}

/// What is kept and shown as it is written must name nobody's number, whoever writes it.
#[tokio::test]
async fn a_number_in_a_text_is_refused_wherever_a_person_or_a_program_may_write_it() {
    let server = Server::start(|_| {}).await;
    let mut client = server.client().await;
    let mut place = sound("a1");
    place.labels = [("phone".to_owned(), "+12025550186".to_owned())].into();
    place.follows = Some(proto::Follows {
        attempt_id: "a0".into(),
        reason: "asked at 2025550186".into(),
    });
    let placed = client.place_call(place).await.unwrap_err();
    let canceled = |requested_by: &str, reason: &str| proto::CancelAttemptRequest {
        requested_by: requested_by.into(),
        reason: reason.into(),
        ..cancel("a1")
    };
    let asked = canceled("kim", "wrong number +1 (202) 555-0186");
    let why = client.cancel_attempt(asked).await.unwrap_err();
    let asked = canceled("tel:2025550186", "");
    let by = client.cancel_attempt(asked).await.unwrap_err();
    for (status, fields) in [
        (placed, &["labels[\"phone\"]", "follows.reason"] as &[_]),
        (why, &["reason"]),
        (by, &["requested_by"]),
    ] {
        assert_eq!(reason(&status), Reason::InvalidFields);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        for field in fields {
            assert!(violations.iter().any(|v| v.field == *field), "{status:?}");
        }
        let text = format!("{status:?}");
        assert!(
            !text.contains("555") && text.contains("phone number"),
            "{text}"
        );
    }
}
