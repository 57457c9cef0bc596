//! The generated messages and services of `ringonce.v1`, with their JSON names.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    unused_qualifications,
    reason = "generated code; the proto files are its documentation"
)]

include!(concat!(env!("OUT_DIR"), "/ringonce.v1.rs"));
include!(concat!(env!("OUT_DIR"), "/ringonce.v1.serde.rs"));

/// The descriptors of every file above, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ringonce.v1.descriptors"));

impl attempt::State {
    /// Whether nothing of the call changes any more by itself.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Refused | Self::Ended | Self::NotConnected | Self::NotDialed | Self::Canceled => {
                true
            }
            Self::Unspecified
            | Self::Queued
            | Self::Deferred
            | Self::Reserved
            | Self::Dialing
            | Self::Answered
            | Self::Uncertain
            | Self::NeedsReview => false,
        }
    }
}
