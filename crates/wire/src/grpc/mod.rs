//! gRPC: the operation is the path, the parameters are one protobuf message, errors are a status after the body.
//!
//! A message travels behind a prefix of five bytes (`prefix`). The status and its details travel in trailers (`status`).
//! Here are the services that gRPC clients expect beside A2A, too: health and reflection. HTTP/2, compression and deadlines
//! are the server's.

mod health;
pub(crate) mod prefix;
mod reflection;
mod route;
mod status;

pub use health::{HealthCall, HealthStatus};
pub use prefix::{MessagePrefix, PREFIX_LENGTH};
pub use reflection::reflect;
pub use route::{GrpcRoute, GrpcService, HealthMethod};
pub use status::{GrpcCode, GrpcStatus};

pub(crate) use route::{GrpcPath, dialect, full_name, match_path, rpc_name, service_name};

/// The media type of a gRPC response.
pub const GRPC: &str = "application/grpc";
