//! Requests for an attempt that is known: one event each in the log, counted by how far the
//! dial had come, and a report for each campaign whose queue is faster than its phones.
//!
//! A queue that delivers again before the phone has stopped ringing is configured wrongly: it
//! harms nobody here, and it would ring twice anywhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::attempt::{Attempt, Passage};
use crate::model::id::{AttemptId, CampaignId, Workspace};
use crate::model::time::Time;

/// Campaigns that are told apart: enough for an operator to look at, and a bound for whoever
/// makes a campaign of each call. Those beyond it are counted together.
pub const CAMPAIGNS_MAX: usize = 100;

/// Attempts whose last delivery is remembered. Beyond it a redelivery is measured from the
/// attempt's creation, which only misses some.
const REMEMBERED_MAX: usize = 10_000;

/// A campaign is named again in the log after this long, however often it redelivers.
const SAY_AGAIN: Duration = Duration::from_mins(10);

/// A campaign of a workspace; `None` is what has no campaign.
type Campaign = (Workspace, Option<CampaignId>);

/// A campaign whose queue delivers again while the phone may still ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// The tenant.
    pub workspace: Workspace,
    /// The campaign, if the calls have one.
    pub campaign: Option<CampaignId>,
    /// How many redeliveries came sooner than the ring may last.
    pub count: u64,
    /// The shortest spacing.
    pub least: Duration,
    /// How long the phone may ring: what the spacing must exceed.
    pub ring: Duration,
}

/// What was counted of redeliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redelivered {
    /// How many met an attempt that stood so.
    pub by_passage: BTreeMap<&'static str, u64>,
    /// The campaigns that redeliver too soon.
    pub short: Vec<Short>,
    /// Redeliveries that came too soon, of campaigns beyond [`CAMPAIGNS_MAX`].
    pub short_others: u64,
}

#[derive(Debug, Default)]
struct Memory {
    /// When an attempt that may be ringing was last asked for again.
    last: BTreeMap<(Workspace, AttemptId), Time>,
    /// The same by time, so that the oldest is found.
    by_time: BTreeSet<(Time, Workspace, AttemptId)>,
    short: BTreeMap<Campaign, (Short, Option<Instant>)>,
    short_others: u64,
}

/// The counters. They start at zero with the process.
#[derive(Debug, Default)]
pub struct Redeliveries {
    counts: [AtomicU64; Passage::ALL.len()],
    memory: Mutex<Memory>,
}

