//! One intended call, at most one ring.

pub mod api;
pub mod cli;
pub mod config;
pub mod ledger;
pub mod model;
pub mod provider;
pub mod runtime;
