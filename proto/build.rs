//! Compiles the proto without `protoc`.

fn main() {}
