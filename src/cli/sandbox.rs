//! `ringonce sandbox`: a LiveKit that rings nobody, on a socket.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;

use super::output;
use super::serve::remedy;
use crate::lab::platform::{Behaviour, Settings, Worker, callees, faults};
use crate::lab::sandbox;
use crate::runtime::clock::{Clock as _, SystemClock};
use crate::runtime::ids::{Ids as _, RandomIds};
use crate::runtime::tasks::Tasks;

/// How long the sandbox's tasks may take to end.
const END: Duration = Duration::from_secs(2);

/// `ringonce sandbox …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the platform listens; port 0 picks one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7880")]
    listen: SocketAddr,
    /// Where the platform's webhooks go; none are sent without it.
    #[arg(long, value_name = "URL", value_parser = receiver)]
    webhook: Option<String>,
    /// How the agent `caller` behaves.
    #[arg(long, value_enum, default_value_t = Agent::Joins)]
    agent: Agent,
    /// How long after its end a token is still taken; LiveKit's own is 60 s.
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = humantime::parse_duration)]
    token_leeway: Duration,
    /// Dials a second above which the bridge is overloaded; no limit without it.
    #[arg(long, value_name = "COUNT")]
    capacity: Option<u32>,
    /// How long a callee who answers talks before it hangs up.
    #[arg(long, value_name = "SPAN", default_value = "20s", value_parser = humantime::parse_duration)]
    talk: Duration,
    /// Serves over TLS, with the certificate in this PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of that certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// For measuring what stands around it: bridge, callees and agent take no time of their
    /// own, and `/sandbox/timings` tells when calls began and how long requests took.
    #[arg(long)]
    load: bool,
    /// The seed of all ids; without it they are never twice the same. A store that has heard of an
    /// id before takes it for a repetition.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Prints what each number and each fault does, and serves nothing.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// 0.4 s after the dispatch.
    Joins,
    /// 30 s after the dispatch.
    Late,
    /// Never: no worker is there.
    Absent,
    /// It joins and leaves again after 2 s.
    Leaves,
}

impl Agent {
    fn behaviour(self) -> Behaviour {
        let join = Duration::from_millis(400);
        match self {
            Self::Joins => Behaviour::Joins { after: join },
            Self::Late => Behaviour::Late {
                after: Duration::from_secs(30),
            },
            Self::Absent => Behaviour::Absent,
            Self::Leaves => Behaviour::Leaves {
                join,
                after: Duration::from_secs(2),
            },
        }
    }
}

/// Serves until SIGINT or SIGTERM. One JSON line on stderr names the port once it listens.
///
/// # Errors
///
/// The address cannot be listened on, or the listener fails.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        std::io::stdout()
            .write_all(listed().as_bytes())
            .context("failed to write to stdout")?;
        return Ok(ExitCode::SUCCESS);
    }
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Arc::new(tls(certificate, key)?)),
        (None | Some(_), _) => None,
    };
    let listener = match tokio::net::TcpListener::bind(args.listen).await {
        Ok(listener) => listener,
        Err(error) => {
            let (code, remedy) = remedy(&error, "sandbox");
            let at = args.listen;
            output::note(&format!(
                "error: failed to listen on {at}; {remedy} by --listen: {error}"
            ));
            return Ok(ExitCode::from(code));
        }
    };
    let address = listener
        .local_addr()
        .context("the listener has no address")?;
    let ready = json!({"ready": "sandbox", "listen": address.to_string()});
    writeln!(std::io::stderr(), "{ready}").context("failed to write to stderr")?;
    let mut settings = Settings {
        wall_start_micros: SystemClock.now().as_micros(),
        seed: (args.seed).unwrap_or_else(|| RandomIds::from_os().uuid().as_u64_pair().0),
        token_leeway: args.token_leeway,
        workers: vec![Worker::new("caller", args.agent.behaviour())],
        capacity: args.capacity,
        ..Settings::default()
    };
    settings.times.talk = args.talk;
    if args.load {
        settings.timings = true;
        settings.times = settings.times.at_once();
        let at_once = Behaviour::Joins {
            after: Duration::ZERO,
        };
        settings.workers = vec![Worker::new("caller", at_once)];
    }
    let socket = sandbox::Socket { listener, tls };
    let tasks = Tasks::default();
    sandbox::serve(socket, settings, args.webhook, &tasks, stopped()).await?;
    tasks.abort_all();
    tasks.idle(END).await;
    Ok(ExitCode::SUCCESS)
}

/// A URL to which the sandbox can send. What has no scheme would be found to be none at the first
/// webhook only, and `localhost:7082/x` would be one with the scheme `localhost`.
fn receiver(text: &str) -> Result<String, &'static str> {
    let url = reqwest::Url::parse(text).ok();
    if url.is_some_and(|url| url.scheme() == "http") {
        Ok(text.to_owned())
    } else {
        Err(
            "write it with its scheme, as http://127.0.0.1:7082/webhooks/livekit; the sandbox sends \
             webhooks by http alone",
        )
    }
}

fn tls(certificate: &Path, key: &Path) -> anyhow::Result<rustls::ServerConfig> {
    let unreadable = |path: &Path| format!("failed to read {}", path.display());
    let certificates = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .with_context(|| unreadable(certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| unreadable(key))?;
    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, private)
        })
        .context("failed to set up TLS with this certificate and key")
}

fn listed() -> String {
    let mut text = String::from(
        "The last two digits of +1 202 555 01NN choose what happens; for more numbers than those,\n\
         also of +999 xxxxxxxx NN, where numbers.test_prefixes of the service has +999.\n\
         Digits that are not listed answer as 00 does; any other number is unknown (404).\n\n",
    );
    for callee in callees() {
        writeln!(text, "{:02}  {}", callee.digits, callee.sentence)
            .expect("a String can be written to");
    }
    text.push_str(
        "\nFaults, thrown by POST /sandbox/faults as {\"name\", \"times\", \"to\", …}:\n\n",
    );
    for (name, sentence) in faults() {
        writeln!(text, "{name:15}  {sentence}").expect("a String can be written to");
    }
    text
}

/// SIGINT or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        // Without a handler SIGTERM ends the process by itself.
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = term.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_of_webhooks_has_the_scheme_http() {
        assert!(receiver("http://127.0.0.1:7082/webhooks/livekit").is_ok());
        for text in [
            "127.0.0.1:7092/x",
            "localhost:7092/x",
            "/x",
            "http://",
            "https://h/x",
            "",
        ] {
            assert!(receiver(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_callee_is_listed_with_its_digits() {
        let text = listed();
        for callee in callees() {
            assert!(text.contains(&format!("\n{:02}  {}\n", callee.digits, callee.sentence)));
        }
    }
}
