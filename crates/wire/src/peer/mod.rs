//! The client's half: requests to other A2A servers, and what they answer.
//!
//! The same dialects as for our own callers, in reverse. `PeerProtocol::request` writes a `Call` of the model as that
//! server wants it; `read_response`, `read_frame` and for gRPC `read_message` turn its answers into the model's nouns, strictly where the server
//! follows the specification and leniently where it does not: one odd member must not cost a whole task.

mod call;
mod error;
mod error_body;
mod grpc;
mod lenient_object;
mod lenient_response;
mod protocol;
mod request;
mod response;

pub use call::PeerCall;
pub use error::{PeerError, PeerErrorKind};
pub use grpc::GrpcEnd;
pub use protocol::{Binding, PeerProtocol};
pub use request::PeerRequest;
pub use response::Received;

#[cfg(test)]
mod tests;
