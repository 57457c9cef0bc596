//! One intended call, at most one ring.
//!
//! `ringonce` is a gRPC service that places outbound phone calls with a `LiveKit` voice agent. It
//! stands behind queues that deliver at least once, and rings a person at most once for each
//! intended call.
//!
//! ```text
//!  scheduler ──▶ api ──▶ admission ──▶ LEDGER ◀── reconcile ── looks ──┐
//!      ▲                     │           ▲                             ▼
//!      │                     └─ a try ─▶ placement ── dials ──▶ provider ──▶ LiveKit
//!      └────────── what became of it ────┘
//! ```
//!
//! # Words
//!
//! One word has one meaning, in the code, the API, the logs and these pages.
//!
//! | word | meaning |
//! |---|---|
//! | workspace | a tenant; every other id is an id within it |
//! | deployment | this installation by name; two of them leave each other's rooms alone |
//! | contact | a person, by an opaque id that is never a phone number |
//! | outreach | why that person is to be reached: one requested callback, one reminder |
//! | attempt | one intended call; the scheduler makes its id, and repeating it is safe |
//! | try | one pass from reservation to verdict; the next needs proof that the last rang nobody |
//! | session | a try's name on the platform: of room, callee and carrier records |
//! | marker | the commit just before the dial: from here on the phone may have rung |
//! | placement marker | the commit after the platform's confirmation that the call was placed |
//! | `send_by` | the last moment at which the dial may leave; the dial's token ends with it |
//! | window | after the marker: a dial in it is in flight, and asking again waits for it |
//! | horizon | after the marker: the platform can no longer start the call |
//! | hold | contact and number belong to one attempt; nobody else rings them |
//! | verdict | what the answer to a dial proves |
//! | disposition | how an attempt ended: BUSY, `NO_ANSWER`, DECLINED … |
//! | fault | whose doing that was: the callee's, the carrier's, the platform's, ours |
//! | follow-up | another call to the same person, allowed by how the last one ended |
//! | epoch | one history of the store; a copy and a backup begin another |
//!
//! # Reading order
//!
//! 1. [`model`]: the domain, pure; `model::attempt::state` is the table of transitions.
//! 2. [`ledger`]: the memory, one shape of change; `ledger::store` is the port below it.
//! 3. [`admission`]: may this become a dial, now, later or never.
//! 4. [`placement`]: a try, stage by stage, and the guard of its room.
//! 5. [`provider`]: all that knows `LiveKit`; `provider::classify` says what an answer proves.
//! 6. [`reconcile`]: what a crash or a lost answer left open.
//! 7. [`inbox`]: what LiveKit tells by webhooks, kept first and applied afterwards.
//! 8. [`node`]: all of it put together, without a socket; [`api`] and [`cli`] are around it.
//! 9. [`lab`]: a `LiveKit` that rings nobody, for proof and for trying it out; [`demo`] plays a
//!    campaign against it, [`mod@bench`] measures against it, and [`sim`] plays whole worlds of
//!    faults on it.
//!
//! [`runtime`], [`config`] and [`telemetry`] are what they all stand on. The long pages are
//! in [`docs`]: architecture, guarantees, decisions, states and errors.

pub mod admission;
pub mod api;
pub mod bench;
pub mod cli;
pub mod config;
pub mod demo;
pub mod docs;
pub mod inbox;
pub mod lab;
pub mod ledger;
pub mod model;
pub mod node;
pub mod placement;
pub mod provider;
pub mod reconcile;
pub mod runtime;
pub mod sim;
pub mod telemetry;
