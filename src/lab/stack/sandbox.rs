//! A `sandbox` process, and how to ask it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::process::{Process, Program};
use super::{Error, Folder};
use crate::lab::platform::State;

/// The sandbox answers at once; a host that is busy, soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running sandbox.
#[derive(Debug)]
pub struct Sandbox {
    process: Process,
    address: SocketAddr,
    http: reqwest::Client,
}

impl Sandbox {
    /// Starts one on a port of its own, with these flags more, and waits until it listens.
    /// Its log is `sandbox.log` in `folder`.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn start(program: &Program, folder: &Folder, flags: &[&str]) -> Result<Self, Error> {
        let log = folder.file("sandbox.log");
        Self::listen(program, folder.path(), "127.0.0.1:0", flags, &log).await
    }

    /// The same at the address `at`.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn listen(
        program: &Program,
        home: &Path,
        at: &str,
        flags: &[&str],
        log: &Path,
    ) -> Result<Self, Error> {
        let http = plain_http()?;
        let mut words = ["sandbox", "--listen", at].map(str::to_owned).to_vec();
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut process = program.start(home, &words, log)?;
        let ready = process.said("ready", "sandbox").await?;
        let address = ready["listen"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or(Error::Unreadable("the sandbox's ready line"))?;
        Ok(Self {
            process,
            address,
            http,
        })
    }

    /// Its process.
    #[must_use]
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// As `livekit.url` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What happened and what lives: `GET /sandbox/state`.
    ///
    /// # Errors
    ///
    /// [`Error::Http`] or [`Error::Unreadable`].
    pub async fn state(&self) -> Result<State, Error> {
        let asked = self.http.get(format!("{}/sandbox/state", self.url()));
        let answer = asked.send().await.map_err(Error::Http)?;
        let body = answer.bytes().await.map_err(Error::Http)?;
        serde_json::from_slice(&body).map_err(|_| Error::Unreadable("the sandbox's state"))
    }

    /// Throws a fault, written as `POST /sandbox/faults` takes it: `{"name", "times", …}`.
    ///
    /// # Errors
    ///
    /// [`Error::Http`], or [`Error::Fault`] with what the sandbox says.
    pub async fn throw(&self, fault: &Value) -> Result<(), Error> {
        let asked = self.http.post(format!("{}/sandbox/faults", self.url()));
        let answer = asked.body(fault.to_string()).send().await;
        let answer = answer.map_err(Error::Http)?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(Error::Fault(answer.text().await.map_err(Error::Http)?))
    }
}

/// A client for what is local and without TLS; it wants a provider all the same.
///
/// # Errors
///
/// [`Error::Tls`] or [`Error::Http`].
pub fn plain_http() -> Result<reqwest::Client, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::Tls)?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(Error::Http)
}
