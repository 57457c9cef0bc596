//! `POST /webhooks/livekit`: the listener, and the limits of who may send what.
//!
//! | status | when | what LiveKit does |
//! |---|---|---|
//! | 200 | the receipt is durable, or was before | counts it as delivered |
//! | 400 | signed, and no JSON object | gives up; LiveKit sends no such thing |
//! | 401 | not signed by a key of ours, over these bytes, at this time | gives up: a wrong key loses events, and the log says so |
//! | 404, 405 | another path, another method | – |
//! | 413 | longer than `webhooks.body_max_bytes` | gives up |
//! | 503 | it could not be kept, did not arrive in time, or there are too many | sends it again, after `Retry-After` |
//!
//! Who signed is checked before the body is read. HTTP/1.1 and HTTP/2 without TLS are spoken,
//! which is what LiveKit and the proxies before it speak.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::strangers::{Stranger, Strangers};
use super::{Counted, Inbox, Taken};
use crate::config::Webhooks;
use crate::runtime::stop::Stop;
use crate::runtime::streak::Streak;
use crate::runtime::tasks::Tasks;

/// Where LiveKit sends them: `webhook.urls` in its configuration ends with this.
pub const PATH: &str = "/webhooks/livekit";

/// The task of a connection.
const TASK: &str = "webhook-connection";

/// How long to wait when no connection can be accepted, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Requests that one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 128;

/// The answer to a connection beyond the limit; it is closed after it.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// What the connections share.
#[derive(Debug)]
struct Door {
    inbox: Arc<Inbox>,
    limits: Webhooks,
    rate: Rate,
    strangers: Arc<Strangers>,
}

/// Serves on `listener` until `stop` says so; whoever is being answered then is answered.
pub async fn serve(
    listener: TcpListener,
    inbox: Arc<Inbox>,
    limits: Webhooks,
    tasks: Tasks,
    mut stop: Stop,
) {
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let door = Arc::new(Door {
        rate: Rate::new(f64::from(limits.rate_per_second)),
        strangers: Arc::default(),
        inbox,
        limits,
    });
    let refused = Streak::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.wait() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => {
                let _told = refused.ended();
                stream
            }
            Err(error) => {
                if let Some(told) = refused.failed() {
                    let count = told.count;
                    tracing::warn!(%error, count, "a webhook's connection cannot be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match place(&door, &places).await {
            Some(place) => {
                let stranger = door.strangers.enter();
                let connection =
                    connection(Arc::clone(&door), stream, stranger, place, stop.clone());
                tasks.spawn(TASK, connection);
            }
            None => turn_away(&stream),
        }
    }
}

/// A place for a connection: a free one, or that of the oldest on which nobody has signed.
async fn place(door: &Door, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Some(place);
    }
    let count = door.inbox.counts().add(Counted::Connections);
    if count.is_power_of_two() {
        tracing::warn!(
            event = "webhook.connections",
            count,
            "more connections than webhooks.connections_max; those on which nobody has signed \
             are closed, and then new ones are turned away, whose events LiveKit sends again"
        );
    }
    if !door.strangers.show_out() {
        return None;
    }
    let freed = timeout(ACCEPT_PAUSE, Arc::clone(places).acquire_owned()).await;
    freed.ok()?.ok()
}

/// One connection too many: an answer that LiveKit repeats after. What its socket's buffer
/// does not take is left unsaid, and a broken connection is repeated as well.
fn turn_away(stream: &TcpStream) {
    if let Err(error) = stream.try_write(TOO_MANY) {
        tracing::debug!(%error, "a connection beyond the limit was closed without an answer");
    }
}

/// Serves a connection until it ends, or until it must make room for another.
async fn connection(
    door: Arc<Door>,
    stream: TcpStream,
    stranger: Stranger,
    _place: OwnedSemaphorePermit,
    stop: Stop,
) {
    let stranger = Arc::new(stranger);
    tokio::select! {
        biased;
        () = stranger.shown_out() => {}
        () = speak(door, stream, Arc::clone(&stranger), stop) => {}
    }
}

