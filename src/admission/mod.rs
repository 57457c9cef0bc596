//! May this become a dial?
//!
//! One commit decides. [`rules::ask`] asks the rules in order, each a pure function; the
//! pace is asked last, because it is taken and not only looked at. The same rules are
//! asked again in the commit that writes the attempt marker, since seconds pass while the
//! agent joins.
//!
//! An attempt that must wait is ours ([`queue`]): nobody has to re-submit it.

pub mod cancel;
pub mod enter;
pub mod pace;
pub mod place;
pub mod queue;
pub mod rules;

pub use cancel::{CancelCommand, CancelResult};
pub use enter::Claim;
pub use pace::Pace;
pub use place::{Admission, PlaceError};
