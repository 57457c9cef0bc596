//! That an attempt shall be stopped, or was: who asked, why, and how far that has come.

use super::fields::timestamp;
use crate::api::core::CancelResult;
use crate::api::proto;
use crate::model::attempt::{Attempt, CancelRequest, Mode, StopWhy};

/// The recorded stop or cancel, if there is any.
pub(super) fn stop(attempt: &Attempt) -> Option<proto::Stop> {
    use proto::stop::Cause;
    let (asked, recorded) = (attempt.cancel.as_ref(), attempt.stop.as_ref());
    let time = asked.map(|asked| asked.at);
    let time = time.or_else(|| recorded.map(|stop| stop.at))?;
    let cause = match recorded.map(|stop| stop.why) {
        None | Some(StopWhy::Cancel) => Cause::Request,
        Some(StopWhy::AgentLost) => Cause::AgentLost,
        Some(StopWhy::Maximum) => Cause::Maximum,
    };
    let mode = asked.map_or(proto::stop::Mode::Unspecified, |asked| mode(asked.mode));
    Some(proto::Stop {
        cause: cause.into(),
        mode: mode.into(),
        reason: asked.map(|asked| asked.why.clone()).unwrap_or_default(),
        requested_by: asked.map(|asked| asked.by.clone()).unwrap_or_default(),
        time: Some(timestamp(time)),
        pending: is_pending(attempt),
    })
}

/// Whether a stop is recorded and not yet carried out.
fn is_pending(attempt: &Attempt) -> bool {
    CancelResult::of(attempt) == CancelResult::Pending
}

/// Who canceled it, if that is what ended it: `by kim: wrong list`.
pub(super) fn canceled(attempt: &Attempt) -> Option<String> {
    match CancelResult::of(attempt) {
        CancelResult::Prevented | CancelResult::Stopped | CancelResult::HungUp => {
            attempt.cancel.as_ref().map(CancelRequest::told)
        }
        CancelResult::TooLate | CancelResult::Pending | CancelResult::Already => None,
    }
}

/// A sentence for a stop that is recorded and not yet carried out.
pub(super) fn pending(attempt: &Attempt) -> Option<String> {
    let stop = attempt.stop.as_ref().filter(|_| is_pending(attempt))?;
    let since = stop.at;
    Some(match (stop.why, &attempt.cancel) {
        (_, Some(asked)) => format!(
            "a stop ({}) is recorded since {}, asked for {}, {}",
            asked.mode.name(),
            asked.at,
            asked.told(),
            if stop.has_met() {
                "and was carried out; what it ended is settled soon"
            } else {
                "and whether it has reached the call is not known"
            }
        ),
        (StopWhy::AgentLost, None) => {
            format!("since {since} it is being ended, as its agent went away")
        }
        (StopWhy::Maximum, None) => {
            format!("since {since} it is being ended, as it lasted as long as it may")
        }
        (StopWhy::Cancel, None) => format!("a stop is recorded since {since}"),
    })
}

const fn mode(mode: Mode) -> proto::stop::Mode {
    match mode {
        Mode::BeforeDial => proto::stop::Mode::BeforeDial,
        Mode::StopRinging => proto::stop::Mode::StopRinging,
        Mode::HangUp => proto::stop::Mode::HangUp,
    }
}
