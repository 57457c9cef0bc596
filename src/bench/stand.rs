//! A sandbox and a service to be measured, and the way to both.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::de::DeserializeOwned;
use tonic::transport::Channel;

use super::sink::Sink;
use super::{Error, Ground, measure};
use crate::api::proto;
use crate::api::proto::operations_service_client::OperationsServiceClient;
use crate::api::proto::placement_service_client::PlacementServiceClient;
use crate::lab::platform::{Tally, Timings};
use crate::lab::stack::{Folder, Sandbox, Serve, ServeSetup, free_address, webhook_url};
use crate::ledger::store::sqlite;

/// Connections to the service: as a few schedulers would hold them.
const CONNECTIONS: usize = 8;
/// Nothing that a section waits for takes longer than this, even where the host is busy.
const PATIENCE: Duration = Duration::from_mins(3);
/// Between two looks at a state.
const PACE: Duration = Duration::from_millis(50);

/// For `localhost`, signed by itself, valid for a hundred years; its key is public and so
/// worth nothing.
const CERTIFICATE: &str = include_str!("../../tests/fixtures/tls/certificate.pem");
const CERTIFICATE_KEY: &str = include_str!("../../tests/fixtures/tls/key.pem");

/// How the service is configured, beside where the platform is. The rest is the default.
const CONFIG: &str = r#"
[livekit]
api_key = "devkey"
api_secret = "devsecret_that_is_at_least_32_chars_long"
[dial]
agent = "caller"
in_flight = 20_000
[agent]
gate = "DISPATCHED"
[numbers]
test_prefixes = ["+999"]
"#;

/// The platform's key, and its secret: a sandbox's, and so worth nothing.
pub(super) const KEY: &str = "devkey";
pub(super) const SECRET: &str = "devsecret_that_is_at_least_32_chars_long";

/// Times so short that a horizon passes within seconds.
const QUICK: &str = include_str!("../../config/example/quick.toml");

/// How a stand is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A platform that takes no time, without webhooks.
    Plain,
    /// The same over TLS.
    Tls,
    /// The same, and it sends webhooks to the service.
    Told,
    /// The same, and it sends them to somebody who throws them away.
    Unheard,
    /// A platform that takes the times of a real one, with short horizons and no webhooks.
    Quick,
}

/// A client of the service.
pub(super) type Client = PlacementServiceClient<Channel>;

/// A sandbox, a service, and connections to it.
#[derive(Debug)]
pub(super) struct Stand {
    // Held, since it ends with its owner.
    _sandbox: Sandbox,
    _sink: Option<Sink>,
    pub(super) serve: Serve,
    pub(super) folder: Folder,
    setup: ServeSetup,
    clients: Vec<Client>,
    next: Arc<AtomicU64>,
    url: String,
    http: reqwest::Client,
}

impl Stand {
    /// Starts both.
    pub(super) async fn start(ground: &Ground, kind: Kind) -> Result<Self, Error> {
        let tls = kind == Kind::Tls;
        let folder = Folder::new()?;
        let config = folder.file("bench.toml");
        fs::write(&config, CONFIG)?;
        let quick = folder.file("quick.toml");
        fs::write(&quick, QUICK)?;
        let webhook = (kind == Kind::Told).then(free_address).transpose()?;
        let webhook = webhook.map(|at| at.to_string());
        let sink = match kind {
            Kind::Unheard => Some(Sink::start(ground).await?),
            Kind::Plain | Kind::Tls | Kind::Told | Kind::Quick => None,
        };
        let thrown = sink.as_ref().map(|sink| sink.address().to_string());
        let told = (webhook.as_deref().or(thrown.as_deref())).map(webhook_url);
        let mut setup = ServeSetup {
            config: match kind {
                Kind::Quick => vec![quick, config],
                Kind::Plain | Kind::Tls | Kind::Told | Kind::Unheard => vec![config],
            },
            webhook_listen: webhook,
            store: Some(folder.store("bench.db")),
            ..ServeSetup::default()
        };
        let (certificate, key) = (folder.file("certificate.pem"), folder.file("key.pem"));
        fs::write(&certificate, CERTIFICATE)?;
        fs::write(&key, CERTIFICATE_KEY)?;
        let certificate = certificate.display().to_string();
        let key = key.display().to_string();
        let mut flags = match kind {
            Kind::Plain | Kind::Tls | Kind::Told | Kind::Unheard => vec!["--load"],
            Kind::Quick => vec!["--token-leeway", "2s"],
        };
        if let Some(url) = &told {
            flags.extend(["--webhook", url.as_str()]);
        }
        if tls {
            flags.extend(["--tls-certificate", &certificate, "--tls-key", &key]);
            setup = setup.set("livekit.ca_file", certificate.clone());
        }
        let sandbox = Sandbox::start(&ground.program, &folder, &flags).await?;
        let mut url = sandbox.url();
        if tls {
            // The certificate is for this name, not for the address.
            url = url.replace("http://127.0.0.1", "https://localhost");
        }
        let setup = setup.set("livekit.url", url.clone());
        let serve = Serve::start(&ground.program, &folder, &setup).await?;
        let mut stand = Self {
            _sandbox: sandbox,
            _sink: sink,
            serve,
            folder,
            setup,
            clients: Vec::new(),
            next: Arc::default(),
            url,
            http: http()?,
        };
        stand.connect().await?;
        Ok(stand)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        self.clients.clear();
        for _ in 0..CONNECTIONS {
            let channel = self.serve.channel().await?;
            self.clients.push(PlacementServiceClient::new(channel));
        }
        Ok(())
    }

