//! gRPC in: what callers see of this service, and nothing that decides.
//!
//! It parses once at the edge, asks the [`Core`], and says what came of it. It
//! promises that every error carries a stable [`Reason`], that what was decided is
//! never an error, and that a wait ends before its caller's deadline with the present state.
//! It never touches the store and never dials.

mod backed;
mod bulk;
mod convert;
mod core;
mod deadline;
mod health;
mod limits;
mod operations_service;
mod page;
mod placement_service;
pub mod proto;
mod reviews;
mod server;
mod status;
mod watch;

pub use self::backed::Backed;
pub use self::core::{
    CancelCommand, CancelResult, Changed, Changes, Core, Cursor, Filter, LookError, NotDeleted,
    NotResolved, PageCursor, PlaceError, Position, ReadError, Removal, Resolve, ReviewGroup,
    Reviews, RoomFilter, RoomPage, Standing, Status, Tally, Told, Version,
};
pub use convert::{Violation, Violations, attempt, place_call, timestamp};
pub use deadline::{Deadline, DeadlineLayer, DeadlineService};
pub use limits::{Limits, RequestLimits};
pub use operations_service::Operations;
pub use placement_service::Placement;
pub use server::{Error, Parts, serve};
pub use status::{DOMAIN, Reason};
