//! Measures an A2A server from outside: a load generator that checks every reply.
//!
//! It runs on one thread, so that one core is enough to saturate a server on another one. It knows none of our other
//! crates: what it sends and expects is spelled out here, as any client would.

mod options;
mod report;
mod run;

mod place;
mod probe;
mod request;

mod stage;
mod work;

mod check;
mod connection;
mod grpc;
mod histogram;
mod http;
mod http2;
mod process;
mod protobuf;
mod sse;

pub use histogram::Quantiles;
pub use options::{Dialect, Options, Workload};
pub use report::{Report, Server};
pub use run::{Error, Progress, run};
