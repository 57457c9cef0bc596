//! The other requests: reads, watches, cancels.

use std::collections::BTreeSet;
use std::time::Duration;

use super::enums::state_in;
use super::fields::Violations;
use crate::api::core::{CancelCommand, Filter};
use crate::api::limits::Limits;
use crate::api::proto;
use crate::model::attempt::{Mode, State};
use crate::model::id::{AttemptId, Workspace};

/// A parsed `GetAttempt`.
#[derive(Debug)]
pub(crate) struct Get {
    pub(crate) workspace: Workspace,
    pub(crate) attempt: AttemptId,
    pub(crate) wait: proto::Wait,
    pub(crate) wait_timeout: Option<Duration>,
}

pub(crate) fn get_attempt(message: proto::GetAttemptRequest) -> Result<Get, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let attempt = wrong.required("attempt_id", message.attempt_id);
    let wait = wrong.one_of("wait", message.wait, |wait| wait);
    let given = message.wait_timeout.is_some();
    let wait_timeout = wrong
        .span(
            "wait_timeout",
            message.wait_timeout,
            Duration::ZERO,
            (Duration::ZERO, Duration::from_hours(24)),
        )
        .filter(|_| given);
    let get = (|| {
        Some(Get {
            workspace: workspace?,
            attempt: attempt?,
            wait: wait?,
            wait_timeout,
        })
    })();
    wrong.unless_any(get)
}

/// A parsed `ListAttempts`.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) filter: Filter,
    pub(crate) size: usize,
    pub(crate) token: String,
}

pub(crate) fn list_attempts(
    message: proto::ListAttemptsRequest,
    limits: &Limits,
) -> Result<List, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let contact = wrong.optional("contact_id", message.contact_id);
    let campaign = wrong.optional("campaign_id", message.campaign_id);
    let outreach = wrong.optional("outreach_id", message.outreach_id);
    let states = states(&mut wrong, &message.states);
    let from = wrong.time("create_time_from", message.create_time_from);
    let to = wrong.time("create_time_to", message.create_time_to);
    let size = wrong.page_size(message.page_size, limits);
    let list = workspace.map(|workspace| List {
        filter: Filter {
            workspace,
            contact,
            campaign,
            outreach,
            states,
            from,
            to,
            descending: message.descending,
        },
        size,
        token: message.page_token,
    });
    wrong.unless_any(list)
}

/// A parsed `WatchAttempts`.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) attempt: Option<AttemptId>,
    pub(crate) filter: Filter,
    pub(crate) after: String,
    pub(crate) snapshot: bool,
}

pub(crate) fn watch_attempts(message: proto::WatchAttemptsRequest) -> Result<Watching, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let attempt = wrong.optional("attempt_id", message.attempt_id);
    let contact = wrong.optional("contact_id", message.contact_id);
    let campaign = wrong.optional("campaign_id", message.campaign_id);
    let outreach = wrong.optional("outreach_id", message.outreach_id);
    let states = states(&mut wrong, &message.states);
    if message.snapshot && !message.after.is_empty() {
        wrong.add("snapshot", "cannot be asked together with after");
    }
    let watching = workspace.map(|workspace| Watching {
        attempt,
        filter: Filter {
            contact,
            campaign,
            outreach,
            states,
            ..all(workspace)
        },
        after: message.after,
        snapshot: message.snapshot,
    });
    wrong.unless_any(watching)
}

pub(crate) fn cancel_attempt(
    message: proto::CancelAttemptRequest,
    limits: &Limits,
) -> Result<CancelCommand, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let attempt = if message.allow_missing {
        // It may be written down here for the first time.
        wrong.new_id("attempt_id", message.attempt_id)
    } else {
        wrong.required("attempt_id", message.attempt_id)
    };
    let mode = wrong.one_of("mode", message.mode, mode);
    wrong.open_text("reason", &message.reason, limits.request.reason_max);
    wrong.open_text(
        "requested_by",
        &message.requested_by,
        crate::model::id::ID_MAX,
    );
    let command = (|| {
        Some(CancelCommand {
            workspace: workspace?,
            attempt: attempt?,
            mode: mode?,
            allow_missing: message.allow_missing,
            reason: message.reason,
            requested_by: message.requested_by,
        })
    })();
    wrong.unless_any(command)
}

/// A parsed `CancelAttempts`: whose attempts, and how each is canceled.
#[derive(Debug)]
pub(crate) struct CancelMany {
    pub(crate) filter: Filter,
    pub(crate) mode: Mode,
    pub(crate) reason: String,
    pub(crate) requested_by: String,
    pub(crate) validate_only: bool,
    pub(crate) size: usize,
    pub(crate) token: String,
}

pub(crate) fn cancel_attempts(
    message: proto::CancelAttemptsRequest,
    limits: &Limits,
) -> Result<CancelMany, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let contact = wrong.optional("contact_id", message.contact_id);
    let campaign = wrong.optional("campaign_id", message.campaign_id);
    let outreach = wrong.optional("outreach_id", message.outreach_id);
    if contact.is_none() && campaign.is_none() && outreach.is_none() {
        wrong.add(
            "campaign_id",
            "is needed, or contact_id, or outreach_id: a workspace is not canceled as a whole",
        );
    }
    let mode = wrong.one_of("mode", message.mode, mode);
    wrong.open_text("reason", &message.reason, limits.request.reason_max);
    wrong.open_text(
        "requested_by",
        &message.requested_by,
        crate::model::id::ID_MAX,
    );
    let size = wrong.page_size(message.page_size, limits);
    let many = (|| {
        Some(CancelMany {
            filter: Filter {
                contact,
                campaign,
                outreach,
                // What is over is not asked: answered calls are open to a hang-up.
                states: State::ALL
                    .into_iter()
                    .filter(|state| !state.settled() || *state == State::Answered)
                    .collect(),
                ..all(workspace?)
            },
            mode: mode?,
            reason: message.reason,
            requested_by: message.requested_by,
            validate_only: message.validate_only,
            size,
            token: message.page_token,
        })
    })();
    wrong.unless_any(many)
}

const fn mode(asked: proto::cancel_attempt_request::Mode) -> Mode {
    use proto::cancel_attempt_request::Mode as Asked;
    match asked {
        Asked::BeforeDial => Mode::BeforeDial,
        Asked::Unspecified | Asked::StopRinging => Mode::StopRinging,
        Asked::HangUp => Mode::HangUp,
    }
}

fn states(wrong: &mut Violations, values: &[i32]) -> Vec<State> {
    let mut states = BTreeSet::new();
    for value in values {
        let state = proto::attempt::State::try_from(*value)
            .ok()
            .and_then(state_in);
        match state {
            Some(state) => {
                states.insert(state);
            }
            None => wrong.add("states", format_args!("has the unknown value {value}")),
        }
    }
    states.into_iter().collect()
}

/// Every attempt of a workspace, oldest first.
const fn all(workspace: Workspace) -> Filter {
    Filter {
        workspace,
        contact: None,
        campaign: None,
        outreach: None,
        states: Vec::new(),
        from: None,
        to: None,
        descending: false,
    }
}
