//! The real program in processes of its own: a sandbox, `ringonce serve` on a file, and
//! `ringonce call` as a user types it.

mod calls;
mod command_line;
mod ends;
mod input;
mod platform;
mod rooms;
mod stack;
mod start;
mod store;
mod webhooks;
