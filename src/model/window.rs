//! Window, horizon and deadlines: computed once, when the marker is written, from that
//! attempt's own ringing timeout, and stored with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::Time;
use super::verdict::Unclear;

/// The slacks from which the times of a dial are computed. All are configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slacks {
    /// How long after the token's minting the dial may be sent.
    pub send_by: Duration,
    /// What the platform's deadline has beyond ring and digits.
    pub server: Duration,
    /// What our own timeout has beyond the platform's deadline.
    pub client: Duration,
    /// The longest time that a queue takes to acknowledge a message.
    pub acknowledgement: Duration,
    /// What the window has beyond our own timeout.
    pub window: Duration,
    /// How long after its expiry the platform still accepts a token.
    pub token_leeway: Duration,
    /// What the horizon has beyond the last moment at which the platform may answer.
    pub no_answer: Duration,
    /// How long after the answer `deadline_exceeded` a call may still start.
    pub deadline_exceeded: Duration,
    /// How long after any other unclear answer and the platform's deadline.
    pub unclear: Duration,
}

/// The spans of one dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    /// How long the phone may ring.
    pub ringing: Duration,
    /// The deadline that the platform is given: ring, digits and slack.
    pub server_deadline: Duration,
    /// How long we wait for its answer.
    pub client_timeout: Duration,
    /// How long after the marker a second entry is *in flight*.
    pub window: Duration,
}

impl Spans {
    /// The spans of a dial that rings for `ringing` and sends `digits` after the answer.
    #[must_use]
    pub fn new(ringing: Duration, digits: &str, slacks: &Slacks) -> Self {
        let server_deadline = ringing
            .saturating_add(digits_time(digits))
            .saturating_add(slacks.server);
        let client_timeout = server_deadline.saturating_add(slacks.client);
        let window = ringing
            .saturating_add(slacks.acknowledgement)
            .max(client_timeout.saturating_add(slacks.window));
        Self {
            ringing,
            server_deadline,
            client_timeout,
            window,
        }
    }
}

/// How long the platform takes to send digits after the answer, before it reports it:
/// `w` is half a second, a tone about a quarter.
fn digits_time(digits: &str) -> Duration {
    let millis = digits
        .chars()
        .map(|c| if c == 'w' { 500 } else { 250 })
        .sum();
    Duration::from_millis(millis)
}

/// The attempt marker: written by the dial path alone, immediately before the dial. It
/// says "may have been sent".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// When it was written.
    pub at: Time,
    /// The expiry of the dial's only token: not sent after it.
    pub send_by: Time,
    /// Until then a second entry is in flight.
    pub window_end: Time,
    /// When the platform can no longer start the call, if no answer comes.
    pub horizon: Time,
    /// The deadline that the platform was given, in milliseconds; moves the horizon when
    /// an unclear answer comes.
    pub server_deadline_ms: u64,
}

impl Marker {
    /// The marker of a dial that is about to be sent at `at`, with a token minted at
    /// `minted`.
    #[must_use]
    pub fn new(at: Time, minted: Time, spans: &Spans, slacks: &Slacks) -> Self {
        let send_by = minted.plus(slacks.send_by);
        let horizon = send_by
            .plus(slacks.token_leeway)
            .plus(spans.server_deadline)
            .plus(slacks.no_answer);
        Self {
            at,
            send_by,
            window_end: at.plus(spans.window),
            horizon,
            server_deadline_ms: u64::try_from(spans.server_deadline.as_millis())
                .unwrap_or(u64::MAX),
        }
    }

    /// When the platform can no longer start the call, given how its answer was unclear
    /// and when that was known. An answer never moves the horizon beyond that of none.
    #[must_use]
    pub fn horizon_after(&self, unclear: Unclear, at: Time, slacks: &Slacks) -> Time {
        let deadline = Duration::from_millis(self.server_deadline_ms);
        match unclear {
            Unclear::NoAnswer | Unclear::Abandoned | Unclear::Strange(_) => self.horizon,
            Unclear::DeadlineExceeded => at.plus(slacks.deadline_exceeded),
            Unclear::Twirp(_) | Unclear::TornDown | Unclear::NoIds => {
                at.plus(deadline).plus(slacks.unclear)
            }
        }
    }
}

#[cfg(test)]
impl Slacks {
    /// For tests: those of the default configuration.
    pub(crate) fn sample() -> Self {
        let s = Duration::from_secs;
        Self {
            send_by: s(5),
            server: s(20),
            client: s(10),
            acknowledgement: s(30),
            window: s(5),
            token_leeway: s(60),
            no_answer: s(15),
            deadline_exceeded: s(20),
            unclear: s(20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_give_the_documented_times() {
        let spans = Spans::new(Duration::from_secs(45), "", &Slacks::sample());
        assert_eq!(spans.server_deadline, Duration::from_secs(65));
        assert_eq!(spans.client_timeout, Duration::from_secs(75));
        assert_eq!(spans.window, Duration::from_secs(80));
        let at = Time::from_secs(1000);
        let marker = Marker::new(at, at, &spans, &Slacks::sample());
        assert_eq!(marker.send_by, Time::from_secs(1005));
        assert_eq!(marker.window_end, Time::from_secs(1080));
        assert_eq!(marker.horizon, Time::from_secs(1145));
        let answered = Time::from_secs(1065);
        assert_eq!(
            marker.horizon_after(Unclear::DeadlineExceeded, answered, &Slacks::sample()),
            Time::from_secs(1085)
        );
        assert_eq!(
            marker.horizon_after(
                Unclear::Twirp(500),
                Time::from_secs(1001),
                &Slacks::sample()
            ),
            Time::from_secs(1086)
        );
        assert_eq!(
            marker.horizon_after(Unclear::Abandoned, answered, &Slacks::sample()),
            marker.horizon
        );
    }

    #[test]
    fn digits_lengthen_the_deadline() {
        let spans = Spans::new(Duration::from_secs(45), "ww12#", &Slacks::sample());
        assert_eq!(
            spans.server_deadline,
            Duration::from_millis(45_000 + 1_750 + 20_000)
        );
    }
}
