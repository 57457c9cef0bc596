//! The domain: no I/O, no async, no clock. It depends on nothing else here.

pub mod id;
pub mod time;
