//! Logs: one JSON object a line on stderr, or text.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

use crate::config::{Format, Log};

/// Installs the log of this process.
///
/// # Errors
///
/// If the level is none, or a log is installed already.
pub fn install(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level)?;
    let base = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_timer(SystemTime);
    match log.format {
        Format::Json => base
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
        Format::Text => base.with_ansi(false).try_init(),
    }
    .map_err(|error| anyhow::anyhow!("the log cannot be installed: {error}"))
}
