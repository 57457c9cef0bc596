//! The sandbox: the [platform](super::platform) on a socket, in real time.
//!
//! `/twirp/*` is LiveKit's API over HTTP/1.1; `GET /sandbox/state` shows what happened,
//! `/sandbox/tally` counts it, and `/sandbox/timings` tells how long it took;
//! `POST /sandbox/faults` throws a [`Fault`](super::platform::Fault). Webhooks go to one
//! receiver. A lost reply is a connection that really breaks: see `line`.

mod courier;
mod line;
mod shell;

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::platform::Settings;
use crate::runtime::tasks::Tasks;
use courier::Courier;
use line::{Line, Lines};
use shell::Shell;

/// Why the sandbox cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client that sends the webhooks cannot be made.
    #[error("the client for the webhooks cannot be made")]
    Client(#[source] reqwest::Error),
    /// The TLS settings of that client cannot be made.
    #[error("the TLS settings for the webhooks cannot be made")]
    Tls(#[source] rustls::Error),
    /// The listener failed.
    #[error("the listener failed")]
    Listen(#[source] std::io::Error),
}

/// Where a sandbox listens, and whether it speaks TLS there.
pub struct Socket {
    /// The listener.
    pub listener: TcpListener,
    /// Its certificate and how it speaks TLS; plain HTTP without it.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("listener", &self.listener)
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

impl From<TcpListener> for Socket {
    fn from(listener: TcpListener) -> Self {
        Self {
            listener,
            tls: None,
        }
    }
}

/// Serves a platform on `socket` until `stop`; then its connections break, as those of
/// a killed server do. Webhooks go to `webhook` by POST; without one, none is made. The
/// platform's wall clock starts at `settings.wall_start_micros`.
///
/// # Errors
/// See [`Error`].
pub async fn serve(
    socket: impl Into<Socket>,
    mut settings: Settings,
    webhook: Option<String>,
    tasks: &Tasks,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    settings.webhooks &= webhook.is_some();
    let (shell, hooks) = Shell::new(settings);
    if let Some(url) = webhook {
        let courier = Courier::new(url, Arc::clone(&shell))?;
        tasks.spawn("sandbox-courier", courier.run(hooks));
    }
    tasks.spawn("sandbox-clock", Arc::clone(&shell).run());
    let router = shell::router(Arc::clone(&shell));
    let service = router.into_make_service_with_connect_info::<Line>();
    let Socket { listener, tls } = socket.into();
    let tls = tls.map(TlsAcceptor::from);
    let served = axum::serve(Lines { listener, tls }, service);
    let outcome = tokio::select! {
        biased;
        () = stop => Ok(()),
        served = served => served.map_err(Error::Listen),
    };
    shell.end();
    outcome
}
