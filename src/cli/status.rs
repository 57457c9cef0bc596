//! `ringonce status`: one screen of how a service stands and what it has counted since its
//! start.

use std::process::ExitCode;
use std::time::Duration;

use super::client::{Connection, Failed};
use super::output::{self, DONE, UNREACHABLE};
use crate::api::proto;
use pbjson_types::Timestamp;
use proto::platform_status::Reach;

/// Until when an answer should have come: nothing is asked for it.
const AT_ONCE: Duration = Duration::from_secs(10);

/// The words of the screen, in the order of its lines.
const WORDS: &str = "\
The words, in the order of the lines:
  since                 when the process was started; every count was zero then
  LiveKit               by the requests that are sent anyway, at least one a minute
  open                  attempts that are not over, of all workspaces, by state
  oldest UNCERTAIN      of the attempts whose dial's outcome is not known, the one accepted first
  horizon               from then on LiveKit can no longer start its call, so that what is seen
                        decides, or a person is asked
  looked at by          when the ledger has it looked at at the latest; while LiveKit answers,
                        this process looks more often
  overdue               its horizon and its look are past: LiveKit did not answer, or the service
                        was started since and looks for as long again
  redelivered           requests for attempts that were known; none of them dialed again
    in flight             the phone might still ring
    already placed        the answer had been confirmed
    open                  nothing had been dialed
    unclear               whether the call had been placed was not known
    over                  settled without an answer
  TOO SOON              a queue that delivers again while the phone may still ring
  marker to placement   from just before the dial to the confirmed answer
  webhooks              by what became of them; `missed`: what looking found and none had told";

/// `ringonce status …`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = WORDS)]
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
    if let Some(livekit) = &status.platform {
        platform(livekit, status.status_time.as_ref(), &mut lines);
    }
    if !status.store_refusal.is_empty() {
        let why = &status.store_refusal;
        lines.push(format!(
            "THE STORE TAKES NOTHING, AND NOTHING IS PLACED: {why}"
        ));
    }
    match &status.open_attempts {
        Some(open) => open_attempts(open, status.status_time.as_ref(), &mut lines),
        None => lines.push("THE STORE DOES NOT ANSWER: what is open is not known".to_owned()),
    }
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

fn platform(livekit: &proto::PlatformStatus, now: Option<&Timestamp>, lines: &mut Vec<String>) {
    let answered = match &livekit.answer_time {
        Some(at) => format!("{}, {} in all", ago(at, now), livekit.answer_count),
        None => "never".to_owned(),
    };
    lines.push(match livekit.reach() {
        Reach::Unspecified => "LiveKit: nothing was asked yet".to_owned(),
        Reach::Accepted => {
            format!("LiveKit: reachable, key accepted; last answer {answered}")
        }
        Reach::Unreachable => format!("LIVEKIT IS UNREACHABLE; last answer {answered}"),
        Reach::KeyRefused => format!("LIVEKIT REFUSES THE KEY; last answer {answered}"),
        Reach::Failing => format!("LIVEKIT FAILS; last answer {answered}"),
        Reach::ClocksDiffer => format!(
            "LIVEKIT'S CLOCK AND THIS HOST'S DIFFER, NOTHING IS DIALED; last answer {answered}"
        ),
        Reach::NotLivekit => format!("WHAT ANSWERS IS NOT LIVEKIT; last answer {answered}"),
    });
    if let Some(at) = &livekit.failure_time {
        let status = match livekit.failure_status {
            0 => String::new(),
            status => format!(" (HTTP {status})"),
        };
        let since = match &livekit.failing_since_time {
            Some(since) => format!("; every one since {}", output::show(*since)),
            None => String::new(),
        };
        lines.push(format!(
            "  last failure {}: {}{status}, {} in all{since}",
            ago(at, now),
            livekit.failure,
            livekit.failure_count
        ));
    }
    if !livekit.explanation.is_empty() {
        lines.push(format!("  {}", livekit.explanation));
    }
}

