//! Short words for the bounds of durations.

use std::time::Duration;

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const DAY: Duration = Duration::from_hours(24);
/// Ten years: longer than anything that is meant.
pub(super) const FOREVER: Duration = Duration::from_hours(24 * 3650);
