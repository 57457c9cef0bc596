//! The wire over real sockets: what proxies, gateways and broken connections do.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringonce::model::time::Time;
use ringonce::provider::http::{BadHttp, Http, HttpConfig};
use ringonce::provider::wire::{Answer, Lost, Method, NotSent, Reply, Request, Wire};
use secrecy::SecretString;
use tokio::net::TcpListener;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::raw::{Act, answer, dial, raw, request, wire};

/// R01, R03: a connection that breaks is Lost, and the request was seen at most once.
#[tokio::test]
async fn r01_a_broken_connection_is_lost_and_sent_once() {
    let half =
        "HTTP/1.1 200 OK\r\ncontent-type: application/protobuf\r\ncontent-length: 100\r\n\r\nabc";
    for (act, requests) in [
        (Act::ResetAtOnce, 0),
        (Act::Close, 1),
        (Act::Reset, 1),
        (Act::Half("HTTP/1.1 200"), 1),
        (Act::Half(half), 1),
        (Act::Half("nonsense\r\n\r\n"), 1),
    ] {
        let (server, url) = raw(act.clone()).await;
        assert_eq!(dial(&url).await, Answer::Lost(Lost::Broken), "{act:?}");
        assert_eq!(server.connections.load(Ordering::SeqCst), 1, "{act:?}");
        assert_eq!(server.requests.lock().unwrap().len(), requests, "{act:?}");
    }
}

/// R03: no answer makes the transport send again, 5xx, 408 and 429 with Retry-After included.
#[tokio::test]
async fn r03_no_answer_is_repeated_below_the_client() {
    for status in [408, 429, 500, 502, 503, 504] {
        let server = MockServer::start().await;
        let page = ResponseTemplate::new(status)
            .insert_header("retry-after", "1")
            .set_body_raw("<html>", "text/html");
        Mock::given(method("POST"))
            .respond_with(page)
            .expect(1)
            .mount(&server)
            .await;
        assert_eq!(dial(&server.uri()).await, Answer::Strange(status));
        server.verify().await;
    }
}

/// R03: a redirect is an answer; the second host sees nothing.
#[tokio::test]
async fn r03_redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let second = MockServer::start().await;
        let first = MockServer::start().await;
        let to = format!("{}{}", second.uri(), Method::Dial.path());
        let redirect = ResponseTemplate::new(status).insert_header("location", to.as_str());
        Mock::given(method("POST"))
            .respond_with(redirect)
            .expect(1)
            .mount(&first)
            .await;
        assert_eq!(dial(&first.uri()).await, Answer::Strange(status));
        assert!(second.received_requests().await.unwrap().is_empty());
    }
}

/// R17: a gateway's page keeps its status; R01: a 200 counts only as protobuf.
#[tokio::test]
async fn r17_pages_keep_their_status() {
    for (status, kind, body, wanted) in [
        (502, "text/html", "", Answer::Strange(502)),
        (504, "text/html", "<html>504</html>", Answer::Strange(504)),
        (
            401,
            "text/plain",
            "invalid token: the-token",
            Answer::Strange(401),
        ),
        (
            200,
            "text/html",
            "<html>log in</html>",
            Answer::Strange(200),
        ),
        (202, "application/protobuf", "", Answer::Strange(202)),
        (204, "application/protobuf", "", Answer::Strange(204)),
        (200, "application/protobuf", "", Answer::Done(Vec::new())),
    ] {
        let server = MockServer::start().await;
        let page = ResponseTemplate::new(status).set_body_raw(body, kind);
        Mock::given(method("POST"))
            .respond_with(page)
            .mount(&server)
            .await;
        assert_eq!(dial(&server.uri()).await, wanted);
    }
}

#[tokio::test]
async fn a_twirp_error_is_read_with_its_sip_status() {
    let server = MockServer::start().await;
    let body = r#"{"code":"resource_exhausted","msg":"x","meta":{"sip_status_code":"486","sip_status":"Busy Here"}}"#;
    let error = ResponseTemplate::new(429).set_body_raw(body, "application/json");
    Mock::given(method("POST"))
        .respond_with(error)
        .mount(&server)
        .await;
    let Answer::Refused(refusal) = dial(&server.uri()).await else {
        panic!("it is a Twirp error");
    };
    assert_eq!((refusal.status, refusal.sip_code), (429, Some(486)));
    assert_eq!(refusal.sip_phrase, "Busy Here");
}