impl Redeliveries {
    /// `attempt`, which is known, was asked for again at `now`.
    pub fn heard(&self, attempt: &Attempt, now: Time) {
        let passage = attempt.passage(now);
        if let Some(count) = self.counts.get(passage as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let campaign = attempt.spec.campaign.as_ref();
        tracing::info!(
            event = "attempt.redelivered",
            workspace = %attempt.workspace,
            attempt = %attempt.id,
            campaign = campaign.map(CampaignId::as_str).unwrap_or_default(),
            state = attempt.state.name(),
            passage = passage.name(),
            "a known attempt was asked for again; {}",
            // One that waits, or was refused for lost history that is adopted now, may yet be
            // dialed for the first time.
            if attempt.may_have_dialed() {
                "nothing is dialed for it a second time"
            } else {
                "nothing of it had been dialed"
            }
        );
        if passage == Passage::InFlight {
            self.spaced(attempt, now);
        }
    }

    /// How many met an attempt that stood so.
    #[must_use]
    pub fn of(&self, passage: Passage) -> u64 {
        let count = self.counts.get(passage as usize);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Everything that was counted.
    #[must_use]
    pub fn counted(&self) -> Redelivered {
        let by_passage = Passage::ALL.map(|passage| (passage.name(), self.of(passage)));
        let memory = self.lock();
        Redelivered {
            by_passage: by_passage.into(),
            short: memory
                .short
                .values()
                .map(|(short, _)| short.clone())
                .collect(),
            short_others: memory.short_others,
        }
    }

    /// The phone may be ringing: is the time since the delivery before shorter than the ring?
    fn spaced(&self, attempt: &Attempt, now: Time) {
        let ring = Duration::from_millis(attempt.spec.ringing_ms);
        let mut memory = self.lock();
        let before = memory.remember(attempt, now).unwrap_or(attempt.create_time);
        let spacing = now.since(before);
        if spacing >= ring {
            return;
        }
        if let Some(short) = memory.too_soon(attempt, spacing, ring) {
            drop(memory);
            say(&short);
        }
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Remembers that it was delivered now; when it was before, if that is known.
    fn remember(&mut self, attempt: &Attempt, now: Time) -> Option<Time> {
        let (ws, id) = (attempt.workspace.clone(), attempt.id.clone());
        let before = self.last.insert((ws.clone(), id.clone()), now);
        if let Some(before) = before {
            self.by_time.remove(&(before, ws.clone(), id.clone()));
        }
        self.by_time.insert((now, ws, id));
        if self.last.len() > REMEMBERED_MAX
            && let Some((_, ws, id)) = self.by_time.pop_first()
        {
            self.last.remove(&(ws, id));
        }
        before
    }

    /// Counts one that came too soon; what is to be said of its campaign, if it was not said
    /// a moment ago.
    fn too_soon(&mut self, attempt: &Attempt, spacing: Duration, ring: Duration) -> Option<Short> {
        let campaign = (attempt.workspace.clone(), attempt.spec.campaign.clone());
        if !self.short.contains_key(&campaign) && self.short.len() >= CAMPAIGNS_MAX {
            self.short_others = self.short_others.saturating_add(1);
            return None;
        }
        let (workspace, name) = campaign.clone();
        let first = || Short {
            workspace,
            campaign: name,
            count: 0,
            least: spacing,
            ring,
        };
        let (short, said) = self
            .short
            .entry(campaign)
            .or_insert_with(|| (first(), None));
        short.count = short.count.saturating_add(1);
        if spacing < short.least {
            (short.least, short.ring) = (spacing, ring);
        }
        let now = Instant::now();
        let quiet = said.is_some_and(|said| now.saturating_duration_since(said) < SAY_AGAIN);
        if quiet {
            return None;
        }
        *said = Some(now);
        Some(short.clone())
    }
}

fn say(short: &Short) {
    tracing::warn!(
        event = "redelivery.short",
        workspace = %short.workspace,
        campaign = short.campaign.as_ref().map(CampaignId::as_str).unwrap_or_default(),
        count = short.count,
        spacing_s = short.least.as_secs_f64(),
        ring_s = short.ring.as_secs_f64(),
        "a queue delivers again while the phone may still be ringing. Make its acknowledgement \
         deadline (visibility timeout) longer than the ring and the wait for the answer, or \
         acknowledge as soon as `next` is ACK, which with wait = ACCEPTED is at once"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attempt::{Keyed, Placed, Spec, State};
    use crate::model::id::{Nonce, Partition, SessionId};
    use crate::model::window::Marker;

    const BEGUN: Time = Time::from_secs(10_000);

    fn at(secs: u64) -> Time {
        BEGUN.plus(Duration::from_secs(secs))
    }

    /// It rings for 45 s from the begin on, in a window of 80 s.
    fn ringing(id: &str, campaign: &str) -> Attempt {
        let mut spec = Spec::sample(BEGUN);
        spec.campaign = Some(campaign.parse().unwrap());
        let (ws, id) = ("w".parse().unwrap(), id.parse().unwrap());
        let session = SessionId::of(&"d-1".parse().unwrap(), &ws, &id, 1);
        let (nil, keyed) = (uuid::Uuid::nil(), Keyed::default());
        let mut attempt = Attempt::new(ws, id, spec, keyed, nil, BEGUN);
        let room = session.room(Partition(0));
        let mut placed = Placed::reserved(session, room, Nonce(nil), BEGUN, BEGUN);
        placed.marker = Some(Marker {
            at: BEGUN,
            send_by: at(5),
            window_end: at(80),
            horizon: at(145),
            server_deadline_ms: 65_000,
        });
        (attempt.state, attempt.placed) = (State::Dialing, Some(placed));
        attempt
    }

    #[tokio::test(start_paused = true)]
    async fn a_spacing_is_measured_from_the_delivery_before() {
        let heard = Redeliveries::default();
        let attempt = ringing("a", "c");
        heard.heard(&attempt, at(50));
        assert_eq!(
            heard.counted().short,
            [],
            "45 s have passed since the first"
        );
        heard.heard(&attempt, at(60));
        heard.heard(&attempt, at(75));
        let short = heard.counted().short;
        let one = short.first().unwrap();
        assert_eq!((one.count, one.least), (2, Duration::from_secs(10)));
        assert_eq!(one.ring, Duration::from_secs(45));
        heard.heard(&attempt, at(81));
        assert_eq!(heard.counted().short, short, "it does not ring any more");
        assert_eq!(heard.of(Passage::InFlight), 3);
        assert_eq!(heard.of(Passage::Unclear), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_placed_and_what_is_in_flight_are_counted_apart() {
        let heard = Redeliveries::default();
        let mut attempt = ringing("a", "c");
        heard.heard(&attempt, at(1));
        attempt.state = State::Answered;
        heard.heard(&attempt, at(2));
        heard.heard(&attempt, at(3));
        attempt.state = State::Reserved;
        heard.heard(&attempt, at(4));
        let counted = heard.counted().by_passage;
        let wanted = [
            ("in_flight", 1),
            ("open", 1),
            ("over", 0),
            ("placed", 2),
            ("unclear", 0),
        ];
        assert_eq!(counted, wanted.into());
    }

    #[tokio::test(start_paused = true)]
    async fn campaigns_are_bounded_and_each_is_said_once_in_a_while() {
        let mut memory = Memory::default();
        let (spacing, ring) = (Duration::from_secs(9), Duration::from_secs(45));
        for n in 0..CAMPAIGNS_MAX + 5 {
            let attempt = ringing("a", &format!("c{n}"));
            let said = memory.too_soon(&attempt, spacing, ring);
            assert_eq!(said.is_some(), n < CAMPAIGNS_MAX);
            assert!(memory.too_soon(&attempt, spacing, ring).is_none());
        }
        assert_eq!(memory.short.len(), CAMPAIGNS_MAX);
        assert_eq!(memory.short_others, 10);
        tokio::time::sleep(SAY_AGAIN).await;
        let said = memory.too_soon(&ringing("a", "c0"), spacing, ring);
        assert_eq!(said.map(|short| short.count), Some(3));
    }

    #[test]
    fn the_deliveries_remembered_are_bounded() {
        let mut memory = Memory::default();
        let mut attempt = ringing("a", "c");
        for n in 0..=REMEMBERED_MAX {
            attempt.id = format!("a{n}").parse().unwrap();
            let moment = BEGUN.plus(Duration::from_millis(n as u64));
            assert_eq!(memory.remember(&attempt, moment), None);
        }
        assert_eq!(memory.last.len(), REMEMBERED_MAX);
        assert_eq!(memory.by_time.len(), REMEMBERED_MAX);
        assert!(memory.remember(&attempt, BEGUN).is_some());
    }
}
