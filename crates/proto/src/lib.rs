//! The messages of A2A over gRPC, and of the services that gRPC clients expect beside it.
//!
//! The `.proto` files are in `proto/`. The Rust code in `generated/` is made from them by `cargo xtask generate` and
//! committed, so that a build needs no other tool; `cargo xtask check` compares the two. Nothing here is edited by hand, and
//! nothing here knows what a message means.

#![allow(clippy::all)]

pub use prost;
pub use prost_types;

/// A2A 1.0.
pub mod v1 {
    include!("generated/lf.a2a.v1.rs");
}

/// A2A 0.3.
pub mod v03 {
    include!("generated/a2a.v1.rs");
}

/// The details of errors.
pub mod rpc {
    include!("generated/google.rpc.rs");
}

/// The health service.
pub mod health {
    include!("generated/grpc.health.v1.rs");
}

/// The reflection service. Its older version, `v1alpha`, has the same messages.
pub mod reflection {
    include!("generated/grpc.reflection.v1.rs");
}

/// All files as a `google.protobuf.FileDescriptorSet`, for the reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
