//! The demo: a campaign played against a real server, and against what teams write first.
//!
//! [`script`] says which calls are intended and what happens to each. [`play`] plays it as a
//! queue would that delivers at least once ([`queue`]), against two workers: [`ours`], a
//! `serve` process that is killed on the way, and [`naive`], a lock and three calls. Each
//! has a sandbox of its own, and what counts is what that platform counted.

mod naive;
mod ours;
mod play;
mod queue;
mod report;
mod rooms;
mod run;
mod screen;
mod script;
mod side;
mod summary;
mod table;
mod times;

pub use report::{Report, Told};
pub use run::{Error, Options, run};
pub use screen::Shown;
pub use side::Late;
