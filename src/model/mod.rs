//! The domain: no I/O, no async, no clock. It depends on nothing else here.

pub mod attempt;
pub mod disposition;
pub mod evidence;
pub mod id;
pub mod observation;
pub mod phone;
pub mod request;
pub mod time;
pub mod verdict;
pub mod window;
pub mod written;
