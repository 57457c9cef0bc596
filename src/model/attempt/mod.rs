//! The attempt: one intended dialing, and the one machine that says what may become of it.

mod record;
mod state;

pub use record::{
    AgentWanted, Answered, Attempt, CancelRequest, Cause, EndCause, Evidence, Follows, Gate, Hold,
    Keep, Mode, Next, Placed, Reason, Rule, Settled, Spec, Stop, StopWhy, Transition, Waiting,
};
pub use state::{Event, Outcome, State, transition};
