//! `ringonce serve`: a node, its store, and the listeners around it.

mod address;
mod signals;
mod stores;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::config::Flags;
use super::output;
use crate::api::{self, Backed};
use crate::config::{self, Config};
use crate::inbox;
use crate::ledger::open::OpenError;
use crate::node::{Ground, Node};
use crate::provider::Credentials;
use crate::provider::http::{Http, HttpConfig};
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::ids::{Ids, RandomIds};
use crate::runtime::tasks::Tasks;
use crate::telemetry::logs;
use address::Address;
pub(super) use address::remedy;
use signals::Signals;
pub(super) use stores::has_folder;
use stores::{Opened, Unopened};

/// Serves `ringonce` until SIGTERM or SIGINT, then lets the dials settle.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Checks the configuration, with the key and the secret of LiveKit and the folder of the
    /// store, and ends; the same as `ringonce config check`.
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
        Ok(config) => Arc::new(config),
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
        if let Err(unopened) = has_folder(&config) {
            return Ok(unopened.say());
        }
        super::config::remark(&config)?;
        output::write(super::config::SOUND.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    logs::install(&config.log)?;
    // From here on a signal is a request to end in order, also for the first process of a
    // container, which the kernel would otherwise not end by SIGTERM.
    let signals = Signals::listen()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn Ids> = Arc::new(RandomIds::from_os());
    let (opened, listener, webhooks) = match open(&config, clock.as_ref(), ids.as_ref()) {
        Ok(opened) => opened,
        Err(unopened) => return Ok(unopened.say()),
    };
    let (address, webhook) = (listener.local_addr()?, webhooks.local_addr()?);
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
    let (inbox, limits) = (Arc::clone(node.inbox()), config.webhooks.clone());
    let taking = inbox::http::serve(webhooks, inbox, limits, tasks.clone(), node.stopping());
    tasks.spawn("webhooks", taking);
    say_ready(
        address,
        webhook,
        &node,
        &opened.location,
        &config.livekit.url,
    );
    node.preflight(config.trunks.keys().cloned().collect());
    let core = Arc::new(Backed::new(Arc::clone(&node)));
    let parts = api::Parts { core, clock, tasks };
    serve(listener, parts, &node, &config, signals).await
}

/// Opens the store and both sockets. The addresses are taken first, since a store is made where
/// there is none: one that did not start leaves nothing behind. Nobody can connect before the
/// store is open.
fn open(
    config: &Config,
    clock: &dyn Clock,
    ids: &dyn Ids,
) -> Result<(Opened, TcpListener, TcpListener), Unopened> {
    let grpc = Address::take(config.listen.grpc, "listen.grpc", "--listen")?;
    let webhook = Address::take(config.listen.webhook, "listen.webhook", "--webhook-listen")?;
    let opened = stores::open(config, clock, ids)?;
    Ok((opened, grpc.listen()?, webhook.listen()?))
}

/// Serves until a signal, then drains: nothing new is admitted, dials settle, whoever waits
/// is answered. The process ends by its own clock whatever its peers do, and at once at a
/// second signal.
async fn serve(
    listener: TcpListener,
    parts: api::Parts,
    node: &Node,
    config: &Config,
    signals: Signals,
) -> anyhow::Result<ExitCode> {
    let Signals {
        mut first,
        mut second,
    } = signals;
    let lifecycle = &config.lifecycle;
    let drained = async {
        first.come().await;
        tracing::info!(
            event = "drain.begun",
            "stopping: nothing new is admitted, dials settle"
        );
        node.begin_drain();
        tokio::time::sleep(lifecycle.drain_delay).await;
        let left = lifecycle.drain.saturating_sub(lifecycle.drain_delay);
        if !node.settle(left).await {
            tracing::warn!(
                event = "drain.overrun",
                "dials are still open; the next start reconciles them"
            );
        }
    };
    let in_order = async {
        let served = api::serve(listener, parts, api::Limits::from(config), drained).await;
        node.shut_down(lifecycle.abort_slack).await;
        served
    };
    tokio::select! {
        biased;
        () = second.come_twice() => {
            tracing::warn!(
                event = "drain.cut",
                "a second signal: stopping at once; the next start reconciles what is open"
            );
            node.shut_down(Duration::ZERO).await;
        }
        served = in_order => served?,
    }
    tracing::info!(event = "drain.ended", "stopped");
    Ok(if node.tasks().panics() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(output::FAILED)
    })
}

/// One line of JSON on stderr, whatever the log's format: what waits for it reads the port.
fn say_ready(address: SocketAddr, webhook: SocketAddr, node: &Node, store: &str, url: &str) {
    let line = serde_json::json!({
        "event": "ready",
        "grpc": address.to_string(),
        "webhook": webhook.to_string(),
        "admin": null,
        "note": "the admin listener is not served by this version and stays closed",
        "deployment": node.ledger().deployment().as_str(),
        "store": store,
        "livekit": url,
    });
    output::note(&line.to_string());
}

fn wire(config: &Config) -> anyhow::Result<Http> {
    let livekit = &config.livekit;
    let http = HttpConfig {
        connect_timeout: livekit.connect_timeout,
        answer_max: livekit.answer_max_bytes,
        roots: livekit.roots.clone(),
        ..HttpConfig::at(&livekit.url)
    };
    Http::new(&http).context("failed to set up the connection to LiveKit (livekit.url)")
}
