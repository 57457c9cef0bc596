//! What `ringonce call cancel` prints: of one attempt, and of many.

use std::collections::BTreeMap;

use super::flags::Mode;
use crate::api::proto;
use crate::cli::output::{attempt_line, state_name};
use proto::CancelAttemptsResponse as Page;
use proto::attempt::State;
use proto::cancel_attempt_response::Result as Told;

/// So many attempts of a dry run are shown to a person, beside the counts of all.
const SHOWN: usize = 20;

/// `STOPPED a1 CANCELED …`, and whether it had been canceled before.
pub(super) fn one(response: &proto::CancelAttemptResponse) -> String {
    let result = result_name(response.result());
    let attempt = response.attempt.as_ref().map(attempt_line);
    let before = if response.already {
        " (it had been canceled before)"
    } else {
        ""
    };
    format!("{result} {}{before}", attempt.unwrap_or_default())
}

/// What a person may do about a cancel that did not end it, if there is something.
pub(super) fn advice(response: &proto::CancelAttemptResponse) -> Option<String> {
    let attempt = response.attempt.as_ref()?;
    let id = &attempt.attempt_id;
    match (response.result(), attempt.state()) {
        (Told::TooLate, State::Answered) => {
            Some("somebody talks; the same with --mode hang-up ends the call".to_owned())
        }
        (Told::TooLate, State::NeedsReview) => Some(format!(
            "it was dialed, and nothing of it is dialed any more: {}",
            resolve_it(id)
        )),
        (Told::TooLate, State::Dialing | State::Uncertain) => Some(
            "it was dialed; the same with --mode stop-ringing ends the ringing, and with --mode \
             hang-up also a call in which somebody talks"
                .to_owned(),
        ),
        (Told::Pending, State::NeedsReview) => Some(format!(
            "the stop is recorded, and ends a call that should go on yet; it settles nothing: {}",
            resolve_it(id)
        )),
        (Told::Pending, State::Uncertain) => Some(format!(
            "the stop is recorded, and nothing of it is dialed any more; what became of its dial \
             is not known yet: ask `ringonce call get --attempt {id}`"
        )),
        (Told::Pending, _) => Some(format!(
            "the stop is recorded and under way: ask `ringonce call get --attempt {id}`"
        )),
        (Told::TooLate | Told::Prevented | Told::Stopped | Told::HungUp | Told::Unspecified, _) => {
            None
        }
    }
}

/// What to do about an attempt that evidence could not settle.
fn resolve_it(id: &str) -> String {
    format!(
        "what became of its dial waits for a person, and so it stays NEEDS_REVIEW; say it by \
         `ringonce review resolve {id} --as …` (`ringonce review show {id}`)"
    )
}

/// What many cancels came to, over all pages.
#[derive(Debug)]
pub(super) struct Sum {
    mode: Mode,
    /// Nothing is canceled: what would be is shown.
    dry_run: bool,
    attempts: usize,
    prevented: i64,
    /// Those of them that had been dialed.
    stopped: i64,
    pending: i64,
    late: i64,
    states: BTreeMap<i32, usize>,
    /// Those in which somebody talks, and goes on.
    talking: usize,
    /// Those that ring, or may, and go on.
    ringing: usize,
    /// Those that wait for a person, whatever is asked of them.
    in_review: usize,
    /// Those that have gone further than the mode reaches; counted in a dry run.
    beyond: usize,
    shown: usize,
}

impl Sum {
    /// Of nothing yet.
    pub(super) const fn new(mode: Mode, dry_run: bool) -> Self {
        Self {
            mode,
            dry_run,
            attempts: 0,
            prevented: 0,
            stopped: 0,
            pending: 0,
            late: 0,
            states: BTreeMap::new(),
            talking: 0,
            ringing: 0,
            in_review: 0,
            beyond: 0,
            shown: 0,
        }
    }

