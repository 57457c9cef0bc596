//! The memory: the only module that writes state.

pub mod store;
