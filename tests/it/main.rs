//! The whole product from outside, one binary: each module a topic.

#[cfg(test)]
mod api;
mod config;
#[cfg(test)]
mod provider;
mod sandbox;
mod store;