    /// Adds a page, and gives its lines: `PENDING a1 DIALING`, in a dry run `a1 DIALING` of
    /// the first few.
    pub(super) fn page(&mut self, page: &Page) -> String {
        self.attempts += page.attempt_ids.len();
        self.prevented += i64::from(page.prevented_count);
        self.pending += i64::from(page.pending_count);
        self.late += i64::from(page.too_late_count);
        let mut lines = Vec::new();
        for attempt in &page.attempts {
            *self.states.entry(attempt.state).or_default() += 1;
            let (id, state) = (&attempt.attempt_id, state_name(attempt.state()));
            let beyond = !reaches(self.mode, attempt.state());
            let spared = beyond && (self.dry_run || attempt.result() == Told::TooLate);
            let rings = matches!(attempt.state(), State::Dialing | State::Uncertain);
            self.talking += usize::from(spared && attempt.state() == State::Answered);
            self.ringing += usize::from(spared && rings);
            let had_rung = matches!(attempt.result(), Told::Stopped | Told::HungUp);
            self.stopped += i64::from(had_rung);
            self.in_review += usize::from(attempt.state() == State::NeedsReview);
            if !self.dry_run {
                lines.push(format!("{} {id} {state}", result_name(attempt.result())));
                continue;
            }
            self.beyond += usize::from(beyond);
            if self.shown < SHOWN {
                self.shown += 1;
                lines.push(format!("{id} {state}"));
            }
        }
        lines.join("\n")
    }

    /// Whether some are being stopped.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// `12 attempts: 9 prevented, 1 stopped, 2 being stopped, 0 too late`, or of a dry run
    /// their states. What was prevented was not dialed.
    pub(super) fn text(&self) -> String {
        let all = count(self.attempts);
        if self.attempts == 0 {
            return format!("{all}: nothing that is open matches");
        }
        let states: Vec<_> = (self.states.iter())
            .map(|(state, count)| {
                let state = State::try_from(*state).unwrap_or_default();
                format!("{count} {}", state_name(state))
            })
            .collect();
        let states = states.join(", ");
        if !self.dry_run {
            let (pending, late) = (self.pending, self.late);
            let prevented = self.prevented - self.stopped;
            let stopped = match self.stopped {
                0 => String::new(),
                stopped => format!("{stopped} stopped, "),
            };
            return format!(
                "{all}: {prevented} prevented, {stopped}{pending} being stopped, {late} too late; \
                 now {states}"
            );
        }
        let rest = match self.attempts - self.shown {
            0 => String::new(),
            rest => format!("; {rest} more are not shown (--output json names all)"),
        };
        let beyond = match self.beyond {
            0 => String::new(),
            beyond => format!("; {beyond} of them gone further than this --mode reaches"),
        };
        format!("{all} would be asked to stop: {states}{beyond}{rest}")
    }

