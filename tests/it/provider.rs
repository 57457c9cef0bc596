//! The provider from outside: the table of verdicts over what LiveKit was recorded to
//! answer, and the wire over real sockets with every fault a network has.

mod client;
mod http;
mod verdicts;
