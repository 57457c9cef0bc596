//! What was counted, as an operator sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::enums;
use super::fields::timestamp;
use crate::api::core::{Status, Tally, Told};
use crate::api::proto;
use crate::model::attempt::{Attempt, Passage, Placed, State};
use crate::model::time::Time;
use crate::node::health::{Health, Skew, Trouble};
use crate::node::histogram::{BOUNDS_MS, Spans};
use crate::node::redeliveries::{Redelivered, Short};

/// What was counted up to `now`, and what is open if the store told it.
pub(crate) fn status(status: &Status, open: Option<&[Tally]>, now: Time) -> proto::ServiceStatus {
    proto::ServiceStatus {
        start_time: Some(timestamp(status.since)),
        status_time: Some(timestamp(now)),
        redeliveries: Some(redeliveries(&status.redelivered)),
        time_to_placement: Some(spans(&status.between_markers)),
        webhooks: Some(webhooks(&status.told)),
        platform: Some(platform(&status.platform)),
        open_attempts: open.map(open_attempts),
        store_refusal: status.store_refuses.clone().unwrap_or_default(),
    }
}

fn platform(health: &Health) -> proto::PlatformStatus {
    use proto::platform_status::Reach;
    let trouble = health.failed.map(|failed| failed.why);
    let wrong = health.wrong();
    let apart = health.clock.filter(Skew::is_too_far);
    let reach = match wrong {
        Some(Trouble::KeyRefused) | None if apart.is_some() => Reach::ClocksDiffer,
        Some(Trouble::NoConnection | Trouble::Timeout | Trouble::Broken) => Reach::Unreachable,
        Some(Trouble::KeyRefused) => Reach::KeyRefused,
        Some(Trouble::Failed(_)) => Reach::Failing,
        Some(Trouble::NotLiveKit(_)) => Reach::NotLivekit,
        None if health.answered.is_some() => Reach::Accepted,
        None => Reach::Unspecified,
    };
    proto::PlatformStatus {
        reach: reach.into(),
        explanation: explanation(wrong, apart.as_ref()),
        answer_time: health.answered.map(timestamp),
        answer_count: count(health.answers),
        failing_since_time: health.failing_since.map(timestamp),
        failure_time: health.failed.map(|failed| timestamp(failed.at)),
        failure: trouble.map_or("", Trouble::name).to_owned(),
        failure_status: trouble.and_then(Trouble::status).map_or(0, i32::from),
        failure_count: count(health.failures),
        clock_offset: health.clock.map(|skew| clock_offset(&skew)),
    }
}

/// What is wrong with the platform, while every request to it fails.
pub(crate) fn trouble(health: &Health) -> Option<String> {
    let wrong = (health.failed)
        .filter(|_| health.failing_since.is_some())?
        .why;
    let apart = health.clock.filter(Skew::is_too_far);
    let status = wrong
        .status()
        .map_or(String::new(), |status| format!(" (HTTP {status})"));
    Some(explanation(Some(wrong), apart.as_ref()) + &status)
}

/// A clock that is too far off is told first: it may be why the key is refused, and which of the
/// two it is shows once the clock is set.
fn explanation(wrong: Option<Trouble>, apart: Option<&Skew>) -> String {
    match (wrong, apart) {
        (None, Some(skew)) => skew.explain(),
        (Some(Trouble::KeyRefused), Some(skew)) => format!(
            "{}; LiveKit also refuses the key, for this alone or because it is wrong",
            skew.explain()
        ),
        (Some(trouble), _) => trouble.explain().to_owned(),
        (None, None) => String::new(),
    }
}

fn clock_offset(skew: &Skew) -> pbjson_types::Duration {
    let nanos = i32::try_from(skew.ahead_us % 1_000_000).unwrap_or(0) * 1_000;
    pbjson_types::Duration {
        seconds: skew.ahead_us / 1_000_000,
        nanos,
    }
}

fn open_attempts(tallies: &[Tally]) -> proto::OpenAttempts {
    let oldest = tallies
        .iter()
        .find(|tally| tally.state == State::Uncertain)
        .and_then(|tally| tally.oldest.as_deref());
    proto::OpenAttempts {
        states: tallies.iter().map(tally).collect(),
        oldest_uncertain: oldest.map(uncertain),
    }
}

fn tally(tally: &Tally) -> proto::StateCount {
    proto::StateCount {
        state: enums::state(tally.state).into(),
        count: i32::try_from(tally.count).unwrap_or(i32::MAX),
        more: tally.more,
    }
}

fn uncertain(attempt: &Attempt) -> proto::UncertainAttempt {
    proto::UncertainAttempt {
        workspace: attempt.workspace.to_string(),
        attempt_id: attempt.id.to_string(),
        since_time: Some(timestamp(attempt.since)),
        horizon_time: (attempt.placed.as_ref())
            .and_then(Placed::horizon)
            .map(timestamp),
        look_time: attempt.due().map(timestamp),
    }
}

fn redeliveries(heard: &Redelivered) -> proto::Redeliveries {
    let of = |passage: Passage| {
        let found = heard.by_passage.get(passage.name());
        count(found.copied().unwrap_or_default())
    };
    proto::Redeliveries {
        open_count: of(Passage::Open),
        in_flight_count: of(Passage::InFlight),
        unclear_count: of(Passage::Unclear),
        placed_count: of(Passage::Placed),
        over_count: of(Passage::Over),
        short_spacings: heard.short.iter().map(short).collect(),
        other_short_count: count(heard.short_others),
    }
}

fn short(short: &Short) -> proto::ShortSpacing {
    proto::ShortSpacing {
        workspace: short.workspace.to_string(),
        campaign_id: short
            .campaign
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        count: count(short.count),
        least_spacing: Some(short.least.into()),
        ringing_timeout: Some(short.ring.into()),
    }
}

fn spans(spans: &Spans) -> proto::Spans {
    let bounds = BOUNDS_MS.into_iter().map(Some).chain([None]);
    let buckets = bounds
        .zip(&spans.buckets)
        .map(|(bound, found)| proto::SpanBucket {
            upper_bound: bound.map(|ms| Duration::from_millis(ms).into()),
            count: count(*found),
        });
    proto::Spans {
        count: count(spans.count()),
        sum: Some(Duration::from_millis(spans.sum_ms).into()),
        buckets: buckets.collect(),
    }
}

fn webhooks(told: &Told) -> proto::WebhookStatus {
    let named = |counts: &BTreeMap<&'static str, u64>| {
        counts
            .iter()
            .map(|(name, found)| ((*name).to_owned(), count(*found)))
            .collect()
    };
    proto::WebhookStatus {
        silent: told.silent,
        likely_causes: told.why.iter().map(|why| (*why).to_owned()).collect(),
        last_time: told.last.map(timestamp),
        before_reply_count: count(told.before_reply),
        counts: named(&told.counts),
        gaps: named(&told.gaps),
    }
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