    /// The connections, to be used in turn.
    pub(super) fn clients(&self) -> Vec<Client> {
        self.clients.clone()
    }

    /// Numbers that no placement of this stand had yet.
    pub(super) fn numbers(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.next)
    }

    /// A block of `count` numbers that no placement of this stand had yet; the first of them.
    pub(super) fn take(&self, count: u64) -> u64 {
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// Where the platform is.
    pub(super) fn platform(&self) -> &str {
        &self.url
    }

    /// The process id of the service.
    pub(super) fn pid(&mut self) -> Result<u32, Error> {
        (self.serve.process().id()).ok_or(Error::Late("a service that runs"))
    }

    /// The processor time of the service so far.
    pub(super) fn processor_time(&mut self) -> Result<Duration, Error> {
        Ok(measure::processor_time(self.pid()?)?)
    }

    /// The resident memory of the service, in kB.
    pub(super) fn resident(&mut self) -> Result<u64, Error> {
        Ok(measure::resident(self.pid()?)?)
    }

    /// How many commits the store has applied.
    pub(super) fn commits(&self) -> Result<u64, Error> {
        Ok(sqlite::inspect(&self.folder.file("bench.db"))?.commits)
    }

    /// The platform's counts.
    pub(super) async fn tally(&self) -> Result<Tally, Error> {
        self.ask("/sandbox/tally").await
    }

    /// The platform's times.
    pub(super) async fn timings(&self) -> Result<Timings, Error> {
        self.ask("/sandbox/timings").await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let failed = |error: reqwest::Error| Error::Bare(error.to_string());
        let answer = self.http.get(format!("{}{path}", self.url)).send().await;
        let body = answer.map_err(failed)?.bytes().await.map_err(failed)?;
        serde_json::from_slice(&body).map_err(|error| Error::Bare(error.to_string()))
    }

    /// What the service has counted.
    pub(super) async fn status(&self) -> Result<proto::ServiceStatus, Error> {
        let channel = self.serve.channel().await?;
        let mut client = OperationsServiceClient::new(channel);
        let status = client.get_status(proto::GetStatusRequest {}).await;
        let status = status.map_err(|status| Error::Refused(status.message().to_owned()))?;
        Ok(status.into_inner())
    }

    /// Waits until the platform's counts look so.
    pub(super) async fn until(
        &self,
        what: &'static str,
        looks: impl Fn(&Tally) -> bool,
    ) -> Result<Tally, Error> {
        let looking = async {
            let mut pace = tokio::time::interval(PACE);
            loop {
                pace.tick().await;
                let tally = self.tally().await?;
                if looks(&tally) {
                    return Ok(tally);
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.unwrap_or(Err(Error::Late(what)))
    }

    /// Ends the service in order; how many commits and transactions it wrote in its life.
    pub(super) async fn stop(&mut self) -> Result<(u64, u64), Error> {
        let process = self.serve.process();
        process.terminate()?;
        let line = process.said("event", "store.closed").await?;
        process.wait().await?;
        let count = |key: &str| line[key].as_u64().unwrap_or_default();
        Ok((count("commits"), count("transactions")))
    }

    /// `kill -9` of the service.
    pub(super) async fn kill(&mut self) -> Result<(), Error> {
        Ok(self.serve.process().kill().await?)
    }

    /// Starts the service again on the same store; the time until it was ready.
    pub(super) async fn start_again(&mut self, ground: &Ground) -> Result<Duration, Error> {
        let began = tokio::time::Instant::now();
        self.serve = Serve::start(&ground.program, &self.folder, &self.setup).await?;
        let took = began.elapsed();
        self.connect().await?;
        Ok(took)
    }
}

/// A client for the sandbox that trusts the certificate above.
fn http() -> Result<reqwest::Client, Error> {
    let unfit = |error: rustls::Error| Error::Bare(error.to_string());
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes())
        .map_err(|error| Error::Bare(error.to_string()))?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).map_err(unfit)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(|error| Error::Bare(error.to_string()))
}
