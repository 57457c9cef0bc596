//! The provider from outside: the table of verdicts over what LiveKit was recorded to
//! answer, the client over a script, and the wire over real sockets with every fault a
//! network has.

mod answers;
mod client;
mod http;
mod raw;
mod recorded;
mod script;
mod surroundings;
mod tls;
mod tokens;
mod trunks;
mod verdicts;
