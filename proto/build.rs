//! Compiles the proto without `protoc`: messages and services, their JSON names, and the
//! descriptors that reflection serves.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let files = [
        "ringonce/v1/attempt.proto",
        "ringonce/v1/operations_service.proto",
        "ringonce/v1/placement_service.proto",
    ];
    let descriptors = protox::compile(files, ["proto"])?;
    let encoded = descriptors.encode_to_vec();
    std::fs::write(out.join("ringonce.v1.descriptors"), &encoded)?;
    // Timestamp and Duration of pbjson-types carry the JSON form that the standard ones lack.
    tonic_prost_build::configure()
        .compile_well_known_types(true)
        .extern_path(".google.protobuf", "::pbjson_types")
        .btree_map(".")
        .emit_rerun_if_changed(false)
        .compile_fds(descriptors)?;
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .extern_path(".google.protobuf", "::pbjson_types")
        .btree_map([".ringonce"])
        .build(&[".ringonce.v1"])?;
    Ok(())
}
