//! Reviews: what is asked of them, what is said of them, and how they are shown.

use super::fields::{Violations, timestamp};
use crate::api::core::{Resolve, ReviewGroup};
use crate::api::limits::Limits;
use crate::api::proto;
use crate::model::attempt::{Resolution, ReviewCause};
use crate::model::id::Workspace;

/// A parsed `ListReviews`.
#[derive(Debug)]
pub(crate) struct ListReviews {
    pub(crate) workspace: Workspace,
    pub(crate) cause: Option<ReviewCause>,
    pub(crate) size: usize,
    pub(crate) token: String,
}

/// A parsed `ResolveAttempts`: what is said, and of whom.
#[derive(Debug)]
pub(crate) struct ResolveMany {
    pub(crate) list: ListReviews,
    pub(crate) resolution: Resolution,
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) validate_only: bool,
}

pub(crate) fn list_reviews(
    message: proto::ListReviewsRequest,
    limits: &Limits,
) -> Result<ListReviews, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let cause = cause(&mut wrong, &message.cause);
    let size = wrong.page_size(message.page_size, limits);
    let list = workspace.map(|workspace| ListReviews {
        workspace,
        cause,
        size,
        token: message.page_token,
    });
    wrong.unless_any(list)
}

pub(crate) fn resolve_attempt(
    message: proto::ResolveAttemptRequest,
    limits: &Limits,
) -> Result<Resolve, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    let attempt = wrong.required("attempt_id", message.attempt_id);
    let resolution = resolution(&mut wrong, message.resolution);
    said(&mut wrong, &message.reason, &message.resolved_by, limits);
    let resolve = (|| {
        Some(Resolve {
            workspace: workspace?,
            attempt: attempt?,
            resolution: resolution?,
            reason: message.reason,
            by: message.resolved_by,
        })
    })();
    wrong.unless_any(resolve)
}

pub(crate) fn resolve_attempts(
    message: proto::ResolveAttemptsRequest,
    limits: &Limits,
) -> Result<ResolveMany, Violations> {
    let mut wrong = Violations::default();
    let workspace = wrong.required("workspace", message.workspace);
    if message.cause.is_empty() {
        wrong.add("cause", "is required: what is said holds for one cause");
    }
    let cause = cause(&mut wrong, &message.cause);
    let resolution = resolution(&mut wrong, message.resolution);
    said(&mut wrong, &message.reason, &message.resolved_by, limits);
    let size = wrong.page_size(message.page_size, limits);
    let many = (|| {
        Some(ResolveMany {
            list: ListReviews {
                workspace: workspace?,
                cause,
                size,
                token: message.page_token,
            },
            resolution: resolution?,
            reason: message.reason,
            by: message.resolved_by,
            validate_only: message.validate_only,
        })
    })();
    wrong.unless_any(many)
}

/// A group as an operator sees it.
pub(crate) fn review_group(group: &ReviewGroup) -> proto::ReviewGroup {
    proto::ReviewGroup {
        cause: group.cause.name().to_owned(),
        count: i32::try_from(group.count).unwrap_or(i32::MAX),
        oldest_time: Some(timestamp(group.oldest)),
        explanation: group.cause.explain().to_owned(),
    }
}

fn cause(wrong: &mut Violations, name: &str) -> Option<ReviewCause> {
    if name.is_empty() {
        return None;
    }
    let cause = ReviewCause::parse(name);
    if cause.is_none() {
        let names = ReviewCause::ALL.map(ReviewCause::name).join(", ");
        wrong.add("cause", format_args!("is none of {names}"));
    }
    cause
}

fn resolution(wrong: &mut Violations, value: i32) -> Option<Resolution> {
    use proto::Resolution as Asked;
    let resolution = match Asked::try_from(value) {
        Ok(Asked::Answered) => Some(Resolution::Answered),
        Ok(Asked::NotDialed) => Some(Resolution::NotDialed),
        Ok(Asked::RangUnanswered) => Some(Resolution::RangUnanswered),
        Ok(Asked::Unspecified) | Err(_) => None,
    };
    if resolution.is_none() {
        wrong.add("resolution", "must say what became of it");
    }
    resolution
}

/// How it is known, and who says so: both are for whoever reads the history.
fn said(wrong: &mut Violations, reason: &str, by: &str, limits: &Limits) {
    for (field, text, max) in [
        ("reason", reason, limits.request.reason_max),
        ("resolved_by", by, crate::model::id::ID_MAX),
    ] {
        if text.is_empty() {
            wrong.add(field, "is required: it stays in the history");
        }
        wrong.open_text(field, text, max);
    }
}
