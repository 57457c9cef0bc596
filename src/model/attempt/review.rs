//! Why evidence could not settle an attempt, so that a person must.

use super::Attempt;
use crate::model::disposition::Rang;
use serde::{Deserialize, Serialize};

/// Why evidence could not settle it: reviews are grouped by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewCause {
    /// Its leg was seen, and later it was gone, and nothing told how it ended.
    SeenThenGone,
    /// It was never seen, but the first look came too long after the dial: whoever dialed
    /// waited for the answer, or was gone, as after a planned restart. Looks of another process
    /// do not count: it alone knew that they had no gap.
    LookedLate,
    /// It was never seen, but between two looks a call could have come and gone.
    LookedWithGaps,
    /// The platform lists its leg, and nothing of it lives: a record that a crash left.
    StaleRecord,
    /// The platform did not answer, or had lost its records while the room lived on.
    PlatformSilent,
    /// It was to be stopped, and whether it had been answered before is not known.
    Stopped,
    /// Another version wrote a cause that this one does not know.
    #[serde(other)]
    Other,
}

impl ReviewCause {
    /// Every cause.
    pub const ALL: [Self; 7] = [
        Self::SeenThenGone,
        Self::LookedLate,
        Self::LookedWithGaps,
        Self::StaleRecord,
        Self::PlatformSilent,
        Self::Stopped,
        Self::Other,
    ];

    /// Its name in the API: `SEEN_THEN_GONE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SeenThenGone => "SEEN_THEN_GONE",
            Self::LookedLate => "LOOKED_LATE",
            Self::LookedWithGaps => "LOOKED_WITH_GAPS",
            Self::StaleRecord => "STALE_RECORD",
            Self::PlatformSilent => "PLATFORM_SILENT",
            Self::Stopped => "STOPPED",
            Self::Other => "OTHER",
        }
    }

    /// From its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// One sentence for a person: what happened and how to find out.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::SeenThenGone => {
                "its leg was seen and is gone, and nothing told whether it was answered; the carrier's call records tell"
            }
            Self::LookedLate => {
                "nothing of it was seen, but looking began late or anew, as after a restart, which does not prove that nothing was; the carrier's call records tell"
            }
            Self::LookedWithGaps => {
                "nothing of it was seen, but a call could have come and gone between two looks; the carrier's call records tell"
            }
            Self::StaleRecord => {
                "LiveKit crashed while it rang or talked, and only a stale record is left; the carrier's call records tell"
            }
            Self::PlatformSilent => {
                "LiveKit did not answer until long after the call could have started; look at its health, then at the carrier's call records"
            }
            Self::Stopped => {
                "it was to be stopped, and whether it had been answered before is not known; the carrier's call records tell"
            }
            Self::Other => "a newer version of this program knows why",
        }
    }
}

/// What a person found out about an attempt in review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It was answered, and is over.
    Answered,
    /// No call was started.
    NotDialed,
    /// It rang, and nobody answered.
    RangUnanswered,
}

impl Resolution {
    /// Whether it can be true of `attempt`: a phone that was seen to ring was dialed.
    #[must_use]
    pub fn may_be(self, attempt: &Attempt) -> bool {
        match self {
            Self::NotDialed => attempt.rang() != Rang::Rang,
            Self::Answered | Self::RangUnanswered => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_came_late_names_the_usual_reason() {
        let said = ReviewCause::LookedLate.explain();
        assert!(said.contains("late or anew, as after a restart"), "{said}");
    }

    #[test]
    fn a_cause_is_found_by_its_name_and_one_of_a_later_version_is_read() {
        for cause in ReviewCause::ALL {
            assert_eq!(ReviewCause::parse(cause.name()), Some(cause));
        }
        let later: ReviewCause = serde_json::from_str("\"of_a_later_version\"").unwrap();
        assert_eq!(later, ReviewCause::Other);
    }
}
