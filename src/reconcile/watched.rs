//! One attempt that is watched, and how well.

use std::time::Duration;

use tokio::time::Instant;

use super::sight::{Callee, Sight};
use super::watch::Pace;
use crate::model::attempt::{Attempt, Placed, State};
use crate::model::id::{AttemptId, RoomName, SessionId, Workspace};
use crate::model::time::Time;
use crate::model::verdict::Unclear;

/// An attempt that is looked at.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pub workspace: Workspace,
    pub attempt: AttemptId,
    pub session: SessionId,
    pub room: RoomName,
    /// The state in which it was last committed or read.
    pub state: State,
    /// Whether a stop is recorded.
    pub stops: bool,
    /// When this process saw its attempt marker committed; `None` if another one wrote it.
    marker: Option<Instant>,
    /// How long after the marker, or after the unclear answer, the platform can start the call.
    horizon: Duration,
    /// The horizon as it is stored, by the wall clock.
    stored: Option<Time>,
    /// The horizon on our clock, where its beginning was seen here; else it counts from the
    /// first look.
    ends: Option<Instant>,
    /// When the first look was sent that was answered, by both clocks.
    first: Option<(Instant, Time)>,
    /// When the first answer was there.
    first_answer: Option<Instant>,
    /// When the last look was sent that was answered.
    last: Option<Instant>,
    /// The widest stretch that no look covers.
    gap: Duration,
    looks: u32,
    /// How many of them came after the horizon and decided nothing.
    late: u32,
    /// Whether a look ever showed the callee's leg.
    seen: bool,
    /// Since when the callee, and since when its agent, is missing without a break.
    callee_missing: Option<Instant>,
    agent_missing: Option<Instant>,
    /// Since when no node answers for the room, as often as it was asked.
    node_silent: Option<Instant>,
    /// What was last shown, so that only news are written.
    pub shown: Option<Sight>,
    /// When it is looked at next.
    pub due: Instant,
}

/// How well an attempt has been watched, at one moment: the facts that a decision may use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "separate facts, each asked for by itself"
)]
pub(super) struct Watched {
    /// Whether the platform can no longer start the call, on our own clock, and it was
    /// looked at since its first look for as long.
    pub past_horizon: bool,
    /// Whether an earlier process wrote the marker, and by the wall clock it is twice as long
    /// ago as the platform could start the call. One that is started every few seconds never
    /// looks for a whole horizon by itself, and nobody would ever be told. A wall clock that is
    /// wrong can bring a person's decision forward, and frees nobody.
    pub long_past: bool,
    /// Whether it is past its horizon for longer than a person should wait to be told.
    pub overdue: bool,
    /// Whether the first look came right after the marker, which this process wrote.
    pub early: bool,
    /// Whether no two looks were so far apart that a call fits in between.
    pub gapless: bool,
    /// Whether any look showed the callee's leg.
    pub seen: bool,
    /// How many looks were answered, since when, and the widest gap between them.
    pub looks: u32,
    pub since: Option<Time>,
    pub gap: Duration,
    /// How long the callee and the agent have been missing without a break.
    pub callee_missing: Option<Duration>,
    pub agent_missing: Option<Duration>,
    /// How long no node has answered for the room.
    pub node_silent: Option<Duration>,
}

impl Watched {
    /// Whether looks covered it from the marker on, without a gap that a call fits into.
    pub(super) const fn complete(&self) -> bool {
        self.early && self.gapless
    }

    /// In words, for the proof.
    pub(super) fn describe(&self) -> String {
        match self.since {
            Some(since) => format!(
                "looked {} times since {since} with gaps of at most {} ms{}",
                self.looks,
                self.gap.as_millis(),
                if self.early { ", from the dial on" } else { "" }
            ),
            None => "no look was answered".to_owned(),
        }
    }
}

impl Watch {
    pub(super) fn of(attempt: &Attempt, placed: &Placed, marker: Option<Instant>) -> Self {
        let horizon = horizon_of(attempt, placed);
        Self {
            workspace: attempt.workspace.clone(),
            attempt: attempt.id.clone(),
            session: placed.session,
            room: placed.room.clone(),
            state: attempt.state,
            stops: attempt.stop.is_some(),
            marker,
            horizon,
            stored: placed.horizon(),
            ends: marker.map(|at| at + horizon),
            first: None,
            first_answer: None,
            last: None,
            gap: Duration::ZERO,
            looks: 0,
            late: 0,
            seen: false,
            callee_missing: None,
            agent_missing: None,
            node_silent: None,
            shown: None,
            due: Instant::now(),
        }
    }

    /// Whose dial this very process still waits for is not looked at here: placement does.
    pub(super) fn is_looked_at(&self) -> bool {
        self.state != State::Dialing || self.marker.is_none()
    }

    /// The second send of a heal writes a marker of its own.
    pub(super) fn marked(&mut self, placed: &Placed) {
        if self.marker.is_some()
            && let Some(marker) = &placed.marker
        {
            let horizon = marker.horizon.since(marker.at);
            if horizon != self.horizon {
                let now = Instant::now();
                self.marker = Some(now);
                self.horizon = horizon;
                self.ends = Some(now + horizon);
            }
        }
    }

    /// It was dialed when it was last heard of, and is read as something later.
    pub(super) fn passed_on(&mut self, attempt: &Attempt, placed: &Placed) {
        *self = Self::of(attempt, placed, self.marker);
        if attempt.state == State::Uncertain {
            self.lost_sight(attempt, placed);
        }
    }

