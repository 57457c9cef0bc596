//! Sends the webhooks and tells the platform their fate. Order and retries are the
//! platform's; the courier only carries.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::Error;
use super::shell::Shell;
use crate::lab::platform::{Delivery, Hook};

/// Events in flight at once, one a room: enough for two thousand calls a second at a
/// receiver's usual pace, and a limit on open connections.
const IN_FLIGHT: usize = 256;
/// LiveKit sets no limit; this one keeps a hanging receiver from holding the courier.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Courier {
    client: reqwest::Client,
    url: String,
    shell: Arc<Shell>,
}

impl Courier {
    pub(super) fn new(url: String, shell: Arc<Shell>) -> Result<Self, Error> {
        // The receiver is local and without TLS; the client wants a provider all the same.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .user_agent("LiveKit")
            .timeout(PATIENCE)
            .build()
            .map_err(Error::Client)?;
        Ok(Self { client, url, shell })
    }

    pub(super) async fn run(self, mut hooks: mpsc::UnboundedReceiver<Hook>) {
        let mut flying = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = self.shell.ended() => return,
                Some((ticket, delivery)) = flying.next(), if !flying.is_empty() => {
                    self.shell.delivered(ticket, delivery);
                }
                hook = hooks.recv(), if flying.len() < IN_FLIGHT => match hook {
                    Some(hook) => flying.push(self.carry(hook)),
                    None => return,
                },
            }
        }
    }

    async fn carry(&self, hook: Hook) -> (crate::lab::platform::HookTicket, Delivery) {
        let sent = self
            .client
            .post(&self.url)
            .header("authorization", hook.authorization)
            .header("content-type", hook.content_type)
            .body(hook.body)
            .send()
            .await;
        let delivery = match sent {
            Ok(response) => Delivery::Status {
                status: response.status().as_u16(),
                retry_after: response
                    .headers()
                    .get("retry-after")
                    .and_then(|value| value.to_str().ok()?.parse().ok())
                    .map(Duration::from_secs),
            },
            Err(_) => Delivery::Lost,
        };
        (hook.ticket, delivery)
    }
}
