//! Reviews for a person.

use crate::api::proto;
use crate::cli::output;

/// Said where there is nothing to list: what one looks for may be another workspace's.
pub(super) fn nothing(workspace: &str) -> String {
    format!("nothing waits for review in workspace {workspace}")
}

/// `2 attempts are resolved`, or of a dry run `1 attempt would be resolved`.
pub(super) fn resolved(count: usize, dry_run: bool) -> String {
    match (count, dry_run) {
        (1, true) => "1 attempt would be resolved".to_owned(),
        (1, false) => "1 attempt is resolved".to_owned(),
        (count, true) => format!("{count} attempts would be resolved"),
        (count, false) => format!("{count} attempts are resolved"),
    }
}

/// `12 SEEN_THEN_GONE since 2026-11-29T12:00:00Z: its leg was seen and is gone …`.
pub(super) fn group_line(group: &proto::ReviewGroup) -> String {
    let since = group.oldest_time.map(output::show).unwrap_or_default();
    let (count, cause, why) = (group.count, &group.cause, &group.explanation);
    format!("{count} {cause} since {since}: {why}")
}

/// `a1 SEEN_THEN_GONE +1********99 dialed 2026-11-29T12:00:00Z`.
pub(super) fn review_line(attempt: &proto::Attempt) -> String {
    let dialed = attempt
        .attempt_marker_time
        .map(output::show)
        .unwrap_or_default();
    let (id, cause, to) = (&attempt.attempt_id, &attempt.review_cause, &attempt.to);
    format!("{id} {cause} {to} dialed {dialed}")
}

/// Everything that is known of it, for whoever asks the carrier.
pub(super) fn review_lines(attempt: &proto::Attempt) -> String {
    let mut lines = vec![output::attempt_lines(attempt)];
    let known = [
        ("contact", &attempt.contact_id),
        ("campaign", &attempt.campaign_id),
        ("trunk", &attempt.trunk),
        ("session (X-Ringonce-Session)", &attempt.session),
        ("room", &attempt.room),
        ("SIP call", &attempt.provider_call_id),
        ("cause", &attempt.review_cause),
    ];
    for (name, value) in known {
        if !value.is_empty() {
            lines.push(format!("  {name}: {value}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attempt_is_one() {
        assert_eq!(resolved(1, true), "1 attempt would be resolved");
        assert_eq!(resolved(1, false), "1 attempt is resolved");
        assert_eq!(resolved(0, true), "0 attempts would be resolved");
        assert_eq!(resolved(2, false), "2 attempts are resolved");
    }
}
