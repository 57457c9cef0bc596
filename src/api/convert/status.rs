//! What was counted, as an operator sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fields::timestamp;
use crate::api::core::{Status, Told};
use crate::api::proto;
use crate::model::attempt::Passage;
use crate::model::time::Time;
use crate::node::histogram::{BOUNDS_MS, Spans};
use crate::node::redeliveries::{Redelivered, Short};

/// What was counted up to `now`.
pub(crate) fn status(status: &Status, now: Time) -> proto::ServiceStatus {
    proto::ServiceStatus {
        start_time: Some(timestamp(status.since)),
        status_time: Some(timestamp(now)),
        redeliveries: Some(redeliveries(&status.redelivered)),
        time_to_placement: Some(spans(&status.between_markers)),
        webhooks: Some(webhooks(&status.told)),
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
