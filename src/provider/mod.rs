//! All that knows LiveKit.

pub mod wire;
