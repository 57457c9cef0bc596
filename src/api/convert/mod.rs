//! Between the messages of the proto and the types of the domain.
//!
//! Inwards a message is parsed once and all that is wrong with it is said at once. Outwards
//! every enum is mapped value by value, so that a new one of the domain does not compile
//! until the proto has it. No phone number leaves but masked.

mod enums;
mod explain;
mod fields;
mod outward;
mod place_call;
mod read;
mod review;
mod room;
mod status;
mod stop;
mod texts;
mod waits;

pub(crate) use enums::{cancel_result, canceled_attempt};
pub(crate) use explain::{of_another_history, of_holder};
pub use fields::{Violation, Violations, timestamp};
pub use outward::attempt;
pub use place_call::place_call;
pub(crate) use review::{
    ListReviews, list_reviews, resolve_attempt, resolve_attempts, review_group,
};
pub(crate) use room::{delete_room, list_rooms, room};
pub(crate) use status::{status, trouble};

pub(crate) use read::{
    CancelMany, Watching, cancel_attempt, cancel_attempts, get_attempt, list_attempts,
    watch_attempts,
};
