//! All that knows LiveKit.
//!
//! [`client::Client`] asks, over the seam [`wire::Wire`]; [`classify`] says what the
//! answer to a dial proves. A dial is sent once: nothing in here repeats it, and what
//! lies below (the pool, redirects, proxies, the HTTP library's own retries) is set so
//! that it cannot either. Only `placement` and `reconcile` hold a client.

pub mod call;
pub mod classify;
pub mod client;
pub mod dial;
pub mod dispatch;
pub mod health;
pub mod http;
mod log;
pub mod names;
pub mod participants;
pub mod rooms;
pub mod skew;
pub mod token;
pub mod trunks;
pub mod twirp;
pub mod wire;

pub use call::{Call, Doubt, Refused};
pub use classify::{DialContext, is_answer, overloaded, put_out, trunk_missing, verdict};
pub use client::{Client, Limits};
pub use dial::{Dial, DialReply};
pub use dispatch::Lives;
pub use health::{Health, Trouble};
pub use names::{Metadata, RoutingMetadata, VERSION as METADATA_VERSION};
pub use participants::{CallStatus, Kind, Participant, State as ParticipantState};
pub use rooms::{Gone, NewRoom, RoomSeen};
pub use skew::Skew;
pub use token::Credentials;
pub use trunks::{TrunkError, TrunkId};
