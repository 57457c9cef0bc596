//! The whole product from outside, one binary: each module a topic.

#[cfg(test)]
mod api;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod config;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod history;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod packaging;
#[cfg(test)]
mod process;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod reconcile;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod rooms;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod smoke;
#[cfg(test)]
mod stack;
#[cfg(test)]
mod status;
#[cfg(test)]
mod store;
#[cfg(test)]
mod world;
