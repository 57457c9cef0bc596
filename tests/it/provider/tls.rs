//! TLS: whom the wire trusts, and handshakes that fail.

use std::sync::Arc;
use std::time::Duration;

use ringonce::provider::http::{Http, HttpConfig};
use ringonce::provider::wire::{Answer, Method, NotSent, Wire};
use ringonce::runtime::tasks::Tasks;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::raw::{Act, answer, raw, request, wire};

/// For `localhost`, signed by itself, valid for a hundred years.
const CERTIFICATE: &str = include_str!("../../fixtures/tls/certificate.pem");

/// Its key, worth nothing anywhere else.
const KEY: &str = include_str!("../../fixtures/tls/key.pem");

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