    /// What became of its dial is not known from now on; an unclear answer has a horizon of
    /// its own, which begins with the answer.
    pub(super) fn lost_sight(&mut self, attempt: &Attempt, placed: &Placed) {
        self.state = State::Uncertain;
        self.stops = attempt.stop.is_some();
        self.due = Instant::now();
        self.horizon = horizon_of(attempt, placed);
        self.stored = placed.horizon();
        if begins_with_answer(placed) {
            self.ends = Some(Instant::now() + self.horizon);
        }
    }

    /// A look that was sent at `sent` is answered now: how well it is watched, and whether the
    /// look showed anything new.
    pub(super) fn looked(
        &mut self,
        sent: Instant,
        wall: Time,
        sight: &Sight,
        pace: &Pace,
    ) -> (Watched, bool) {
        let now = Instant::now();
        self.first.get_or_insert((sent, wall));
        self.first_answer.get_or_insert(now);
        // From the sending of the last look to the answer of this one: what it showed is from
        // somewhere in between.
        if let Some(last) = self.last {
            self.gap = self.gap.max(now.saturating_duration_since(last));
        }
        self.last = Some(sent);
        self.looks = self.looks.saturating_add(1);
        let present = matches!(sight.callee, Callee::Present { .. });
        self.seen |= present;
        self.callee_missing = (!present).then(|| self.callee_missing.unwrap_or(now));
        self.agent_missing = match sight.agent {
            Some(true) | None => None,
            Some(false) => Some(self.agent_missing.unwrap_or(now)),
        };
        let shown = self.shown.as_ref();
        let news = shown.is_none_or(|shown| !shown.shows_same(sight));
        let mut watched = self.summary(now, pace);
        watched.long_past = self.marker.is_none()
            && (self.stored).is_some_and(|horizon| wall >= horizon.plus(self.horizon));
        self.late = if watched.past_horizon {
            self.late.saturating_add(1)
        } else {
            0
        };
        self.due = now + self.pause(pace);
        (watched, news)
    }

    /// Whether a node answered for the room just now; how long none has.
    pub(super) fn node_answered(&mut self, answered: bool) -> Option<Duration> {
        let now = Instant::now();
        self.node_silent = (!answered).then(|| self.node_silent.unwrap_or(now));
        self.node_silent
            .map(|since| now.saturating_duration_since(since))
    }

    /// Nobody answered: it proves nothing, and the next look comes in its turn.
    pub(super) fn unanswered(&mut self, pace: &Pace) -> Watched {
        let now = Instant::now();
        self.due = now + self.pause(pace);
        self.summary(now, pace)
    }

    fn pause(&self, pace: &Pace) -> Duration {
        let doubled = pace
            .interval
            .saturating_mul(2_u32.saturating_pow(self.late.min(16)));
        if self.late == 0 {
            pace.interval
        } else {
            doubled.min(pace.slow.max(pace.interval))
        }
    }

    fn summary(&self, now: Instant, pace: &Pace) -> Watched {
        // Where its beginning was not seen here, one horizon of our own looking must pass.
        let ends = self
            .ends
            .or_else(|| self.first.map(|(first, _)| first + self.horizon));
        // A review was asked for after the horizon.
        let past_horizon = self.first.is_some()
            && (self.state == State::NeedsReview || ends.is_some_and(|ends| now >= ends));
        let ends = ends.unwrap_or(now);
        let early = self
            .marker
            .zip(self.first_answer)
            .is_some_and(|(marker, first)| first.saturating_duration_since(marker) <= pace.gap_max);
        Watched {
            past_horizon,
            long_past: false,
            overdue: now >= ends + pace.overdue,
            early,
            gapless: self.gap <= pace.gap_max,
            seen: self.seen,
            looks: self.looks,
            since: self.first.map(|(_, wall)| wall),
            gap: self.gap,
            callee_missing: self
                .callee_missing
                .map(|since| now.saturating_duration_since(since)),
            agent_missing: self
                .agent_missing
                .map(|since| now.saturating_duration_since(since)),
            node_silent: self
                .node_silent
                .map(|since| now.saturating_duration_since(since)),
        }
    }
}

/// Whether the horizon counts from the unclear answer, and not from the marker.
const fn begins_with_answer(placed: &Placed) -> bool {
    match placed.unclear {
        Some(
            Unclear::DeadlineExceeded | Unclear::Twirp(_) | Unclear::TornDown | Unclear::NoIds,
        ) => true,
        Some(Unclear::NoAnswer | Unclear::Abandoned | Unclear::Strange(_)) | None => false,
    }
}

/// How long it takes from its beginning. Both ends were computed at one moment, so that a
/// step of the wall clock is not in it.
fn horizon_of(attempt: &Attempt, placed: &Placed) -> Duration {
    match (&placed.horizon, &placed.marker) {
        (Some(horizon), _) if begins_with_answer(placed) && attempt.state == State::Uncertain => {
            horizon.since(attempt.since)
        }
        (_, Some(marker)) => marker.horizon.since(marker.at),
        // A call of a history that was lost: its horizon counts from when it was told of.
        (Some(horizon), None) => horizon.since(placed.reserved_at),
        (None, None) => Duration::ZERO,
    }
}
