//! The domain: no I/O, no async, no clock. It depends on nothing else here.

pub mod attempt;
pub mod disposition;
pub mod id;
pub mod phone;
pub mod request;
pub mod time;
pub mod verdict;
pub mod window;
