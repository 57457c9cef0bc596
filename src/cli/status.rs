//! `ringonce status`: one screen of what a service has counted since its start.

use std::process::ExitCode;
use std::time::Duration;

use super::client::{Connection, Failed};
use super::output::{self, DONE, UNREACHABLE};
use crate::api::proto;

/// Until when an answer should have come: nothing is asked for it.
const AT_ONCE: Duration = Duration::from_secs(10);

/// `ringonce status …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: Connection,
}

/// Asks once, and prints it.
///
/// # Errors
///
/// The output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match show(args).await {
        Ok(()) => Ok(ExitCode::from(DONE)),
        Err(Failed::Said(code)) => Ok(code),
        Err(Failed::Output(error)) => Err(error),
    }
}

async fn show(args: Args) -> Result<(), Failed> {
    let mut client = args.connection.operations().await.map_err(|error| {
        output::note(&format!("error: {error:#}"));
        Failed::Said(ExitCode::from(UNREACHABLE))
    })?;
    let message = proto::GetStatusRequest {};
    let request = args.connection.request(message, Some(AT_ONCE));
    let status = client.get_status(request).await?.into_inner();
    args.connection.output.print(&status, text)?;
    Ok(())
}

fn text(status: &proto::ServiceStatus) -> String {
    let since = status.start_time.map(output::show).unwrap_or_default();
    let mut lines = vec![format!("since {since}")];
    if let Some(heard) = &status.redeliveries {
        redeliveries(heard, &mut lines);
    }
    if let Some(spans) = &status.time_to_placement {
        placed(spans, &mut lines);
    }
    if let Some(told) = &status.webhooks {
        webhooks(told, &mut lines);
    }
    lines.join("\n")
}

fn redeliveries(heard: &proto::Redeliveries, lines: &mut Vec<String>) {
    lines.push(format!(
        "redelivered: {} in flight, {} already placed, {} open, {} unclear, {} over",
        heard.in_flight_count,
        heard.placed_count,
        heard.open_count,
        heard.unclear_count,
        heard.over_count
    ));
    for short in &heard.short_spacings {
        lines.push(format!(
            "  TOO SOON {}/{}: {} times, after {} of up to {} of ringing",
            short.workspace,
            short.campaign_id,
            short.count,
            span(short.least_spacing.as_ref()),
            span(short.ringing_timeout.as_ref())
        ));
    }
    if heard.other_short_count > 0 {
        let count = heard.other_short_count;
        lines.push(format!("  TOO SOON in other campaigns: {count} times"));
    }
}

fn placed(spans: &proto::Spans, lines: &mut Vec<String>) {
    lines.push(format!("marker to placement: {} calls", spans.count));
    for bucket in spans.buckets.iter().filter(|bucket| bucket.count > 0) {
        let bound = match &bucket.upper_bound {
            Some(bound) => format!("up to {}", span(Some(bound))),
            None => "longer".to_owned(),
        };
        lines.push(format!("  {bound}: {}", bucket.count));
    }
}

fn webhooks(told: &proto::WebhookStatus, lines: &mut Vec<String>) {
    let last = told.last_time.map_or("never".to_owned(), output::show);
    lines.push(format!(
        "webhooks: last {last}, {} before the reply",
        told.before_reply_count
    ));
    for (kind, counts) in [("", &told.counts), ("missed ", &told.gaps)] {
        for (name, count) in counts.iter().filter(|(_, count)| **count > 0) {
            lines.push(format!("  {kind}{name}: {count}"));
        }
    }
    if told.silent {
        lines.push("WEBHOOKS SEEM TO BE OFF. Likely causes:".to_owned());
        lines.extend(told.likely_causes.iter().map(|cause| format!("  {cause}")));
    }
}

/// As `2.5s`.
fn span(span: Option<&pbjson_types::Duration>) -> String {
    let span = span.and_then(|span| Duration::try_from(*span).ok());
    humantime::format_duration(span.unwrap_or_default()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_seen_at_once() {
        let short = proto::ShortSpacing {
            workspace: "w".to_owned(),
            campaign_id: "spring".to_owned(),
            count: 3,
            least_spacing: Some(Duration::from_secs(10).into()),
            ringing_timeout: Some(Duration::from_secs(45).into()),
        };
        let text = text(&proto::ServiceStatus {
            redeliveries: Some(proto::Redeliveries {
                in_flight_count: 3,
                placed_count: 4,
                short_spacings: vec![short],
                ..proto::Redeliveries::default()
            }),
            webhooks: Some(proto::WebhookStatus {
                silent: true,
                likely_causes: vec!["URL: none arrives".to_owned()],
                gaps: [("left".to_owned(), 2)].into(),
                ..proto::WebhookStatus::default()
            }),
            ..proto::ServiceStatus::default()
        });
        for line in [
            "redelivered: 3 in flight, 4 already placed, 0 open, 0 unclear, 0 over",
            "  TOO SOON w/spring: 3 times, after 10s of up to 45s of ringing",
            "  missed left: 2",
            "WEBHOOKS SEEM TO BE OFF. Likely causes:",
            "  URL: none arrives",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
