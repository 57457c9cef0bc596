//! What the command line prints, and what its exit codes mean.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use crate::api::proto;
use crate::model::attempt::Cause;
use crate::model::time::Time;
use proto::attempt::{Disposition, State};
use proto::cancel_attempt_response::Result as CancelResult;
use proto::stop;

/// Done: answered, ended, or accepted where no more was waited for.
pub const DONE: u8 = 0;
/// Failed: not connected, not dialed, canceled.
pub const FAILED: u8 = 1;
/// The call was made wrongly.
pub const USAGE: u8 = 2;
/// Refused or deferred by a rule.
pub const REFUSED: u8 = 3;
/// What became of it is not known.
pub const UNCERTAIN: u8 = 4;
/// The service could not be reached, or decided nothing; or another process holds the store or
/// a port.
pub const UNREACHABLE: u8 = 5;
/// Still queued, reserved or dialing when the wait ended.
pub const WAITING: u8 = 6;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Output {
    /// For a person.
    #[default]
    Text,
    /// One object a line, in the proto's JSON names.
    Json,
}

impl Output {
    /// Prints a message: the object itself, or the line that `text` makes of it. An empty
    /// line is none.
    pub(super) fn print<M: Serialize>(
        self,
        message: &M,
        text: impl FnOnce(&M) -> String,
    ) -> anyhow::Result<()> {
        let line = match self {
            Self::Json => serde_json::to_string(message).context("failed to write JSON")?,
            Self::Text => text(message),
        };
        if line.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .context("failed to write to stdout")
    }
}

/// Prints data as it is.
pub(super) fn write(data: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(data)
        .and_then(|()| stdout.flush())
        .context("failed to write to stdout")
}

/// Says something to a person, on stderr. If that is closed nobody listens.
pub(super) fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Whether it failed because nobody reads stdout any more.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit code of an attempt; `waited` if its end was waited for.
pub(super) fn exit_code(state: State, waited: bool) -> ExitCode {
    ExitCode::from(match state {
        State::Queued | State::Reserved | State::Dialing if waited => WAITING,
        State::Queued | State::Reserved | State::Dialing | State::Answered | State::Ended => DONE,
        State::Refused | State::Deferred => REFUSED,
        State::NotConnected | State::NotDialed | State::Canceled => FAILED,
        State::Uncertain | State::NeedsReview | State::Unspecified => UNCERTAIN,
    })
}

/// The exit code of a cancel.
pub(super) fn cancel_exit_code(result: CancelResult) -> ExitCode {
    ExitCode::from(match result {
        CancelResult::Prevented | CancelResult::Stopped | CancelResult::HungUp => DONE,
        CancelResult::TooLate => FAILED,
        CancelResult::Pending => WAITING,
        CancelResult::Unspecified => UNCERTAIN,
    })
}

/// `a1 NOT_CONNECTED BUSY +1********86: the line was busy`.
pub(super) fn attempt_line(attempt: &proto::Attempt) -> String {
    let mut words = vec![attempt.attempt_id.as_str(), state_name(attempt.state())];
    let disposition = attempt.disposition().as_str_name();
    if attempt.disposition() != Disposition::Unspecified {
        words.push(disposition.trim_start_matches("DISPOSITION_"));
    } else if let Some(reason) = &attempt.reason {
        words.push(&reason.rule);
    }
    // Of one that was canceled before its request came nothing is known but the id.
    words.extend(Some(attempt.to.as_str()).filter(|to| !to.is_empty()));
    format!("{}: {}", words.join(" "), attempt.explanation)
}

/// The same with the contact and how long ago it last changed, for a list at `now`:
/// `a1 NOT_CONNECTED BUSY +1********86 contact c1, 12s ago: the line was busy`.
pub(super) fn listed_line(attempt: &proto::Attempt, now: Time) -> String {
    let line = attempt_line(attempt);
    let head = line.strip_suffix(&attempt.explanation).unwrap_or(&line);
    let head = head.strip_suffix(": ").unwrap_or(head);
    let contact = match attempt.contact_id.as_str() {
        "" => String::new(),
        contact => format!(" contact {contact}"),
    };
    let mut newest = attempt.history.iter().rev().filter(|step| !stops(step));
    let changed = newest.next().and_then(|last| last.time);
    let ago = changed.or(attempt.create_time).map_or(String::new(), |at| {
        let whole = now.since(time(at)).as_secs();
        let span = humantime::format_duration(Duration::from_secs(whole));
        format!(", {span} ago")
    });
    format!("{head}{contact}{ago}: {}", attempt.explanation)
}

/// The cause of a line that tells of a stop.
const STOP_RECORDED: &str = Cause::StopRecorded.name();

/// Whether it is a request to stop, which leaves the state as it is.
fn stops(transition: &proto::Transition) -> bool {
    transition.cause == STOP_RECORDED
}

