//! The wire formats of A2A, as pure functions: `locate` routes a request, `Endpoint::decode` turns it into a `Call` of
//! the model, and its `Responder` writes the answer.
//!
//! A dialect is the JSON or the protobuf of one protocol version; a binding is how a call travels (JSON-RPC, HTTP+JSON,
//! gRPC, the gateway).
//! Each dialect converts straight to and from the model. Nothing here knows tokio, a socket or a store.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod dialect;
mod request_head;

mod excerpt;
mod jcs;
pub mod json;
mod work;

mod peer;
mod peer_response;
mod protobuf;
mod received_message;
mod task_request;
mod wire_types;

mod card;
mod catalogue;
mod lenient;
mod v01;
mod v03;
mod v1;

mod compat;
mod percent;
mod surface;
mod version;

mod call_context;
mod decoded;
pub mod gateway;
pub mod grpc;
mod http_json;
mod jsonrpc;

mod errors;
mod responder;

#[cfg(test)]
mod fixture;

pub use card::{
    CardFormat, CardMembers, LenientCard, SigningPayload, payloads_to_sign, payloads_to_verify, read_card,
    read_card_leniently, write_card,
};
pub use catalogue::{
    CATALOGUE_TYPE, Catalogue, CatalogueAgent, CatalogueHost, CatalogueMcpServer, MCP_CARD_TYPE, MCP_SERVER_NAME,
    write_catalogue,
};
pub use compat::{CancelTerminal, Compat, TerminalMessage};
pub use decoded::Decoded;
pub use dialect::{Dialect, JsonDialect, Operation, Payload, PushMembers, Strictness};
pub use excerpt::excerpt;
pub use jcs::canonical_json;
pub use json::json_depth;
pub use peer::{Binding, GrpcEnd, PeerCall, PeerError, PeerErrorKind, PeerProtocol, PeerRequest, Received};
pub use peer_response::PeerResponse;
pub use percent::{
    encode as percent_encode, parameters as query_parameters, segment as path_segment, value as query_value,
};
pub use request_head::RequestHead;
pub use responder::{EVENT_STREAM, Reply, Responder, SplitTaskReply, TaskEncoder, TaskShape, Wrapper};
pub use surface::{Endpoint, KnownAgents, Refusal, Surface, locate};
pub use v01::V01;
pub use v1::{V1, V1Protobuf, state_name};
pub use v03::{V03, V03Proto, V03Protobuf};
pub use version::ProtocolVersion;

/// What a dialect of birth is called. `None`: no version of this program has made such tasks.
pub fn birth_name(born: sabir_model::Birth) -> Option<&'static str> {
    match born {
        v1::BIRTH => Some("1.0"),
        v03::BIRTH => Some("0.3"),
        v01::BIRTH => Some("0.1"),
        gateway::BIRTH => Some("gateway"),
        _ => None,
    }
}

/// The dialect of tasks that are made without a wire, by a program that calls the engine itself: the newest.
pub const NEWEST_BIRTH: sabir_model::Birth = v1::BIRTH;
