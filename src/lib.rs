//! One intended call, at most one ring.

pub mod lab;
pub mod ledger;
pub mod model;
pub mod runtime;
