//! The wire over real sockets: what proxies, gateways and broken connections do.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use livekit_protocol as proto;
use prost::Message;
use ringonce::model::time::Time;
use ringonce::provider::client::{Client, Limits};
use ringonce::provider::http::{BadHttp, Http, HttpConfig};
use ringonce::provider::token::Credentials;
use ringonce::provider::wire::{Answer, Lost, Method, NotSent, Reply, Request, Wire};
use ringonce::runtime::clock::SystemClock;
use ringonce::runtime::tasks::Tasks;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// For `localhost`, signed by itself, valid for a hundred years.
const CERTIFICATE: &str = include_str!("../../fixtures/tls/certificate.pem");
/// Its key, worth nothing anywhere else.
const KEY: &str = include_str!("../../fixtures/tls/key.pem");

/// What the raw server does with each request.
#[derive(Debug, Clone)]
enum Act {
    /// Resets the connection before it has read anything.
    ResetAtOnce,
    /// Sends these bytes before it has read anything, and closes.
    Greet(&'static str),
    /// Reads the request and closes.
    Close,
    /// Reads the request and resets.
    Reset,
    /// Reads the request, sends these bytes and resets.
    Half(&'static str),
    /// Reads the request and answers when the client has gone.
    TooLate,
    /// Reads the request and answers, connection after connection, request after request.
    Answer(String),
}

/// A server that does what HTTP libraries will not.
#[derive(Debug, Default)]
struct Raw {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
    clients_gone: AtomicUsize,
    tasks: Tasks,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

async fn raw(act: Act) -> (Arc<Raw>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let raw = Arc::new(Raw::default());
    let server = Arc::downgrade(&raw);
    raw.tasks.clone().spawn("raw", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Some(server) = server.upgrade() else {
                return;
            };
            server.connections.fetch_add(1, Ordering::SeqCst);
            let act = act.clone();
            let tasks = server.tasks.clone();
            tasks.spawn("connection", async move {
                // A client that goes away in the middle is what some of these tests are about.
                serve(&server, stream, act).await.ok();
            });
        }
    });
    (raw, url)
}

async fn serve(server: &Raw, mut stream: TcpStream, act: Act) -> io::Result<()> {
    if matches!(act, Act::ResetAtOnce) {
        return stream.set_zero_linger();
    }
    if let Act::Greet(bytes) = act {
        return stream.write_all(bytes.as_bytes()).await;
    }
    while let Some(request) = read(&mut stream).await? {
        server.requests.lock().unwrap().push(request);
        match &act {
            Act::ResetAtOnce | Act::Greet(_) | Act::Reset => return stream.set_zero_linger(),
            Act::Close => return Ok(()),
            Act::Half(bytes) => {
                stream.write_all(bytes.as_bytes()).await?;
                stream.flush().await?;
                return stream.set_zero_linger();
            }
            Act::TooLate => {
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await?;
                server.clients_gone.fetch_add(1, Ordering::SeqCst);
                return stream.write_all(answer(200, "").as_bytes()).await;
            }
            Act::Answer(bytes) => stream.write_all(bytes.as_bytes()).await?,
        }
    }
    Ok(())
}

/// One request, head and body; `None` where the client closed.
async fn read(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Ok(Some(text));
            }
        }
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/protobuf\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn request(method: Method) -> Request {
    Request {
        method,
        token: SecretString::from("the-token"),
        body: b"to=+12025550186".to_vec(),
        timeout: Duration::from_secs(20),
        server_deadline: None,
    }
}

fn wire(url: &str) -> Http {
    Http::new(&HttpConfig::at(url)).unwrap()
}

async fn dial(url: &str) -> Answer {
    wire(url).send(request(Method::Dial)).await.answer
}

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

/// A handshake that hangs ends by the connect timeout, and the request never left.
#[tokio::test]
async fn a_handshake_that_hangs_is_not_sent() {
    let (server, url) = raw(Act::Close).await;
    let wire = Http::new(&HttpConfig {
        connect_timeout: Duration::from_millis(50),
        ..HttpConfig::at(url.replace("http:", "https:"))
    });
    let reply = wire.unwrap().send(request(Method::Dial)).await;
    assert_eq!(reply.answer, Answer::NotSent(NotSent::NoConnection));
    assert!(server.requests.lock().unwrap().is_empty());
}

