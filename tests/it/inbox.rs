//! What LiveKit tells us: who may, how much of it, in which order, and what becomes of it.

mod hardness;
mod listener;
mod recorded;
pub(crate) mod sign;
mod storms;
mod told;
