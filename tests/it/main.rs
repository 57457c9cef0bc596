//! The whole product from outside, one binary: each module a topic.

mod api;
#[cfg(test)]
mod calls;
mod config;
#[cfg(test)]
mod process;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod store;
#[cfg(test)]
mod world;
