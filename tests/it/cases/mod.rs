//! Faults that others met in the field, one test and more a fault, named by its number.
//!
//! The page `src/docs/cases.md` leads from the number to its tests, here and elsewhere.

mod agents;
mod dials;
mod ends;
mod errors;
mod rooms;
mod tap;
mod trunks;
mod webhooks;