/// R22: an answer that comes after our limit is lost, and the connection is gone with it.
#[tokio::test]
async fn r22_an_answer_after_the_limit_is_lost() {
    let (server, url) = raw(Act::TooLate).await;
    let wire = wire(&url);
    for method in [Method::Dial, Method::ListRooms] {
        let short = Request {
            timeout: Duration::from_millis(50),
            ..request(method)
        };
        assert_eq!(wire.send(short).await.answer, Answer::Lost(Lost::Timeout));
    }
    assert!(
        server
            .tasks
            .idle_named("connection", Duration::from_secs(10))
            .await
    );
    assert_eq!(server.clients_gone.load(Ordering::SeqCst), 2);
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_lost() {
    let (_server, url) = raw(Act::Answer(answer(200, &"x".repeat(2000)))).await;
    for (answer_max, wanted) in [
        (1999, Answer::Lost(Lost::Unreadable)),
        (2000, Answer::Done(vec![b'x'; 2000])),
    ] {
        let wire = Http::new(&HttpConfig {
            answer_max,
            ..HttpConfig::at(&url)
        });
        let reply = wire.unwrap().send(request(Method::Dial)).await;
        assert_eq!(reply.answer, wanted);
    }
}

/// Only where no connection stood is a request not sent.
#[tokio::test]
async fn where_no_connection_stood_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    // A label of 64 bytes is refused by the resolver itself (RFC 1035, 2.3.4).
    let no_name = format!("http://{}.invalid", "x".repeat(64));
    // A server that speaks no TLS: the handshake fails, and the request never leaves.
    let (_garbage, garbage) = raw(Act::Greet("no TLS here\r\n")).await;
    for url in [nobody, no_name, garbage.replace("http:", "https:")] {
        let answer = dial(&url).await;
        assert_eq!(answer, Answer::NotSent(NotSent::NoConnection), "{url}");
    }
}

/// One connection a dial, so that no pool can send one again; the others share theirs.
#[tokio::test]
async fn a_dial_never_shares_a_connection() {
    let (server, url) = raw(Act::Answer(answer(200, ""))).await;
    let wire = wire(&url);
    let connections = || server.connections.load(Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(
            wire.send(request(Method::ListRooms)).await.answer,
            Answer::Done(Vec::new())
        );
    }
    assert_eq!(connections(), 1);
    for _ in 0..3 {
        assert_eq!(
            wire.send(request(Method::Dial)).await.answer,
            Answer::Done(Vec::new())
        );
    }
    assert_eq!(connections(), 4);
    assert_eq!(server.requests.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn a_request_is_made_as_livekit_reads_it_and_a_base_path_is_kept() {
    let server = MockServer::start().await;
    let ok = ResponseTemplate::new(200)
        .insert_header("date", "Sun, 29 Nov 2026 12:00:00 GMT")
        .set_body_raw("x", "application/protobuf; charset=utf-8");
    Mock::given(method("POST"))
        .and(path("/livekit/twirp/livekit.SIP/CreateSIPParticipant"))
        .and(header("authorization", "Bearer the-token"))
        .and(header("content-type", "application/protobuf"))
        .and(header("x-twirp-timeout-ms", "65000"))
        .respond_with(ok)
        .expect(3)
        .mount(&server)
        .await;
    let websocket = server.uri().replace("http:", "ws:");
    for url in [
        format!("{}/livekit", server.uri()),
        format!("{}/livekit/", server.uri()),
        format!("{websocket}/livekit/"),
    ] {
        let dial = Request {
            server_deadline: Some(Duration::from_secs(65)),
            ..request(Method::Dial)
        };
        let Reply { answer, date } = wire(&url).send(dial).await;
        assert_eq!(answer, Answer::Done(b"x".to_vec()));
        assert_eq!(date, Time::parse("2026-11-29T12:00:00Z"));
    }
    server.verify().await;
}

#[tokio::test]
async fn a_token_that_is_no_header_is_not_sent() {
    let broken = Request {
        token: SecretString::from("a\r\nb"),
        ..request(Method::Dial)
    };
    let reply = wire("http://127.0.0.1:9").send(broken).await;
    assert_eq!(reply.answer, Answer::NotSent(NotSent::Malformed));
}

#[test]
fn an_address_that_is_none_is_refused() {
    let why = |url: &str| Http::new(&HttpConfig::at(url)).unwrap_err();
    assert!(matches!(why(""), BadHttp::Url(_)));
    assert!(matches!(why("livekit"), BadHttp::Url(_)));
    assert!(matches!(why("localhost:7880"), BadHttp::Scheme(scheme) if scheme == "localhost"));
    assert!(matches!(why("ftp://livekit"), BadHttp::Scheme(_)));
    for url in ["http://u:p@livekit", "http://livekit?x", "http://livekit#x"] {
        assert!(matches!(why(url), BadHttp::Extra), "{url}");
    }
    for url in [
        "wss://livekit",
        "https://livekit/base/",
        "http://[::1]:7880",
    ] {
        assert!(Http::new(&HttpConfig::at(url)).is_ok(), "{url}");
    }
}
