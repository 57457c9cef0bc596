//! A `serve` process, and the way to it.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tonic::transport::{Channel, Endpoint};

use super::process::{Process, Program};
use super::{Error, Folder};

/// How long the first connection may take; it is to this host.
const CONNECT: Duration = Duration::from_secs(10);
/// A ring is long and silent: pings show that the server still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Where a `serve` takes webhooks, at the address of its listener for them.
#[must_use]
pub fn webhook_url(listener: &str) -> String {
    format!("http://{listener}/webhooks/livekit")
}

/// What a `serve` is started with, each time anew.
#[derive(Debug, Clone, Default)]
pub struct ServeSetup {
    /// Files of configuration; a later one wins.
    pub config: Vec<PathBuf>,
    /// Keys and their values, above the files.
    pub set: Vec<(String, String)>,
    /// The store, as `sqlite:PATH`; the configuration's if `None`.
    pub store: Option<String>,
    /// Where it listens; a port of its own if `None`.
    pub listen: Option<String>,
    /// Where it takes webhooks; a port of its own if `None`.
    pub webhook_listen: Option<String>,
    /// The file that its stderr is added to; `serve.log` in the folder if `None`.
    pub log: Option<PathBuf>,
}

impl ServeSetup {
    /// With one key more.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<String>) -> Self {
        self.set.push((key.to_owned(), value.into()));
        self
    }

    /// The words of the command line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["serve".to_owned()];
        let mut flag = |name: &str, value: String| {
            words.push(name.to_owned());
            words.push(value);
        };
        for file in &self.config {
            flag("--config", file.display().to_string());
        }
        let listen = self.listen.as_deref().unwrap_or("127.0.0.1:0");
        flag("--listen", listen.to_owned());
        let webhooks = self.webhook_listen.as_deref().unwrap_or("127.0.0.1:0");
        flag("--webhook-listen", webhooks.to_owned());
        if let Some(store) = &self.store {
            flag("--store", store.clone());
        }
        for (key, value) in &self.set {
            flag("--set", format!("{key}={value}"));
        }
        words
    }
}

/// A running service.
#[derive(Debug)]
pub struct Serve {
    process: Process,
    ready: Value,
    url: String,
}

impl Serve {
    /// Starts one and waits until it serves.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn start(
        program: &Program,
        folder: &Folder,
        setup: &ServeSetup,
    ) -> Result<Self, Error> {
        let log = setup
            .log
            .clone()
            .unwrap_or_else(|| folder.file("serve.log"));
        let mut process = program.start(folder.path(), &setup.words(), &log)?;
        let ready = process.said("event", "ready").await?;
        let address = ready["grpc"]
            .as_str()
            .ok_or(Error::Unreadable("the service's ready line"))?;
        let url = format!("http://{address}");
        Ok(Self {
            process,
            ready,
            url,
        })
    }

    /// Its process.
    #[must_use]
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its ready line.
    #[must_use]
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// Where schedulers call, as `http://127.0.0.1:7081`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new connection to it, for the generated clients.
    ///
    /// # Errors
    ///
    /// [`Error::Channel`].
    pub async fn channel(&self) -> Result<Channel, Error> {
        channel(&self.url).await
    }
}

/// An address of this host that was free a moment ago, for a service that is to be found
/// where its predecessor was.
///
/// # Errors
///
/// [`Error::Address`].
pub fn free_address() -> Result<SocketAddr, Error> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .map_err(Error::Address)
}

/// A new connection to the service at `url`.
///
/// # Errors
///
/// [`Error::Channel`].
pub async fn channel(url: &str) -> Result<Channel, Error> {
    Endpoint::from_shared(url.to_owned())
        .map_err(Error::Channel)?
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .connect()
        .await
        .map_err(Error::Channel)
}
