//! The wire over HTTP.
