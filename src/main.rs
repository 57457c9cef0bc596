//! The command line of `ringonce`.

fn main() {}
