//! What surrounds a request: the log, and the proxies of the environment.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringonce::provider::client::{Client, Limits};
use ringonce::provider::token::Credentials;
use ringonce::provider::wire::{Answer, Method, Wire};
use ringonce::runtime::clock::SystemClock;
use secrecy::SecretString;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::raw::{Act, answer, raw, request, wire};

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
    for method in [Method::Dial, Method::ListRooms] {
        let answer = wire(&url).send(request(method)).await.answer;
        assert_eq!(answer, Answer::Done(Vec::new()));
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
            "provider::surroundings::child_that_has_a_proxy",
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
