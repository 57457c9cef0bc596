//! `ringonce serve`: a node, its store, and the listeners around it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::config::Flags;
use super::output;
use crate::api::{self, Backed};
use crate::config::{self, Config, Location};
use crate::ledger::open::OpenError;
use crate::ledger::seal::Keys;
use crate::ledger::store::memory::Memory;
use crate::ledger::store::{Epoch, Store, sqlite};
use crate::node::{Ground, Node};
use crate::provider::Credentials;
use crate::provider::http::{Http, HttpConfig};
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::ids::{Ids, RandomIds};
use crate::runtime::tasks::Tasks;
use crate::telemetry::logs;

/// Serves `ringonce` until SIGTERM or SIGINT, then lets the dials settle.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Checks the configuration and ends.
    #[arg(long)]
    check_config: bool,
}

/// Runs it.
///
/// # Errors
///
/// If it cannot start; the text says why and what to do.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = match Config::load(&args.flags.sources()) {
        Ok(config) => config,
        Err(faults) => return super::config::refuse(&faults),
    };
    let credentials = match config.livekit.credentials() {
        Ok(found) => Credentials {
            key: found.api_key,
            secret: found.api_secret,
        },
        Err(faults) => return super::config::refuse(&faults),
    };
    if args.check_config {
        output::note("the configuration is sound");
        return Ok(ExitCode::SUCCESS);
    }
    logs::install(&config.log)?;
    let config = Arc::new(config);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn Ids> = Arc::new(RandomIds::from_os());
    let opened = match open_store(&config, clock.as_ref(), ids.as_ref()) {
        Ok(opened) => opened,
        Err(Unopened { error, code }) => {
            output::note(&format!("error: {error:#}"));
            return Ok(ExitCode::from(code));
        }
    };
    let listener = TcpListener::bind(config.listen.grpc)
        .await
        .with_context(|| format!("failed to listen on {} (listen.grpc)", config.listen.grpc))?;
    let address = listener.local_addr()?;
    let tasks = Tasks::default();
    let ground = Ground {
        store: opened.store,
        keys: opened.keys,
        wire: Arc::new(wire(&config)?),
        credentials,
        clock: Arc::clone(&clock),
        ids,
        tasks: tasks.clone(),
    };
    let node = match Node::start(Arc::clone(&config), ground).await {
        Ok(node) => Arc::new(node),
        Err(error @ (OpenError::Deployment { .. } | OpenError::Keys)) => {
            output::note(&format!("error: {error}"));
            return Ok(ExitCode::from(config::EXIT_CONFIG));
        }
        Err(error @ OpenError::Ledger(_)) => return Err(error.into()),
    };
    say_ready(address, &node, &opened.location);
    serve(listener, node, clock, tasks, &config).await
}

/// Serves until a signal, then drains: new work is refused at once, dials get their time,
/// and the process ends by its own clock whatever its peers do.
async fn serve(
    listener: TcpListener,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    config: &Config,
) -> anyhow::Result<ExitCode> {
    let core = Arc::new(Backed::new(Arc::clone(&node)));
    let parts = api::Parts { core, clock, tasks };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let draining = Arc::clone(&node);
    let (drain, slack) = (config.lifecycle.drain, config.lifecycle.abort_slack);
    let delay = config.lifecycle.drain_delay;
    let ended = async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!(
            event = "drain.begun",
            "stopping: nothing new is admitted, dials settle"
        );
        draining.begin_drain();
        tokio::time::sleep(delay).await;
        let settled = async { draining.settle(drain).await };
        tokio::select! {
            biased;
            _ = terminate.recv() => tracing::warn!("a second signal: stopping at once"),
            _ = interrupt.recv() => tracing::warn!("a second signal: stopping at once"),
            settled = settled => if !settled {
                tracing::warn!("dials are still open; the next start reconciles them");
            },
        }
    };
    api::serve(listener, parts, api::Limits::from(config), ended).await?;
    node.shut_down(slack).await;
    tracing::info!(event = "drain.ended", "stopped");
    Ok(if node.tasks().panics() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(output::FAILED)
    })
}

/// One line of JSON on stderr, whatever the log's format: what waits for it reads the port.
fn say_ready(address: SocketAddr, node: &Node, store: &str) {
    let line = serde_json::json!({
        "event": "ready",
        "grpc": address.to_string(),
        "webhook": null,
        "admin": null,
        "note": "the webhook and admin listeners are not served by this version and stay closed",
        "deployment": node.ledger().deployment().as_str(),
        "store": store,
    });
    output::note(&line.to_string());
}

fn wire(config: &Config) -> anyhow::Result<Http> {
    let livekit = &config.livekit;
    let http = HttpConfig {
        connect_timeout: livekit.connect_timeout,
        answer_max: livekit.answer_max_bytes,
        ..HttpConfig::at(&livekit.url)
    };
    Http::new(&http).context("failed to set up the connection to LiveKit (livekit.url)")
}

struct Opened {
    store: Arc<dyn Store>,
    keys: Keys,
    location: String,
}

struct Unopened {
    error: anyhow::Error,
    code: u8,
}

fn open_store(config: &Config, clock: &dyn Clock, ids: &dyn Ids) -> Result<Opened, Unopened> {
    let failed = |error: anyhow::Error| Unopened {
        error,
        code: output::FAILED,
    };
    let now = clock.now();
    match &config.store.location {
        Location::Memory => {
            output::note("note: the store is memory; it forgets everything when this process ends");
            let epoch = Epoch {
                id: ids.uuid(),
                since: now,
            };
            let keys = match &config.store.key_file {
                Some(path) => open_keys(path, ids).map_err(failed)?,
                None => Keys::random(ids),
            };
            let store = Arc::new(Memory::new(1, epoch));
            Ok(Opened {
                store,
                keys,
                location: "memory".to_owned(),
            })
        }
        Location::Sqlite(path) => {
            let options = sqlite::Options {
                queue: config.store.queue,
                readers: config.store.readers,
                ..sqlite::Options::default()
            };
            let store = sqlite::Sqlite::open(path, &options, now, ids).map_err(|error| {
                let held = matches!(error, sqlite::OpenError::Held { .. });
                let code = if held {
                    output::UNREACHABLE
                } else {
                    output::FAILED
                };
                Unopened {
                    error: error.into(),
                    code,
                }
            })?;
            let key_file = config.store.key_file.clone();
            let key_file = key_file.unwrap_or_else(|| path.with_extension("key"));
            let keys = open_keys(&key_file, ids).map_err(failed)?;
            let location = format!("sqlite:{}", path.display());
            Ok(Opened {
                store: Arc::new(store),
                keys,
                location,
            })
        }
    }
}

fn open_keys(path: &Path, ids: &dyn Ids) -> anyhow::Result<Keys> {
    let (keys, made) = Keys::from_file(path, ids)
        .with_context(|| format!("failed to read the key file {}", path.display()))?;
    if made {
        output::note(&format!(
            "note: a key file was made at {}; keep it with the store, without it the store cannot be opened",
            path.display()
        ));
    }
    Ok(keys)
}
