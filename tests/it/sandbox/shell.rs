//! The sandbox over a real socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use livekit_protocol as lk;
use prost::Message as _;
use ringonce::lab::platform::Settings;
use ringonce::lab::sandbox;
use ringonce::runtime::tasks::Tasks;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::world::token;

const ROOM: &str = "room";

/// A sandbox that is being served, with all its times shortened.
struct Served {
    address: SocketAddr,
    client: reqwest::Client,
    tasks: Tasks,
    stop: watch::Sender<bool>,
}

impl Served {
    async fn start(webhook: Option<String>) -> Self {
        let mut settings = Settings::default();
        let times = &mut settings.times;
        let ms = Duration::from_millis;
        times.join = ms(1);
        times.publish = ms(2);
        times.ring_after = ms(3);
        times.answer_after = ms(5);
        times.refuse_after = ms(5);
        times.cut_after = ms(5);
        times.webhook_wait = ms(5);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a port");
        let address = listener.local_addr().expect("the listener has an address");
        let (tasks, stop) = (Tasks::default(), watch::Sender::new(false));
        let (inner, mut stopped) = (tasks.clone(), stop.subscribe());
        tasks.spawn("sandbox", async move {
            let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
            sandbox::serve(listener, settings, webhook, &inner, stop)
                .await
                .expect("the sandbox serves until it is stopped");
        });
        Self {
            address,
            client: client(),
            tasks,
            stop,
        }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        assert!(
            self.tasks.idle(Duration::from_secs(5)).await,
            "its tasks end"
        );
        assert_eq!(self.tasks.panics(), 0);
    }

    fn post(&self, method: &str) -> reqwest::RequestBuilder {
        self.client
            .post(format!("http://{}/twirp/livekit.{method}", self.address))
            .header("authorization", format!("Bearer {}", token(ROOM)))
    }

    async fn json(&self, method: &str, body: &Value) -> (u16, Value) {
        let response = self
            .post(method)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("the sandbox answers");
        parsed(response).await
    }

    async fn dial_body(&self, to: &str) -> Value {
        let (_, trunks) = self.json("SIP/ListSIPOutboundTrunk", &json!({})).await;
        json!({
            "sip_trunk_id": trunks["items"][0]["sip_trunk_id"],
            "sip_call_to": to,
            "room_name": ROOM,
            "participant_identity": "callee",
            "wait_until_answered": true,
            "ringing_timeout": "30s",
        })
    }

    async fn dial(&self, to: &str) -> Result<reqwest::Response, reqwest::Error> {
        let body = self.dial_body(to).await;
        self.post("SIP/CreateSIPParticipant")
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
    }

    async fn state(&self) -> Value {
        let url = format!("http://{}/sandbox/state", self.address);
        let response = self
            .client
            .get(url)
            .send()
            .await
            .expect("the state is shown");
        parsed(response).await.1
    }

    /// Waits until the state says so.
    async fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let state = self.state().await;
                if holds(&state) {
                    return state;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), looking)
            .await
            .expect("the state comes about")
    }

    async fn fault(&self, fault: &Value) -> u16 {
        let url = format!("http://{}/sandbox/faults", self.address);
        let sent = self.client.post(url).body(fault.to_string()).send().await;
        sent.expect("a fault is answered").status().as_u16()
    }
}

fn client() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .build()
        .expect("a client without TLS roots can be made")
}

async fn parsed(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.expect("the answer has a body");
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}

#[tokio::test]
async fn a_dial_is_answered_in_json_and_in_protobuf() {
    let served = Served::start(None).await;
    let response = served.dial("+12025550100").await.expect("it is answered");
    let (status, body) = parsed(response).await;
    assert_eq!((status, &body["room_name"]), (200, &json!(ROOM)));

    let body = served.dial_body("+12025550186").await;
    let dial = lk::CreateSipParticipantRequest {
        sip_trunk_id: body["sip_trunk_id"].as_str().unwrap_or_default().to_owned(),
        sip_call_to: "+12025550101".to_owned(),
        room_name: ROOM.to_owned(),
        participant_identity: "another".to_owned(),
        wait_until_answered: true,
        ..lk::CreateSipParticipantRequest::default()
    };
    let send = |dial: &lk::CreateSipParticipantRequest| {
        served
            .post("SIP/CreateSIPParticipant")
            .header("content-type", "application/protobuf")
            .body(dial.encode_to_vec())
            .send()
    };
    let response = send(&dial).await.expect("it is answered");
    assert_eq!(response.headers()["content-type"], "application/protobuf");
    let bytes = response.bytes().await.expect("the answer has a body");
    let info = lk::SipParticipantInfo::decode(bytes).expect("it is the message");
    assert_eq!(info.participant_identity, "another");

    let busy = lk::CreateSipParticipantRequest {
        sip_call_to: "+12025550186".to_owned(),
        ..dial
    };
    let response = send(&busy).await.expect("it is answered");
    assert_eq!(response.headers()["content-type"], "application/json");
    let (status, body) = parsed(response).await;
    assert_eq!(
        (status, &body["meta"]["sip_status_code"]),
        (429, &json!("486"))
    );
    served.end().await;
}

