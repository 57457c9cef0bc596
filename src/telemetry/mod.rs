//! What is told to operators: logs and [`counters`] now; metrics and traces with their issue.
//!
//! [`rooms`] writes the paired events of rooms, [`pairing`] reads them back from log files.

pub mod counters;
pub mod histogram;
pub mod line;
pub mod logs;
pub mod pairing;
pub mod redeliveries;
pub mod rooms;
