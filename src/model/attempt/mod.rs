//! The attempt: one intended dialing, and the one machine that says what may become of it.

mod end;
mod history;
mod passage;
mod record;
mod review;
mod spec;
mod state;
mod waiting;

pub use end::{CancelRequest, EndCause, Mode, Settled, Stop, StopWhy};
pub use history::{Cause, Evidence, Transition};
pub use passage::Passage;
pub use record::{Answered, Attempt, Hold, Keyed, Next, Placed};
pub use review::{Resolution, ReviewCause};
pub use spec::{AgentWanted, Follows, Gate, Keep, Spec};
pub use state::{Event, Outcome, State, transition};
pub use waiting::{Reason, Rule, Waiting};
