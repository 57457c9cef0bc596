//! Somebody who takes webhooks and throws them away: what is left of their cost is the sender's.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Bytes;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Error, Ground};

/// It ends with its owner.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    _ends: DropGuard,
}

impl Sink {
    /// On a free port of loopback.
    pub(super) async fn start(ground: &Ground) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let end = CancellationToken::new();
        let ended = end.clone().cancelled_owned();
        // The body is read to its end, or the sender would have to connect anew each time.
        let thrown = Router::new().fallback(async |_: Bytes| {});
        ground.tasks.spawn("sink", async move {
            let served = axum::serve(listener, thrown).with_graceful_shutdown(ended);
            if let Err(error) = served.await {
                tracing::warn!(%error, "webhooks are not thrown away any more");
            }
        });
        Ok(Self {
            address,
            _ends: end.drop_guard(),
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}
