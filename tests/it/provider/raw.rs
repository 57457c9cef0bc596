//! A server on a raw socket, and a request to send to it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringonce::provider::http::{Http, HttpConfig};
use ringonce::provider::wire::{Answer, Method, Request, Wire};
use ringonce::runtime::tasks::Tasks;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the raw server does with each request.
#[derive(Debug, Clone)]
pub(super) enum Act {
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
pub(super) struct Raw {
    pub(super) connections: AtomicUsize,
    pub(super) requests: Mutex<Vec<String>>,
    pub(super) clients_gone: AtomicUsize,
    pub(super) tasks: Tasks,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

pub(super) async fn raw(act: Act) -> (Arc<Raw>, String) {
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
                if let Err(why) = serve(&server, stream, act).await {
                    tracing::debug!(%why, "a connection of the raw server ended");
                }
            });
        }
    });
    (raw, url)
}

pub(super) async fn serve(server: &Raw, mut stream: TcpStream, act: Act) -> io::Result<()> {
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
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<String>> {
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

pub(super) fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/protobuf\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(super) fn request(method: Method) -> Request {
    Request {
        method,
        token: SecretString::from("the-token"),
        body: b"to=+12025550186".to_vec(),
        timeout: Duration::from_secs(20),
        server_deadline: None,
    }
}

pub(super) fn wire(url: &str) -> Http {
    Http::new(&HttpConfig::at(url)).unwrap()
}

pub(super) async fn dial(url: &str) -> Answer {
    wire(url).send(request(Method::Dial)).await.answer
}
