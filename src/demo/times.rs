//! All times of the demo, and what they usually are.

use std::time::Duration;

use crate::config::{Config, Faults};

/// The server's configuration; also a file to look at.
pub(super) const CONFIG: &str = include_str!("../../config/example/demo.toml");

/// After so long without an acknowledgement the queue delivers again: 30 s is the visibility
/// timeout of the usual queue.
pub(super) const VISIBILITY: Duration = Duration::from_millis(2_500);
/// After a failure the queue delivers again so soon, then twice as late each time.
pub(super) const REDELIVERY: Duration = Duration::from_millis(500);
/// So often a message is delivered at most; then it is put aside.
pub(super) const DELIVERIES: u32 = 4;
/// The expiry of a naive worker's lock, 25 s: less than the queue's timeout, so that the message
/// of a worker that crashed is not stuck.
pub(super) const LOCK: Duration = Duration::from_secs(2);
/// The pace of the campaign: below the platform's capacity.
pub(super) const PACE: Duration = Duration::from_millis(150);
/// How long a person talks who answers.
pub(super) const TALK: Duration = Duration::from_secs(2);
/// No scene takes longer to come about; beyond it the demo says that it could not be played.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The server's times, as it reads them.
pub(super) fn config() -> Result<Config, Faults> {
    Config::from_toml(CONFIG)
}

/// From a dial's marker until the platform can no longer start the call.
pub(super) fn horizon(config: &Config) -> Duration {
    let dial = &config.dial;
    dial.send_by
        + config.livekit.token_leeway
        + dial.ringing_timeout
        + dial.server_slack
        + dial.no_answer_slack
}

/// What is shortened, in a sentence.
pub(super) fn told(config: &Config) -> String {
    let show = |span: Duration| humantime::format_duration(span).to_string();
    format!(
        "Times are shortened: a phone rings for {} (usually 45s), the queue delivers again after \
         {} (30s), an unanswered dial is over {} after it was sent (145s), a lock expires after \
         {} (25s).",
        show(config.dial.ringing_timeout),
        show(VISIBILITY),
        show(horizon(config)),
        show(LOCK),
    )
}
