//! How far LiveKit's clock is from this host's, by the `Date` of its answers.
//!
//! A dial's token ends at `send_by`, and LiveKit's own clock is what refuses a dial that comes
//! later. Where the two clocks differ by much that protects nobody, so nothing is dialed.

use std::time::Duration;

use crate::model::time::Time;

/// A `Date` is to the second below (RFC 9110, 5.6.7).
const SECOND: Duration = Duration::from_secs(1);

/// Both clocks at one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// What LiveKit's showed, to the second below.
    pub theirs: Time,
    /// What this host's showed when the answer was there.
    pub ours: Time,
    /// By how much they differ at least, in microseconds; positive if LiveKit's is ahead, and 0
    /// if they may agree.
    pub ahead_us: i64,
    /// How much is allowed.
    pub most: Duration,
}

impl Skew {
    /// Of an answer with this `date`, to a request that was sent at `sent` and answered at
    /// `received`. The date is from some moment in between, so that a slow answer is not taken
    /// for a slow clock.
    pub(super) fn of(date: Time, sent: Time, received: Time, most: Duration) -> Self {
        let behind = sent.since(date.plus(SECOND));
        let ahead = date.since(received);
        let us = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self {
            theirs: date,
            ours: received,
            ahead_us: us(ahead).saturating_sub(us(behind)),
            most,
        }
    }

    /// Whether they differ by more than is allowed, so that nothing may be dialed.
    #[must_use]
    pub fn is_too_far(&self) -> bool {
        Duration::from_micros(self.ahead_us.unsigned_abs()) > self.most
    }

    /// What is wrong and what to do, in a sentence.
    #[must_use]
    pub fn explain(&self) -> String {
        let seconds = self.ahead_us.unsigned_abs().saturating_add(500_000) / 1_000_000;
        let side = if self.ahead_us < 0 {
            "behind"
        } else {
            "ahead of"
        };
        format!(
            "LiveKit's clock is about {seconds} s {side} this host's ({} there, {} here), \
             livekit.clock_skew_max allows {:?}, and nothing is dialed: see which of the two is \
             wrong and let NTP set it, on LiveKit's host (that of livekit.url) or on this one \
             (`timedatectl` tells whether it does)",
            self.theirs, self.ours, self.most
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    fn skew(date: i64, sent: i64, received: i64) -> Skew {
        Skew::of(at(date), at(sent), at(received), Duration::from_secs(5))
    }

    #[test]
    fn neither_the_second_below_nor_a_slow_answer_is_a_skew() {
        assert_eq!(skew(10_000, 10_999, 10_999).ahead_us, 0);
        assert_eq!(skew(10_000, 9_000, 19_000).ahead_us, 0, "10 s in between");
        assert_eq!(skew(19_000, 9_000, 19_000).ahead_us, 0);
    }

    #[test]
    fn both_directions_are_told_and_judged_by_the_limit() {
        for (date, ahead_us, far, said) in [
            (25_000, 5_000_000, false, "5 s ahead of"),
            (26_000, 6_000_000, true, "6 s ahead of"),
            (14_000, -5_000_000, false, "5 s behind"),
            (13_000, -6_000_000, true, "6 s behind"),
        ] {
            let skew = skew(date, 20_000, 20_000);
            assert_eq!((skew.ahead_us, skew.is_too_far()), (ahead_us, far));
            let text = skew.explain();
            for word in [said, "allows 5s", "NTP", "1970-01-01T00:00:20Z here"] {
                assert!(text.contains(word), "{word} in {text}");
            }
        }
    }
}