/// A server with a certificate of its own authority.
async fn tls_server() -> (Tasks, String) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tasks = Tasks::default();
    tasks.spawn("tls", async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate ends the handshake.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            assert!(text.starts_with("POST /twirp/"), "{text}");
            stream.write_all(answer(200, "").as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (tasks, format!("wss://localhost:{port}"))
}

/// TLS: a private authority is trusted where it is configured, and nowhere else.
#[tokio::test]
async fn tls_trusts_the_configured_authority_alone() {
    let (tasks, url) = tls_server().await;
    let reply = wire(&url).send(request(Method::Dial)).await;
    assert_eq!(reply.answer, Answer::NotSent(NotSent::NoConnection));

    let root = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let trusting = Http::new(&HttpConfig {
        roots: vec![root],
        ..HttpConfig::at(url)
    })
    .unwrap();
    let reply = trusting.send(request(Method::Dial)).await;
    assert_eq!(reply.answer, Answer::Done(Vec::new()));
    assert_eq!(tasks.panics(), 0);
    tasks.abort_all();
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

#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// LiveKit's 401 echoes the token, and errors name numbers: neither reaches a log or a Debug.
#[tokio::test]
async fn no_body_reaches_a_log() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let secret = "eyJsecret +12025550186";
    let twirp =
        format!(r#"{{"code":"internal","msg":"{secret}","meta":{{"sip_status":"{secret}"}}}}"#);
    for (status, body) in [(401, secret.to_owned()), (500, twirp)] {
        let server = MockServer::start().await;
        let page = ResponseTemplate::new(status).set_body_string(body);
        Mock::given(method("POST"))
            .respond_with(page)
            .mount(&server)
            .await;
        let client = Client::new(
            Arc::new(wire(&server.uri())),
            Credentials {
                key: "devkey".to_owned(),
                secret: SecretString::from("a secret of at least thirty-two bytes"),
            },
            Arc::new(SystemClock),
            Limits {
                pause: Duration::from_millis(1),
                ..Limits::default()
            },
        );
        let call = client.all_rooms().await;
        let shown = format!("{call:?} {client:?}");
        assert!(
            !shown.contains("eyJ") && !shown.contains("2025550186"),
            "{shown}"
        );
    }
    drop(guard);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(
        text.contains("method=\"ListRooms\"") && text.contains("status=401"),
        "{text}"
    );
    assert!(
        !text.contains("eyJ") && !text.contains("2025550186"),
        "{text}"
    );
}

/// The child of [`http_proxy_is_ignored`]: it alone has the environment of a proxy.
#[tokio::test]
#[ignore = "run by http_proxy_is_ignored, in a process of its own"]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment is what is tested"
)]
async fn child_that_has_a_proxy() {
    let url = std::env::var("RINGONCE_TEST_LIVEKIT").unwrap();
    let list = proto::ListRoomsResponse::default().encode_to_vec();
    for method in [Method::Dial, Method::ListRooms] {
        let answer = wire(&url).send(request(method)).await.answer;
        assert_eq!(answer, Answer::Done(list.clone()));
    }
}

/// A proxy of the environment could repeat or keep a dial: it is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_proxy_is_ignored() {
    let (proxy, proxy_url) = raw(Act::Close).await;
    let (server, url) = raw(Act::Answer(answer(200, ""))).await;
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "provider::http::child_that_has_a_proxy",
            "--ignored",
        ])
        .env("RINGONCE_TEST_LIVEKIT", &url)
        .env("HTTP_PROXY", &proxy_url)
        .env("http_proxy", &proxy_url)
        .env("ALL_PROXY", &proxy_url)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
    assert_eq!(server.requests.lock().unwrap().len(), 2);
    assert_eq!(proxy.connections.load(Ordering::SeqCst), 0);
}