    /// What a person may do about those that go on.
    pub(super) fn advice(&self) -> Option<String> {
        let talking = (self.talking > 0).then(|| {
            format!(
                "in {} of them somebody talks; the same with --mode hang-up ends the call",
                self.talking
            )
        });
        let ringing = (self.ringing > 0).then(|| {
            format!(
                "{} of them ring or may ring; the same with --mode stop-ringing stops that",
                self.ringing
            )
        });
        let in_review = (self.in_review > 0).then(|| {
            format!(
                "{} of them stay NEEDS_REVIEW until a person says what became of them: `ringonce \
                 review list`",
                self.in_review
            )
        });
        let said: Vec<_> = talking
            .into_iter()
            .chain(ringing)
            .chain(in_review)
            .collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// Whether a cancel of `mode` stops what is in `state`.
const fn reaches(mode: Mode, state: State) -> bool {
    match state {
        State::Dialing | State::Uncertain | State::NeedsReview => !matches!(mode, Mode::BeforeDial),
        State::Answered => matches!(mode, Mode::HangUp),
        State::Unspecified
        | State::Queued
        | State::Deferred
        | State::Refused
        | State::Reserved
        | State::Ended
        | State::NotConnected
        | State::NotDialed
        | State::Canceled => true,
    }
}

fn count(attempts: usize) -> String {
    let noun = if attempts == 1 { "attempt" } else { "attempts" };
    format!("{attempts} {noun}")
}

fn result_name(result: Told) -> &'static str {
    result.as_str_name().trim_start_matches("RESULT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(attempts: &[(&str, Told, State)]) -> Page {
        let of = |wanted: Told| {
            let found = attempts.iter().filter(|(_, told, _)| *told == wanted);
            i32::try_from(found.count()).unwrap()
        };
        Page {
            attempt_ids: attempts.iter().map(|(id, ..)| (*id).to_owned()).collect(),
            prevented_count: of(Told::Prevented) + of(Told::Stopped),
            pending_count: of(Told::Pending),
            too_late_count: of(Told::TooLate),
            attempts: attempts
                .iter()
                .map(|(id, result, state)| proto::CanceledAttempt {
                    attempt_id: (*id).to_owned(),
                    result: (*result).into(),
                    state: (*state).into(),
                })
                .collect(),
            ..Page::default()
        }
    }

    #[test]
    fn many_cancels_name_every_attempt_and_say_what_goes_on() {
        let mut sum = Sum::new(Mode::StopRinging, false);
        let lines = sum.page(&page(&[
            ("a1", Told::Prevented, State::Canceled),
            ("a2", Told::TooLate, State::Answered),
        ]));
        assert_eq!(lines, "PREVENTED a1 CANCELED\nTOO_LATE a2 ANSWERED");
        sum.page(&page(&[("a3", Told::Pending, State::Dialing)]));
        assert_eq!(
            sum.text(),
            "3 attempts: 1 prevented, 1 being stopped, 1 too late; now 1 DIALING, 1 ANSWERED, \
             1 CANCELED"
        );
        assert!(sum.is_pending());
        assert!(sum.advice().unwrap().contains("--mode hang-up"));
        let none = Sum::new(Mode::StopRinging, false).text();
        assert_eq!(none, "0 attempts: nothing that is open matches");
    }

    #[test]
    fn what_was_dialed_is_not_called_prevented_and_what_rings_on_is_said() {
        let mut sum = Sum::new(Mode::BeforeDial, false);
        sum.page(&page(&[
            ("a1", Told::Prevented, State::Canceled),
            ("a2", Told::Stopped, State::Canceled),
            ("a3", Told::TooLate, State::Dialing),
        ]));
        assert!(
            sum.text()
                .starts_with("3 attempts: 1 prevented, 1 stopped, 0 being stopped, 1 too late;"),
            "{}",
            sum.text()
        );
        let said = sum.advice().unwrap();
        assert!(said.contains("1 of them ring or may ring"), "{said}");
        assert!(!said.contains("hang-up"), "{said}");
    }

    #[test]
    fn what_is_in_review_is_sent_to_a_person_whatever_the_cancel_came_to() {
        for result in [Told::Pending, Told::TooLate] {
            let mut attempt = proto::Attempt {
                attempt_id: "a1".into(),
                ..proto::Attempt::default()
            };
            attempt.set_state(State::NeedsReview);
            let mut response = proto::CancelAttemptResponse {
                attempt: Some(attempt),
                ..proto::CancelAttemptResponse::default()
            };
            response.set_result(result);
            let said = advice(&response).unwrap();
            assert!(said.contains("ringonce review resolve a1 --as"), "{said}");
            assert!(!said.contains("stop-ringing"), "{said}");
        }
        let mut sum = Sum::new(Mode::StopRinging, false);
        sum.page(&page(&[("a1", Told::Pending, State::NeedsReview)]));
        assert!(sum.advice().unwrap().contains("ringonce review list"));
    }

    #[test]
    fn a_dry_run_shows_the_first_few_and_counts_all_by_state() {
        let ids: Vec<String> = (0..25).map(|n| format!("a{n}")).collect();
        let mut found: Vec<_> = ids
            .iter()
            .map(|id| (id.as_str(), Told::Unspecified, State::Queued))
            .collect();
        found.push(("a25", Told::Unspecified, State::Answered));
        let mut sum = Sum::new(Mode::StopRinging, true);
        let lines = sum.page(&page(&found));
        assert_eq!(lines.lines().count(), SHOWN);
        assert_eq!(lines.lines().next(), Some("a0 QUEUED"));
        assert_eq!(
            sum.text(),
            "26 attempts would be asked to stop: 25 QUEUED, 1 ANSWERED; 1 of them gone further \
             than this --mode reaches; 6 more are not shown (--output json names all)"
        );
        assert!(sum.advice().is_some());
    }
}