/// An attempt and its history, a line each; a recorded stop stands among them at its time.
pub(super) fn attempt_lines(attempt: &proto::Attempt) -> String {
    let stopped = attempt.stop.as_ref().and_then(|stop| stop.time);
    let mut lines: Vec<_> = (attempt.history.iter())
        // The line of the stop that stands says more.
        .filter(|transition| !(stops(transition) && transition.time == stopped))
        .map(|transition| {
            let time = transition.time.map(show).unwrap_or_default();
            let to = state_name(transition.to());
            let (cause, evidence) = (&transition.cause, &transition.evidence);
            let line = if stops(transition) {
                format!("  {time} {cause} {evidence}")
            } else {
                format!("  {time} {to} {cause} {evidence}")
            };
            let at = transition.time.map(|time| (time.seconds, time.nanos));
            (at, line.trim_end().to_owned())
        })
        .collect();
    // Where nothing was dialed the change of state is the stop, and tells who asked.
    let at_once = |stop: &proto::Stop| {
        let mut history = attempt.history.iter();
        history.any(|change| change.to() == State::Canceled && change.time == stop.time)
    };
    if let Some(stop) = attempt.stop.as_ref().filter(|stop| !at_once(stop)) {
        let at = stop.time.map(|time| (time.seconds, time.nanos));
        // Before the change that carried it out, which may have the same time.
        let behind = lines.partition_point(|(other, _)| *other < at);
        lines.insert(behind, (at, stop_line(stop)));
    }
    let mut all = vec![attempt_line(attempt)];
    all.extend(lines.into_iter().map(|(_, line)| line));
    all.join("\n")
}

/// `  2026-11-29T12:00:00Z STOP_RECORDED (stop-ringing) by kim: wrong list`.
fn stop_line(stop: &proto::Stop) -> String {
    let time = stop.time.map(show).unwrap_or_default();
    let mut line = format!("  {time} {STOP_RECORDED}");
    line.push_str(match stop.mode() {
        stop::Mode::Unspecified => "",
        stop::Mode::BeforeDial => " (before-dial)",
        stop::Mode::StopRinging => " (stop-ringing)",
        stop::Mode::HangUp => " (hang-up)",
    });
    line.push_str(match stop.cause() {
        stop::Cause::Unspecified | stop::Cause::Request => "",
        stop::Cause::AgentLost => " since its agent went away",
        stop::Cause::Maximum => " since it lasted as long as it may",
    });
    if !stop.requested_by.is_empty() {
        line.push_str(" by ");
        line.push_str(&stop.requested_by);
    }
    if !stop.reason.is_empty() {
        line.push_str(": ");
        line.push_str(&stop.reason);
    }
    if stop.pending {
        line.push_str(" [whether it reached the call is not known yet]");
    }
    line
}

/// A change; nothing for a bookmark.
pub(super) fn change_line(change: &proto::AttemptChange) -> String {
    let Some(attempt) = &change.attempt else {
        return String::new();
    };
    let time = change.time.map(show).unwrap_or_default();
    format!("{time} {}", attempt_line(attempt))
}

pub(super) fn state_name(state: State) -> &'static str {
    state.as_str_name().trim_start_matches("STATE_")
}

pub(super) fn show(at: pbjson_types::Timestamp) -> String {
    time(at).to_string()
}

fn time(at: pbjson_types::Timestamp) -> Time {
    Time::from_micros(at.seconds * 1_000_000 + i64::from(at.nanos / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::timestamp;

    #[test]
    fn each_stop_has_one_line_and_changes_no_state() {
        let at = |second| Some(timestamp(Time::from_secs(second)));
        let step = |second, cause: &str, evidence: &str| proto::Transition {
            to: State::Dialing.into(),
            time: at(second),
            cause: cause.into(),
            evidence: evidence.into(),
            ..proto::Transition::default()
        };
        let attempt = proto::Attempt {
            history: vec![
                step(10, "MARKED", ""),
                step(20, STOP_RECORDED, "(stop-ringing) by kim: wrong list"),
                step(30, STOP_RECORDED, "(hang-up) by lee: at once"),
            ],
            stop: Some(proto::Stop {
                mode: stop::Mode::HangUp.into(),
                requested_by: "lee".into(),
                reason: "at once".into(),
                time: at(30),
                pending: true,
                ..proto::Stop::default()
            }),
            ..proto::Attempt::default()
        };
        let lines = attempt_lines(&attempt);
        let lines: Vec<_> = lines.lines().skip(1).map(str::trim).collect();
        let time = |second| show(timestamp(Time::from_secs(second)));
        let shown = [
            format!("{} DIALING MARKED", time(10)),
            format!(
                "{} STOP_RECORDED (stop-ringing) by kim: wrong list",
                time(20)
            ),
            format!(
                "{} STOP_RECORDED (hang-up) by lee: at once \
                 [whether it reached the call is not known yet]",
                time(30)
            ),
        ];
        assert_eq!(lines, shown);
        assert!(listed_line(&attempt, Time::from_secs(40)).contains("30s ago"));
    }

    #[test]
    fn a_list_tells_whom_and_since_when() {
        let mut attempt = proto::Attempt {
            attempt_id: "a1".into(),
            contact_id: "c1".into(),
            to: "+1********86".into(),
            explanation: "the line was busy".into(),
            create_time: Some(timestamp(Time::from_secs(100))),
            ..proto::Attempt::default()
        };
        attempt.set_state(State::NotConnected);
        attempt.set_disposition(Disposition::Busy);
        let now = Time::from_secs(172);
        assert_eq!(
            listed_line(&attempt, now),
            "a1 NOT_CONNECTED BUSY +1********86 contact c1, 1m 12s ago: the line was busy"
        );
        attempt.history.push(proto::Transition {
            time: Some(timestamp(Time::from_secs(170))),
            ..proto::Transition::default()
        });
        let line = listed_line(&attempt, now);
        assert!(line.contains(" contact c1, 2s ago: "), "{line}");
        // Of a cancel that came before its request nothing else is known.
        attempt.contact_id.clear();
        let line = listed_line(&attempt, now);
        assert!(line.contains("+1********86, 2s ago: "), "{line}");
    }
}
