//! A LiveKit that never rings anybody, as a machine without I/O.
//!
//! It answers Twirp requests ([`Platform::handle`]) and tells what became due
//! ([`Platform::due`]): answers of dials that rang, connections that broke, signed
//! webhooks. Time comes in as a [`Duration`](std::time::Duration) since an arbitrary
//! start, chance from a seed: the same requests at the same times give the same answers.
//!
//! What it does was recorded on livekit-server 1.13.5 and livekit-sip 1.11.0; where it
//! differs from the recordings, it is wrong. Callees are scripted by the last two digits
//! of the number ([`callees()`]); faults are thrown by name ([`Fault`]).
//!
//! It shares no types with the rest of `ringonce`, so that it cannot agree with our
//! mistakes about LiveKit.
//!
//! Glossary: a *room* lives on the platform's node; its *record* is what the platform's
//! Redis says of it, and the two can part ([`Fault`] `redis_flush`, `server_restart`).
//! A *call* is one `CreateSIPParticipant`; its *leg* is the phone that rings.

mod agenda;
mod agents;
mod answer;
mod breaks;
mod callees;
mod calls;
mod carrier;
mod dial;
mod encode;
mod endings;
mod faults;
mod hooks;
mod machine;
mod message;
mod people;
mod records;
mod rooms;
mod serve;
mod settings;
mod state;
mod timings;
mod token;
mod trunks;

pub use callees::{Callee, callees};
pub use faults::{Fault, FaultError, fault_names, faults};
pub use hooks::{Delivery, Hook, HookTicket};
pub use machine::Platform;
pub use message::{CallTicket, Output, Reply, Request, Response};
pub use settings::{Behaviour, Keys, Settings, Times, Trunk, Worker};
pub use state::{LegPeak, Phone, PhoneEvent, RoomView, SipCall, State, WebhookCounts};
pub use timings::{CallTimes, Subject, Tally, Timings};
pub use token::sign;
