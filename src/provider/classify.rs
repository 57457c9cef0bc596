//! What the answer to a dial proves: one table.
