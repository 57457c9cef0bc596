//! The listener on a socket: what it takes, and what it does not let be done to it.

use std::net::SocketAddr;
use std::time::Duration;

use ringonce::inbox::{Counted, http};
use ringonce::runtime::stop::{StopSender, stop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::sign;
use crate::world::{Alive, Lab};

/// No answer of a listener takes longer than this, on however busy a host.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A node and a listener before it.
pub(super) struct Served {
    pub(super) lab: Lab,
    pub(super) alive: Alive,
    address: SocketAddr,
    stop: StopSender,
}

impl Served {
    pub(super) async fn new(config: &str) -> Self {
        let lab = Lab::with(1, config, |_| {});
        let alive = lab.node().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = stop();
        let tasks = alive.node.tasks();
        let inbox = alive.node.inbox().clone();
        let limits = lab.config.webhooks.clone();
        tasks.spawn(
            "webhooks",
            http::serve(listener, inbox, limits, tasks.clone(), stopping),
        );
        Self {
            lab,
            alive,
            address,
            stop,
        }
    }

    pub(super) fn token(&self, body: &[u8]) -> String {
        sign::over(body, self.lab.now().as_secs())
    }

    pub(super) fn count(&self, what: Counted) -> u64 {
        self.alive.node.inbox().counts().of(what)
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these pieces on a connection of their own, and gives the answer's status.
    pub(super) async fn send(&self, pieces: &[&[u8]]) -> u16 {
        let mut stream = self.connect().await;
        for piece in pieces {
            // A server that refuses early may have closed it.
            if stream.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        status(&mut stream).await
    }

    /// Posts a signed body with these headers beside.
    pub(super) async fn post(&self, body: &[u8], headers: &str) -> u16 {
        let token = self.token(body);
        self.send(&[head(body.len(), &token, headers).as_bytes(), body])
            .await
    }
}

pub(super) fn head(length: usize, authorization: &str, more: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\
         authorization: {authorization}\r\nconnection: close\r\n{more}\r\n",
        http::PATH
    )
}

/// The status of the answer; 0 if the connection ended without one.
pub(super) async fn status(stream: &mut TcpStream) -> u16 {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    drop(read.expect("an answer, or an end"));
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    status.unwrap_or(0)
}

pub(super) const BODY: &[u8] =
    "{\"event\":\"room_finished\",  \"room\":{\"name\":\"o\u{27}brien <&> café\",\
    \"sid\":\"RM_1\"},\"id\":\"EV_1\",\"createdAt\":\"1760000000\"}"
        .as_bytes();

#[tokio::test]
async fn r23_the_bytes_count_however_they_come() {
    let served = Served::new("").await;
    assert_eq!(served.post(BODY, "").await, 200);
    let token = served.token(BODY);
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\
         authorization: {token}\r\n\r\n",
        http::PATH
    );
    let chunk = |bytes: &[u8]| {
        let size = format!("{:x}\r\n", bytes.len());
        [size.as_bytes(), bytes, b"\r\n"].concat()
    };
    let (first, rest) = BODY.split_at(9);
    let (second, third) = rest.split_at(30);
    let pieces = [
        chunk(first),
        chunk(second),
        chunk(third),
        b"0\r\n\r\n".to_vec(),
    ];
    let mut sent = vec![head.as_bytes()];
    sent.extend(pieces.iter().map(Vec::as_slice));
    assert_eq!(served.send(&sent).await, 200, "in three chunks");
    assert_eq!(served.count(Counted::Kept), 1);
    assert_eq!(served.count(Counted::Known), 1);
    for changed in [
        [BODY, b"\n"].concat(),
        String::from_utf8(BODY.to_vec())
            .unwrap()
            .replace("  ", " ")
            .into_bytes(),
        BODY.iter()
            .map(|byte| byte ^ u8::from(*byte == b'6'))
            .collect(),
    ] {
        let head = self::head(changed.len(), &token, "");
        assert_eq!(served.send(&[head.as_bytes(), &changed]).await, 401);
    }
    assert_eq!(served.count(Counted::Body), 3);
}

#[tokio::test]
async fn r23_over_http_2_as_well() {
    let served = Served::new("").await;
    let stream = served.connect().await;
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let driving = async {
        drop(connection.await);
    };
    served.alive.node.tasks().spawn("h2", driving);
    let request = ::http::Request::post(format!("http://x{}", http::PATH))
        .header("authorization", served.token(BODY))
        .body(())
        .unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    body.send_data(BODY.into(), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    assert_eq!(served.count(Counted::Kept), 1);
}

#[tokio::test]
async fn r26_any_content_type_and_no_body_that_is_no_event() {
    let served = Served::new("").await;
    for content_type in [
        "content-type: application/webhook+json\r\n",
        "content-type: application/webhook+json; charset=utf-8\r\n",
        "content-type: application/json\r\n",
        "content-type: APPLICATION/WEBHOOK+JSON\r\n",
        "",
    ] {
        assert_eq!(served.post(BODY, content_type).await, 200);
    }
    let deep = "[".repeat(100_000);
    for body in [
        b"".as_slice(),
        b"null",
        b"[]",
        b"\xff",
        b"{",
        b"7",
        deep.as_bytes(),
    ] {
        assert_eq!(served.post(body, "").await, 400, "{} bytes", body.len());
    }
    assert_eq!(served.count(Counted::NoEvent), 7);
    let token = served.token(BODY);
    let bearer = head(BODY.len(), &format!("Bearer {token}"), "");
    assert_eq!(served.send(&[bearer.as_bytes(), BODY]).await, 200);
    let none = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        http::PATH
    );
    assert_eq!(served.send(&[none.as_bytes()]).await, 401);
    let elsewhere = none.replace(http::PATH, "/");
    assert_eq!(served.send(&[elsewhere.as_bytes()]).await, 404);
    let get = none.replace("POST", "GET");
    assert_eq!(served.send(&[get.as_bytes()]).await, 405);
    assert_eq!(
        served
            .send(&[b"\x16\x03\x01\x02\x00 no HTTP\r\n\r\n"])
            .await,
        400
    );
}

#[tokio::test]
async fn r24_new_fields_of_any_kind_are_kept() {
    let served = Served::new("").await;
    let nested = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
    for (n, more) in [
        r#""room":{"version":{"unixMicro":"1760000000000000","ticks":1}}"#,
        r#""track":{"layers":[{"rid":"q","quality":"LOW"}]}"#,
        r#""job":{"id":"AJ_1"},"zzz":[1,{"a":null}]"#,
        r#""createdAt":"1760000000""#,
        r#""createdAt":1760000000"#,
        r#""participant":{"joinedAtMs":"1760000000123"}"#,
        r#""created_at":"1760000000""#,
        r#""room":{"emptyTimeout":"300"}"#,
        &format!("\"deep\":{nested}"),
    ]
    .iter()
    .enumerate()
    {
        let body = format!("{{\"event\":\"room_started\",\"id\":\"EV_{n}\",{more}}}");
        assert_eq!(served.post(body.as_bytes(), "").await, 200, "{more}");
    }
    let kept = served.alive.node.ledger().receipt("devkey", "EV_0").await;
    let micros = &kept.unwrap().unwrap().body["room"]["version"]["unixMicro"];
    assert_eq!(micros, "1760000000000000");
}

#[tokio::test]
async fn r31_two_keys_while_one_is_replaced() {
    let keys = "[webhook_keys.APInew]\nsecret = \"s2\"\n";
    let served = Served::new(keys).await;
    let now = served.lab.now().as_secs();
    let post = async |key: &str, secret: &str| {
        let token = sign::by(key, secret, BODY, now);
        let head = head(BODY.len(), &token, "");
        served.send(&[head.as_bytes(), BODY]).await
    };
    assert_eq!(served.post(BODY, "").await, 200, "the old one");
    assert_eq!(post("APInew", "s2").await, 200);
    assert_eq!(post("APInew", "s1").await, 401);
    assert_eq!(post("APIother", "s2").await, 401);
    assert_eq!(post("devkey", "s2").await, 401);
    let counts = [Counted::UnknownKey, Counted::Signature].map(|what| served.count(what));
    assert_eq!(counts, [1, 2]);
}

#[tokio::test]
async fn what_is_too_long_is_refused_early() {
    let served = Served::new("[webhooks]\nbody_max_bytes = 2048\n").await;
    let token = served.token(BODY);
    // It claims eleven megabytes, and sends none of them.
    let huge = head(11_000_000, &token, "");
    assert_eq!(served.send(&[huge.as_bytes()]).await, 413);
    let unsigned = head(11_000_000, "nobody", "");
    assert_eq!(served.send(&[unsigned.as_bytes()]).await, 401, "who is it?");
    let body = vec![b' '; 4096];
    assert_eq!(served.post(&body, "").await, 413);
    assert_eq!(served.count(Counted::TooLong), 2);
    let header = format!("x-long: {}\r\n", "x".repeat(40_000));
    let long = served.post(BODY, &header).await;
    assert!([431, 0].contains(&long), "{long}");
    assert_eq!(served.post(BODY, "").await, 200);
}

#[tokio::test]
async fn slow_senders_are_cut_off_and_hold_nobody_up() {
    let served = Served::new("[webhooks]\nread_timeout = \"300ms\"\n").await;
    let token = served.token(BODY);
    let whole = head(BODY.len(), &token, "");
    let mut slow = Vec::new();
    for begun in [
        b"".as_slice(),
        b"P",
        b"POST /webhooks",
        b"PRI * HTTP",
        whole.as_bytes(),
    ] {
        let mut stream = served.connect().await;
        stream.write_all(begun).await.unwrap();
        slow.push(stream);
    }
    assert_eq!(served.post(BODY, "").await, 200, "beside them");
    let mut ends = Vec::new();
    for stream in &mut slow {
        ends.push(status(stream).await);
    }
    assert!(
        ends.iter().all(|end| [0, 408, 503].contains(end)),
        "{ends:?}"
    );
    assert_eq!(
        ends.last(),
        Some(&503),
        "a signed one whose body does not come is sent again"
    );
}

#[tokio::test]
async fn a_storm_of_signed_webhooks_is_slowed_and_an_unsigned_one_uses_nothing_up() {
    let served = Served::new("[webhooks]\nrate_per_second = 1\n").await;
    for _ in 0..20 {
        let nobody = head(BODY.len(), "nobody", "");
        assert_eq!(served.send(&[nobody.as_bytes(), BODY]).await, 401);
    }
    assert_eq!(served.post(BODY, "").await, 200);
    let mut slowed = 0;
    for _ in 0..20 {
        slowed += usize::from(served.post(BODY, "").await == 503);
    }
    assert!(slowed > 0, "one a second, and twenty came");
    assert_eq!(
        served.count(Counted::TooMany),
        u64::try_from(slowed).unwrap()
    );
}

#[tokio::test]
async fn a_stop_answers_who_is_being_answered_and_ends() {
    let served = Served::new("").await;
    let mut idle = served.connect().await;
    let body = BODY;
    let token = served.token(body);
    let head = head(body.len(), &token, "").replace("connection: close\r\n", "");
    idle.write_all(head.as_bytes()).await.unwrap();
    idle.write_all(body).await.unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    served.stop.ask();
    assert_eq!(status(&mut idle).await, 0, "what was idle is closed");
    let tasks = served.alive.node.tasks();
    assert!(tasks.idle_named("webhooks", PATIENCE).await);
    assert!(tasks.idle_named("webhook-connection", PATIENCE).await);
}
