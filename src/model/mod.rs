//! The domain: no I/O, no async, no clock. It depends on nothing else here.

pub mod disposition;
pub mod id;
pub mod time;
pub mod verdict;