#[tokio::test]
async fn a_lost_reply_looks_like_a_lost_connection() {
    let served = Served::start(None).await;
    for to in ["+12025550198", "+12025550199"] {
        let error = served.dial(to).await.expect_err("no answer comes");
        assert!(!error.is_connect() && !error.is_timeout() && error.status().is_none());
    }
    let state = served.state().await;
    assert_eq!(state["sip_calls"][0]["count"], 1);
    // Other connections are as before.
    assert_eq!(
        served.json("RoomService/ListRooms", &json!({})).await.0,
        200
    );
    served.end().await;
}

#[tokio::test]
async fn a_client_that_goes_away_stops_nothing() {
    let served = Served::start(None).await;
    let status = |state: &Value, status: &str| state["sip_calls"][0]["status"] == status;
    tokio::select! {
        biased;
        _ = served.dial("+12025550108") => panic!("nobody answers"),
        _ = served.until(|state| status(state, "ringing")) => {}
    }
    let gone = json!({"room": ROOM, "identity": "callee"});
    let (code, info) = served.json("RoomService/GetParticipant", &gone).await;
    assert_eq!(
        (code, &info["attributes"]["sip.callStatus"]),
        (200, &json!("ringing"))
    );
    served.end().await;
}

#[tokio::test]
async fn faults_are_thrown_by_name_and_unknown_names_refused() {
    let served = Served::start(None).await;
    assert_eq!(served.fault(&json!({"name": "no_such_fault"})).await, 400);
    assert_eq!(served.fault(&json!({"nonsense": true})).await, 400);
    assert_eq!(
        served.fault(&json!({"name": "overload", "times": 1})).await,
        200
    );
    let response = served.dial("+12025550100").await.expect("it is answered");
    let (status, body) = parsed(response).await;
    assert_eq!(
        (status, &body["msg"]),
        (503, &json!("twirp error unknown: cpu exhausted"))
    );
    let skew = json!({"name": "clock_skew", "millis": 3_600_000});
    assert_eq!(served.fault(&skew).await, 200);
    let response = served.post("RoomService/ListRooms").send().await;
    let date = response.expect("it is answered").headers()["date"].clone();
    // Settings::default() starts on 2027-01-15T08:00:00Z.
    assert!(
        date.to_str()
            .is_ok_and(|date| date.starts_with("Fri, 15 Jan 2027 09:00"))
    );
    served.end().await;
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_in_plain_text() {
    let served = Served::start(None).await;
    let sent = served
        .post("RoomService/CreateRoom")
        .header("content-type", "application/json")
        .body(vec![b' '; 10 * 1024 * 1024 + 1])
        .send()
        .await;
    let (status, text) = parsed(sent.expect("it is answered")).await;
    assert_eq!((status, text), (413, json!("request body too large")));
    served.end().await;
}

/// A receiver of webhooks that fails at first.
async fn receiver(tasks: &Tasks) -> (String, mpsc::UnboundedReceiver<(String, Vec<u8>)>) {
    use axum::http::{HeaderMap, StatusCode};
    let (sender, events) = mpsc::unbounded_channel();
    let failed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let app = axum::Router::new().fallback(move |headers: HeaderMap, body: axum::body::Bytes| {
        let (sender, failed) = (sender.clone(), Arc::clone(&failed));
        async move {
            let bearer = headers["authorization"]
                .to_str()
                .unwrap_or_default()
                .to_owned();
            assert_eq!(headers["content-type"], "application/webhook+json");
            sender
                .send((bearer, body.to_vec()))
                .expect("the test listens");
            if failed.swap(true, std::sync::atomic::Ordering::SeqCst) {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a port");
    let address = listener.local_addr().expect("the listener has an address");
    tasks.spawn("receiver", async move {
        axum::serve(listener, app)
            .await
            .expect("the receiver serves");
    });
    (format!("http://{address}/hook"), events)
}

#[tokio::test]
async fn webhooks_are_signed_over_their_bytes_and_retried_with_the_same_token() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use sha2::Digest as _;
    let tasks = Tasks::default();
    let (url, mut events) = receiver(&tasks).await;
    let served = Served::start(Some(url)).await;
    served.dial("+12025550186").await.expect("it is answered");
    let first = events.recv().await.expect("an event comes");
    let again = events.recv().await.expect("it comes again");
    assert_eq!(first, again);
    let claims = first.0.split('.').nth(1).expect("a token has three parts");
    let claims = URL_SAFE_NO_PAD
        .decode(claims)
        .expect("the claims are base64");
    let claims: Value = serde_json::from_slice(&claims).expect("the claims are JSON");
    assert_eq!(claims["iss"], "devkey");
    assert_eq!(
        claims["sha256"],
        STANDARD.encode(sha2::Sha256::digest(&first.1))
    );
    let mut names = Vec::new();
    while names.last() != Some(&json!("participant_left")) {
        let (_, body) = events.recv().await.expect("the other events come");
        let event: Value = serde_json::from_slice(&body).expect("an event is JSON");
        names.push(event["event"].clone());
    }
    let expected = [
        "participant_joined",
        "track_published",
        "track_unpublished",
        "participant_left",
    ];
    assert_eq!(names, expected);
    let state = served.until(|state| state["webhooks"]["sent"] == 5).await;
    assert_eq!(
        state["webhooks"],
        json!({"sent": 5, "retried": 1, "dropped": 0})
    );
    served.end().await;
    tasks.abort_all();
}
