//! The house rules that a test can hold.
