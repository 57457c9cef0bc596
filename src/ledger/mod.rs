//! The memory: the only module that writes state.

pub mod seal;
pub mod store;
