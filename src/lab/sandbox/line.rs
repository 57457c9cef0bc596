//! A connection that the sandbox can break: what a client sees when a reply is lost.
//!
//! Nothing above a socket can say "close without an answer": a handler must return a
//! response. So a handler that wants to be silent marks its connection first, and the
//! first byte of the response fails to be written, upon which the server drops it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// How long to wait when no connection can be accepted, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections that can be broken.
pub(super) struct Lines {
    pub(super) listener: TcpListener,
    /// How TLS is spoken, if it is.
    pub(super) tls: Option<TlsAcceptor>,
}

/// Breaks one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Arc<AtomicBool>);

impl Line {
    /// From now on nothing is written to it.
    pub(super) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Listener for Lines {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    // Answers are small and one packet each; without it they would wait
                    // for the client's acknowledgement.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection keeps its delays");
                    }
                    let line = Line::default();
                    // The handshake is done by whoever reads, so that a peer that is slow in
                    // it holds up nobody else.
                    let stream = match &self.tls {
                        None => Stream::Plain(stream),
                        Some(tls) => Stream::Shaking(Box::new(tls.accept(stream))),
                    };
                    return (Wire { stream, line }, from);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Lines>> for Line {
    fn connect_info(stream: IncomingStream<'_, Lines>) -> Self {
        stream.io().line.clone()
    }
}

/// The stream of a connection.
pub(super) struct Wire {
    stream: Stream,
    line: Line,
}

enum Stream {
    Plain(TcpStream),
    Shaking(Box<Accept<TcpStream>>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Broken,
}

/// What can be read and written.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Stream {
    /// The stream, once its handshake is done.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Duplex>>> {
        if let Self::Shaking(shaking) = self {
            match ready!(Pin::new(shaking).poll(cx)) {
                Ok(open) => *self = Self::Tls(Box::new(open)),
                Err(error) => {
                    *self = Self::Broken;
                    return Poll::Ready(Err(error));
                }
            }
        }
        match self {
            Self::Plain(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Self::Tls(stream) => Poll::Ready(Ok(Pin::new(stream.as_mut()))),
            Self::Shaking(_) | Self::Broken => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.stream.poll_open(cx))?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.line.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        ready!(self.stream.poll_open(cx))?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream.poll_open(cx))?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream.poll_open(cx))?.poll_shutdown(cx)
    }

    // A vectored write would go around the check above.
    fn is_write_vectored(&self) -> bool {
        false
    }
}
