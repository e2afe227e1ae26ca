//! Makes the Rust code of the `.proto` files in `crates/proto`, without `protoc`.
//!
//! `sabir-proto-generator FOLDER` writes one file per package and `descriptors.bin`, what the reflection service shows, into
//! FOLDER. The result is committed; `cargo xtask check` makes it once more and compares.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prost::Message;

/// All files with messages of ours; what they import comes with `protox`.
const FILES: [&str; 7] = [
    "lf/a2a/v1/a2a.proto",
    "a2a/v1/a2a.proto",
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("name the folder to write to")?;
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto");
    let mut descriptors = protox::compile(FILES, [&root])?;
    let mut shown = descriptors.clone();
    for file in &mut shown.file {
        // Comments and positions.
        file.source_code_info = None;
    }
    std::fs::write(Path::new(&folder).join("descriptors.bin"), shown.encode_to_vec())?;
    // The older reflection service has the messages of the newer one.
    descriptors.file.retain(|file| !file.package().ends_with("v1alpha"));
    prost_build::Config::new()
        .out_dir(&folder)
        // Files are shared with the body they came in.
        .bytes(["."])
        // The same bytes for the same value.
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