async fn speak(door: Arc<Door>, stream: TcpStream, stranger: Arc<Stranger>, mut stop: Stop) {
    // Answers are one packet each; without it they would wait for an acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delays");
    }
    let limits = door.limits.clone();
    let begun = timeout(limits.read_timeout, Opened::begin(stream)).await;
    let Ok(Ok((opened, version))) = begun else {
        return;
    };
    let io = TokioIo::new(opened);
    let service = service_fn(move |request| {
        let (door, stranger) = (Arc::clone(&door), Arc::clone(&stranger));
        async move { Ok::<_, Infallible>(answer(&door, &stranger, request).await) }
    });
    let served = match version {
        Version::One => {
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(limits.read_timeout)
                .max_buf_size(limits.head_max_bytes);
            let connection = builder.serve_connection(io, service);
            tokio::pin!(connection);
            tokio::select! {
                biased;
                served = connection.as_mut() => served,
                () = stop.wait() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
        Version::Two => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(limits.read_timeout)
                .keep_alive_timeout(limits.read_timeout)
                .max_concurrent_streams(STREAMS_MAX)
                .max_header_list_size(u32::try_from(limits.head_max_bytes).unwrap_or(u32::MAX));
            let connection = builder.serve_connection(io, service);
            tokio::pin!(connection);
            tokio::select! {
                biased;
                served = connection.as_mut() => served,
                () = stop.wait() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a webhook's connection broke");
    }
}

async fn answer(door: &Door, stranger: &Stranger, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.uri.path() != PATH {
        return say(404);
    }
    if parts.method != Method::POST {
        return say(405);
    }
    let authorization = parts.headers.get(header::AUTHORIZATION);
    let signed = match door
        .inbox
        .check(authorization.map(http::HeaderValue::as_bytes))
    {
        Ok(signed) => signed,
        Err(refusal) => return say(Taken::Refused(refusal).status()),
    };
    stranger.is_known();
    // Only what is signed counts: nobody else can use the rate up.
    if !door.rate.take() {
        let count = door.inbox.counts().add(Counted::TooMany);
        if count.is_power_of_two() {
            tracing::warn!(
                event = "webhook.too_many",
                count,
                "more webhooks than webhooks.rate_per_second; LiveKit sends them again"
            );
        }
        return say(503);
    }
    let max = door.limits.body_max_bytes;
    if announced(&parts.headers).is_some_and(|length| length > max) {
        door.inbox.counts().too_long();
        return say(413);
    }
    match timeout(door.limits.read_timeout, whole(body, max)).await {
        Ok(Ok(body)) => say(door.inbox.keep(&signed, &body).await.status()),
        Ok(Err(Unread::TooLong)) => {
            door.inbox.counts().too_long();
            say(413)
        }
        // Whoever sent half of it does not listen any more.
        Ok(Err(Unread::Broken)) => say(400),
        // Not 408, which would count as delivered: it is signed, so a network was slow.
        Err(_) => say(503),
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Why a body was not read.
enum Unread {
    TooLong,
    Broken,
}

async fn whole(body: Incoming, max: usize) -> Result<Vec<u8>, Unread> {
    let mut chunks = Body::new(body).into_data_stream();
    let mut whole = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Unread::Broken)?;
        if whole.len() + chunk.len() > max {
            return Err(Unread::TooLong);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole)
}

fn say(status: u16) -> Response<Body> {
    let mut response = Response::builder().status(status);
    if status == 503 {
        response = response.header(header::RETRY_AFTER, "1");
    }
    if status == 405 {
        response = response.header(header::ALLOW, "POST");
    }
    response.body(Body::empty()).unwrap_or_default()
}

/// A token bucket: so many a second, and as many in one burst.
#[derive(Debug)]
struct Rate {
    per_second: f64,
    held: Mutex<(f64, Instant)>,
}

impl Rate {
    fn new(per_second: f64) -> Self {
        Self {
            per_second,
            held: Mutex::new((per_second, Instant::now())),
        }
    }

    fn take(&self) -> bool {
        let now = Instant::now();
        // A std mutex, since nothing is awaited while it is held.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = *held;
        let grown = (now - at).as_secs_f64().mul_add(self.per_second, tokens);
        let tokens = grown.min(self.per_second);
        let taken = tokens >= 1.0;
        *held = (if taken { tokens - 1.0 } else { tokens }, now);
        taken
    }
}

/// Which HTTP a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// What HTTP/2 begins with (RFC 9113, 3.4); no request of HTTP/1.1 that is served here does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose first bytes were looked at.
#[derive(Debug)]
struct Opened {
    first: Vec<u8>,
    /// How many of `first` were handed on.
    given: usize,
    stream: TcpStream,
}

impl Opened {
    /// Reads as much as tells the two apart, and the whole preface: half of one would be
    /// waited for without end.
    async fn begin(mut stream: TcpStream) -> io::Result<(Self, Version)> {
        let mut first = vec![0; 4];
        stream.read_exact(&mut first).await?;
        let mut version = Version::One;
        if PREFACE.starts_with(&first) {
            version = Version::Two;
            first.resize(PREFACE.len(), 0);
            let rest = first.get_mut(4..).unwrap_or_default();
            stream.read_exact(rest).await?;
        }
        let opened = Self {
            first,
            given: 0,
            stream,
        };
        Ok((opened, version))
    }
}

mod opened {
    //! It reads its first bytes again, and is the stream otherwise.

    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::Opened;

    impl AsyncRead for Opened {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let rest = self.first.get(self.given..).unwrap_or_default();
            if rest.is_empty() {
                return Pin::new(&mut self.stream).poll_read(cx, buf);
            }
            let count = rest.len().min(buf.remaining());
            buf.put_slice(rest.get(..count).unwrap_or_default());
            self.given += count;
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Opened {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let rate = Rate::new(10.0);
        let taken = |of: u32| (0..of).filter(|_| rate.take()).count();
        assert_eq!(taken(30), 10);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(taken(30), 5);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(taken(30), 10, "no more than one second's worth is saved up");
    }
}
