//! One intended call, at most one ring.

pub mod admission;
pub mod api;
pub mod cli;
pub mod config;
pub mod lab;
pub mod ledger;
pub mod model;
pub mod node;
pub mod placement;
pub mod provider;
pub mod reconcile;
pub mod runtime;
pub mod telemetry;
