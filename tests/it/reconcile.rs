//! What is open gets settled by looking alone: no webhook reaches anybody here.

mod crowd;
mod lost;
mod review;
mod silent;
mod stray;
mod takeover;
mod told;
