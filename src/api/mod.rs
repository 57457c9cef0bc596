//! gRPC in.

pub mod proto;