fn open_attempts(open: &proto::OpenAttempts, now: Option<&Timestamp>, lines: &mut Vec<String>) {
    let states: Vec<String> = (open.states.iter())
        .map(|of| {
            let least = if of.more { "\u{2265} " } else { "" };
            format!("{least}{} {}", of.count, output::state_name(of.state()))
        })
        .collect();
    lines.push(format!("open: {}", states.join(", ")));
    if let Some(oldest) = &open.oldest_uncertain {
        let at = |time: &Option<Timestamp>| match time {
            Some(at) => format!("{} ({})", output::show(*at), ago(at, now)),
            None => "unknown".to_owned(),
        };
        let horizon = oldest.horizon_time.map_or(i64::MIN, |at| at.seconds);
        let look = match (&oldest.look_time, now) {
            // Until its horizon it is looked at by this process, whatever the ledger has.
            (Some(look), Some(now)) if look.seconds.max(horizon) < now.seconds => {
                let since = if look.seconds < horizon {
                    &oldest.horizon_time
                } else {
                    &oldest.look_time
                };
                format!("overdue since {}", at(since))
            }
            (Some(look), _) if look.seconds < horizon => "looked at until then".to_owned(),
            (look, _) if *look == oldest.horizon_time => "looked at until then".to_owned(),
            (_, _) => format!("looked at by {} at the latest", at(&oldest.look_time)),
        };
        lines.push(format!(
            "  oldest UNCERTAIN: {}/{} since {}, horizon {}, {look}",
            oldest.workspace,
            oldest.attempt_id,
            at(&oldest.since_time),
            at(&oldest.horizon_time),
        ));
    }
}

/// As `12s ago` or `in 3m 4s`, to the second.
fn ago(at: &Timestamp, now: Option<&Timestamp>) -> String {
    let seconds = now.map_or(0, |now| now.seconds.saturating_sub(at.seconds));
    let span = humantime::format_duration(Duration::from_secs(seconds.unsigned_abs()));
    if seconds < 0 {
        format!("in {span}")
    } else {
        format!("{span} ago")
    }
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
    use proto::attempt::State;

    const NOW: Timestamp = Timestamp {
        seconds: 1_000,
        nanos: 0,
    };

    const fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanos: 0 }
    }

    #[test]
    fn an_outage_of_livekit_is_told_with_its_kind_its_age_and_the_remedy() {
        let mut lines = Vec::new();
        let livekit = proto::PlatformStatus {
            reach: Reach::Unreachable.into(),
            explanation: "check livekit.url".to_owned(),
            answer_time: Some(at(900)),
            answer_count: 7,
            failing_since_time: Some(at(940)),
            failure_time: Some(at(988)),
            failure: "NO_CONNECTION".to_owned(),
            failure_status: 0,
            failure_count: 3,
            clock_offset: None,
        };
        platform(&livekit, Some(&NOW), &mut lines);
        assert_eq!(
            lines,
            [
                "LIVEKIT IS UNREACHABLE; last answer 1m 40s ago, 7 in all",
                "  last failure 12s ago: NO_CONNECTION, 3 in all; every one since \
                 1970-01-01T00:15:40Z",
                "  check livekit.url",
            ]
        );
    }

    #[test]
    fn what_is_open_is_counted_up_to_a_limit_that_is_seen() {
        let mut lines = Vec::new();
        let count = |state: State, count, more| proto::StateCount {
            state: state.into(),
            count,
            more,
        };
        let open = proto::OpenAttempts {
            states: vec![
                count(State::Queued, 1_000, true),
                count(State::Uncertain, 1, false),
            ],
            oldest_uncertain: Some(proto::UncertainAttempt {
                workspace: "w".to_owned(),
                attempt_id: "a6".to_owned(),
                since_time: Some(at(900)),
                horizon_time: Some(at(990)),
                look_time: Some(at(995)),
            }),
        };
        open_attempts(&open, Some(&NOW), &mut lines);
        assert_eq!(
            lines,
            [
                "open: \u{2265} 1000 QUEUED, 1 UNCERTAIN",
                "  oldest UNCERTAIN: w/a6 since 1970-01-01T00:15:00Z (1m 40s ago), horizon \
                 1970-01-01T00:16:30Z (10s ago), overdue since 1970-01-01T00:16:35Z \
                 (5s ago)",
            ]
        );
        for (look, said) in [
            (995, "looked at until then"),
            (1_064, "looked at until then"),
            (
                1_070,
                "looked at by 1970-01-01T00:17:50Z (in 1m 10s) at the latest",
            ),
        ] {
            let mut open = open.clone();
            let oldest = open.oldest_uncertain.as_mut().unwrap();
            (oldest.horizon_time, oldest.look_time) = (Some(at(1_064)), Some(at(look)));
            let mut lines = Vec::new();
            open_attempts(&open, Some(&NOW), &mut lines);
            assert!(lines[1].ends_with(said), "{lines:?}");
        }
    }

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
