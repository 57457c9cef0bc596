//! What looks found that a webhook should have told: counted by kind, and said loudly where
//! webhooks seem to be off altogether.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What a webhook should have told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// A callee's leg joined (`participant_joined`).
    Joined,
    /// A callee's leg left (`participant_left`).
    Left,
    /// An agent left.
    AgentLeft,
    /// A room was finished (`room_finished`).
    RoomFinished,
    /// A room was made anew by a late join, or is not known to the ledger (`room_started`).
    RoomStarted,
}

impl Gap {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Joined,
        Self::Left,
        Self::AgentLeft,
        Self::RoomFinished,
        Self::RoomStarted,
    ];

    /// Its name in the log and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Left => "left",
            Self::AgentLeft => "agent_left",
            Self::RoomFinished => "room_finished",
            Self::RoomStarted => "room_started",
        }
    }
}

/// So many gaps without a webhook in between are no chance: webhooks are off.
const SILENT_GAPS: u32 = 3;

/// A process that has never heard a webhook needs no longer silence than this: what looks find
/// just after a start was told to the process before it, and after that nothing has come yet.
const NEVER_HEARD: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
struct Counts {
    found: BTreeMap<Gap, u64>,
    /// When a webhook last told anything.
    told: Option<Instant>,
    /// How many gaps were found since.
    since_told: u32,
    /// When it was last said that webhooks seem to be off.
    said: Option<Instant>,
}

/// The gaps that this process found.
#[derive(Debug)]
pub struct Gaps {
    counts: Mutex<Counts>,
    /// How long nothing must have been told.
    silence: Duration,
    /// When it began to count.
    since: Instant,
}

impl Gaps {
    /// None yet; `silence` is how long webhooks may tell nothing while gaps are found.
    #[must_use]
    pub fn new(silence: Duration) -> Self {
        Self {
            counts: Mutex::default(),
            silence,
            since: Instant::now(),
        }
    }

    /// A webhook told something.
    pub fn told(&self) {
        let mut counts = self.lock();
        counts.told = Some(Instant::now());
        counts.since_told = 0;
        // It is over; what looks find next is another silence only once that is long enough.
        counts.said = None;
    }

    /// Looks found something that no webhook had told.
    pub fn found(&self, gap: Gap) {
        let now = Instant::now();
        let (off, told) = {
            let mut counts = self.lock();
            *counts.found.entry(gap).or_default() += 1;
            counts.since_told = counts.since_told.saturating_add(1);
            let (heard, enough) = match counts.told {
                Some(told) => (told, self.silence),
                None => (self.since, self.silence.min(NEVER_HEARD)),
            };
            let quiet = now.saturating_duration_since(heard) >= enough;
            let said = counts
                .said
                .is_some_and(|said| now.saturating_duration_since(said) < self.silence);
            let off = quiet && !said && counts.since_told >= SILENT_GAPS;
            if off {
                counts.said = Some(now);
            }
            (off, counts.told)
        };
        tracing::info!(
            event = "webhook.gap",
            kind = gap.name(),
            "looking found what no webhook told"
        );
        if off {
            tracing::error!(
                event = "webhook.silence",
                silent_for_s = now
                    .saturating_duration_since(told.unwrap_or(self.since))
                    .as_secs(),
                told_before = told.is_some(),
                "LiveKit's webhooks do not arrive: calls are settled by looking alone, which is \
                 slower and knows less. Check that webhook.urls of LiveKit names this listener's \
                 /webhooks/livekit and can reach it; that webhook.api_key is one whose secret is \
                 configured here (a wrong one is answered 401); that both clocks agree; and that \
                 answers take less than LiveKit's 30 s, after which it drops what is queued"
            );
        }
    }

    /// How many of each kind there were.
    #[must_use]
    pub fn counted(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.lock();
        Gap::ALL
            .into_iter()
            .map(|gap| (gap.name(), counts.found.get(&gap).copied().unwrap_or(0)))
            .collect()
    }

    /// Whether webhooks seem to be off.
    #[must_use]
    pub fn silent(&self) -> bool {
        let counts = self.lock();
        counts.said.is_some() && counts.since_told >= SILENT_GAPS
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn webhooks_seem_off_after_some_gaps_in_silence_and_on_again_when_one_comes() {
        let minute = Duration::from_mins(1);
        let gaps = Gaps::new(minute);
        for _ in 0..5 {
            gaps.found(Gap::AgentLeft);
        }
        assert!(!gaps.silent(), "it has listened for a moment only");
        tokio::time::sleep(minute).await;
        gaps.found(Gap::AgentLeft);
        assert!(gaps.silent(), "and never heard one");
        gaps.told();
        for _ in 0..5 {
            gaps.found(Gap::Left);
        }
        assert!(!gaps.silent(), "one was told a moment ago");
        tokio::time::sleep(minute).await;
        gaps.found(Gap::Joined);
        assert!(gaps.silent());
        gaps.told();
        assert!(!gaps.silent());
        assert_eq!(gaps.counted().get("left"), Some(&5));
        assert_eq!(gaps.counted().get("joined"), Some(&1));
    }
}
