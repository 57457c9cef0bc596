//! The whole product from outside, one binary: each module a topic.

#[cfg(test)]
mod api;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod config;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod store;
#[cfg(test)]
mod world;
