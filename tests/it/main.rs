//! The whole product from outside, one binary: each module a topic.

mod config;
mod store;
#[cfg(test)]
mod provider;
mod sandbox;
