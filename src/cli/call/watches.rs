//! How a watch ends, for a person: what it watched goes on without it.

use tonic::Status;

use crate::api::{Reason, proto};
use crate::cli::client;
use crate::cli::output;
use proto::attempt::State;

/// What a watch has shown until now.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Behind the last message; empty until the first one, which comes as soon as it stands.
    cursor: String,
    /// Where the attempt stood that was shown last, and whether it is over.
    stands: Option<(State, bool)>,
}

impl Seen {
    pub(super) fn note(&mut self, change: &proto::AttemptChange) {
        // The messages of a snapshot have none.
        if !change.cursor.is_empty() {
            self.cursor.clone_from(&change.cursor);
        }
        if let Some(attempt) = &change.attempt {
            self.stands = Some((attempt.state(), attempt.settled));
        }
    }
}

/// Says why the watch of `attempt`, or of all that its filter lets through if that is empty, has
/// ended, and how it goes on.
pub(super) fn say_end(status: &Status, seen: &Seen, attempt: &str) {
    if seen.cursor.is_empty() {
        // It never stood.
        client::failed_because(status, |_| None);
        return;
    }
    let go_on = format!("the same with --after {} goes on from here", seen.cursor);
    if client::is_deadline(status) {
        output::note(&at_its_deadline(seen, attempt));
        output::note(&format!("hint: {go_on}"));
        return;
    }
    client::failed_because(status, |reason| {
        (reason == Reason::Draining).then(|| format!("Once a service answers, {go_on}."))
    });
    if client::reason(status).is_none() {
        output::note(&format!("hint: {go_on}"));
    }
}

fn at_its_deadline(seen: &Seen, attempt: &str) -> String {
    let stands = match (attempt, seen.stands) {
        ("", _) => "what it watches goes on".to_owned(),
        (attempt, Some((state, true))) => {
            format!("{attempt} is over: {}", output::state_name(state))
        }
        (attempt, Some((state, false))) => {
            let state = output::state_name(state);
            format!("{attempt} goes on, and was {state} when it was last shown")
        }
        (attempt, None) => format!(
            "nothing of {attempt} was shown; `ringonce call get --attempt {attempt}` tells where \
             it stands"
        ),
    };
    format!("the watch ended at its --deadline; {stands}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_no_error_and_says_what_stands() {
        let mut seen = Seen::default();
        let told = |seen: &Seen, attempt| at_its_deadline(seen, attempt);
        assert!(told(&seen, "a1").contains("ringonce call get --attempt a1"));
        let mut attempt = proto::Attempt::default();
        attempt.set_state(State::Uncertain);
        let mut change = proto::AttemptChange {
            cursor: "c7".to_owned(),
            attempt: Some(attempt),
            ..proto::AttemptChange::default()
        };
        seen.note(&change);
        let said = told(&seen, "a1");
        assert!(said.ends_with("a1 goes on, and was UNCERTAIN when it was last shown"));
        assert!(told(&seen, "").ends_with("what it watches goes on"));
        let attempt = change.attempt.as_mut().unwrap();
        attempt.set_state(State::NotConnected);
        attempt.settled = true;
        change.cursor.clear();
        seen.note(&change);
        assert!(told(&seen, "a1").ends_with("a1 is over: NOT_CONNECTED"));
        assert_eq!(seen.cursor, "c7", "a snapshot has no place in the log");
    }
}
