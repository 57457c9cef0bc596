//! What the transport does with peers that have other manners than tonic's client.

use std::time::Duration;

use h2::client::SendRequest;
use prost::Message as _;
use ringonce::api::{Reason, proto};
use ringonce::runtime::tasks::Tasks;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::calls::reason;
use super::fake::{Server, sound};

type Stream = SendRequest<prost::bytes::Bytes>;

/// A connection without a timer of its own.
async fn plain(server: &Server, tasks: &Tasks) -> Stream {
    let socket = TcpStream::connect(server.address).await.unwrap();
    let (stream, connection) = h2::client::Builder::new().handshake(socket).await.unwrap();
    tasks.spawn("connection", async { drop(connection.await) });
    stream.ready().await.unwrap()
}

/// Sends a `PlaceCall` with this `grpc-timeout`, and reads the status in the headers.
async fn place(stream: &Stream, timeout: &str, body: Vec<u8>) -> Status {
    let request = http::Request::post("http://ringonce/ringonce.v1.PlacementService/PlaceCall")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout)
        .body(())
        .unwrap();
    let mut ready = stream.clone().ready().await.unwrap();
    let (response, mut sending) = ready.send_request(request, false).unwrap();
    let mut frame = vec![0];
    frame.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend(body);
    sending.send_data(frame.into(), true).unwrap();
    let response = response.await.unwrap();
    Status::from_header_map(response.headers()).expect("an error is a response without a body")
}

#[tokio::test]
async fn a_deadline_that_passes_is_answered_as_one_and_never_as_canceled() {
    let server = Server::start(|_| {}).await;
    server.core.gate.send_replace(false);
    let stream = plain(&server, &server.tasks).await;
    for n in 0..20 {
        let body = sound(&format!("a{n}")).encode_to_vec();
        let status = place(&stream, "30m", body).await;
        assert_eq!(reason(&status), Reason::DeadlineExceeded);
    }
    // Nothing of it was lost: the work went on without its callers.
    server.core.gate.send_replace(true);
    server.core.committed(20).await;
}

#[tokio::test]
async fn bytes_that_are_no_message_have_a_reason() {
    let server = Server::start(|_| {}).await;
    let stream = plain(&server, &server.tasks).await;
    let status = place(&stream, "5S", vec![0xff; 16]).await;
    assert_eq!(reason(&status), Reason::MalformedMessage);
}

#[tokio::test]
async fn r44_the_end_comes_whatever_the_peers_do() {
    let mut server = Server::start(|_| {}).await;
    // One that says nothing at all.
    let _silent = TcpStream::connect(server.address).await.unwrap();
    // One that begins and never reads again.
    let mut deaf = TcpStream::connect(server.address).await.unwrap();
    deaf.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    // A watch that is open, a call that hangs, and a connection that is idle.
    let mut client = server.client().await;
    let watch = proto::WatchAttemptsRequest {
        workspace: "w".into(),
        ..proto::WatchAttemptsRequest::default()
    };
    let mut changes = client.watch_attempts(watch).await.unwrap().into_inner();
    changes.message().await.unwrap();
    server.core.gate.send_replace(false);
    let mut other = server.client().await;
    server.tasks.spawn("hanging call", async move {
        drop(other.place_call(sound("a1")).await);
    });
    let _idle = server.client().await;

    let begin = Instant::now();
    server.stop();
    let ended = loop {
        match changes.message().await {
            Ok(change) => assert!(change.is_some()),
            Err(status) => break status,
        }
    };
    assert_eq!(reason(&ended), Reason::Draining);
    assert!(
        server.ended_within(Duration::from_secs(3)).await,
        "close_within is 0.3 s"
    );
    assert!(
        begin.elapsed() >= Duration::from_millis(300),
        "it asked first"
    );
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "the port is closed"
    );
}

#[tokio::test]
async fn the_end_comes_at_once_when_nobody_holds_it() {
    let mut server = Server::start(|limits| limits.close_within = Duration::from_mins(1)).await;
    let client = server.client().await;
    let mut health = HealthClient::new(server.channel().await);
    let all = HealthCheckRequest::default();
    let mut changes = health.watch(all).await.unwrap().into_inner();
    changes.message().await.unwrap();
    server.stop();
    // Its connection is driven by reading, as a client's is.
    while let Ok(Some(_)) = changes.message().await {}
    assert!(server.ended_within(Duration::from_secs(3)).await);
    drop(client);
}
