//! A LiveKit that rings nobody, and what is built upon it.
//!
//! [`platform`] is the machine: no I/O, no clock, no tasks. [`sandbox`] puts it on a
//! socket, with real time and real webhooks.

pub mod platform;
pub mod sandbox;
