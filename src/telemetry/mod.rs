//! What is told to operators: logs now; metrics and traces with their issue.

pub mod logs;
pub mod rooms;
