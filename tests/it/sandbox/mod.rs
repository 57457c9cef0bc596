//! The sandbox: its answers and webhooks against what was recorded on a real LiveKit,
//! its races and faults, and its shell over a real socket.

mod behaviour;
mod faults;
mod hooks;
mod recorded;
mod shell;
mod world;
