//! What was seen of a session's call, whoever saw it.
//!
//! A webhook and a look at the platform say the same kind of thing: at that moment this
//! participant was there, or left for that reason. [`Call`] gathers what they say. It is a
//! join-semilattice: merging is associative, commutative and idempotent, so that the order of
//! arrival, repetition, and the same fact under another event's id change nothing. What became
//! of the attempt is written elsewhere and by others; an observation is never a marker.

mod call;
mod seen;

pub use call::{Agent, Call, Leg, RoomSeen};
pub use seen::{CallStatus, Left, LeftReason, Observation, Person, Role, RoomSight, Source, Span};
