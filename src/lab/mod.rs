//! A LiveKit that rings nobody, and what is built upon it.
//!
//! [`platform`] is the machine: no I/O, no clock, no tasks. [`world`] puts it into the paused
//! time of a simulation, [`sandbox`] puts it on a
//! socket, with real time and real webhooks. [`stack`] runs it and a service as processes.

pub mod platform;
pub mod sandbox;
pub mod stack;
pub mod world;
