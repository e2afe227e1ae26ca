//! What a binding writes around a payload or an error.

use std::borrow::Cow;

use sabir_model::Error;

use super::Wrapper;
use crate::errors::{self, GatewayError, RpcError};
use crate::gateway::GatewayOperation;
use crate::grpc::{GRPC, GrpcStatus, MessagePrefix, prefix};
use crate::http_json::EndpointGroup;
use crate::{Operation, ProtocolVersion, json, percent};

#[derive(Clone)]
pub(crate) enum Envelope<'a> {
    JsonRpc(JsonRpcEnvelope<'a>),
    HttpJson(EndpointGroup),
    Gateway(GatewayOperation),
    /// gRPC of this version: a prefix before each message, and a status behind the last.
    Grpc(ProtocolVersion),
}

#[derive(Clone)]
pub(crate) struct JsonRpcEnvelope<'a> {
    /// JSON, as the caller wrote it.
    pub id: Cow<'a, str>,
    /// Errors are written as this version has them.
    pub version: ProtocolVersion,
    pub frames: FrameFormat,
}

/// How a JSON-RPC mount writes the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFormat {
    /// Each frame is a whole JSON-RPC response.
    Enveloped,
    /// Each frame is the event alone (`?envelope=none`).
    Bare,
}

impl FrameFormat {
    pub fn of_query(query: Option<&str>) -> Self {
        let is_bare = percent::parameters(query).any(|parameter| parameter == ("envelope", "none"));
        if is_bare { FrameFormat::Bare } else { FrameFormat::Enveloped }
    }
}

impl Envelope<'_> {
    pub fn into_owned(self) -> Envelope<'static> {
        match self {
            Envelope::JsonRpc(JsonRpcEnvelope { id, version, frames }) => {
                Envelope::JsonRpc(JsonRpcEnvelope { id: Cow::Owned(id.into_owned()), version, frames })
            }
            Envelope::HttpJson(group) => Envelope::HttpJson(group),
            Envelope::Gateway(operation) => Envelope::Gateway(operation),
            Envelope::Grpc(version) => Envelope::Grpc(version),
        }
    }

    /// Writes what comes before a result.
    pub fn write_start(&self, out: &mut Vec<u8>) {
        match self {
            Envelope::JsonRpc(JsonRpcEnvelope { id, .. }) => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                out.extend_from_slice(id.as_bytes());
                out.extend_from_slice(b",\"result\":");
            }
            Envelope::Grpc(_) => prefix::begin(out),
            Envelope::HttpJson(_) | Envelope::Gateway(_) => {}
        }
    }

    /// Writes what comes after a result whose `write_start` was at `start`.
    pub fn write_end(&self, start: usize, out: &mut Vec<u8>) {
        match self {
            Envelope::JsonRpc(_) => out.push(b'}'),
            Envelope::Grpc(_) => prefix::end(start, out),
            Envelope::HttpJson(_) | Envelope::Gateway(_) => {}
        }
    }

    /// What is written around a result of this length.
    pub fn wrapper(&self, length: usize) -> Wrapper {
        let mut wrapper = Wrapper { before: Vec::new(), after: Vec::new() };
        match self {
            Envelope::Grpc(_) => wrapper.before.extend_from_slice(&MessagePrefix::plain(length).write()),
            _ => {
                self.write_start(&mut wrapper.before);
                self.write_end(0, &mut wrapper.after);
            }
        }
        wrapper
    }

    pub fn frames(&self) -> FrameFormat {
        match self {
            Envelope::JsonRpc(envelope) => envelope.frames,
            Envelope::HttpJson(_) | Envelope::Gateway(_) | Envelope::Grpc(_) => FrameFormat::Bare,
        }
    }

    pub fn content_type(&self) -> &'static str {
        match self {
            Envelope::JsonRpc(_) | Envelope::Gateway(_) => "application/json",
            Envelope::HttpJson(group) => group.content_type(),
            Envelope::Grpc(_) => GRPC,
        }
    }

    /// The status behind the last message. `None`: the binding has none.
    pub fn end_status(&self, error: Option<&Error>, operation: Option<Operation>) -> Option<GrpcStatus> {
        let Envelope::Grpc(version) = self else { return None };
        Some(error.map_or_else(GrpcStatus::ok, |error| GrpcStatus::of(error, *version, operation)))
    }

    /// Writes an error with its envelope. `frames` counts for JSON-RPC only.
    pub fn write_error(&self, error: &Error, operation: Option<Operation>, frames: FrameFormat, out: &mut Vec<u8>) {
        match self {
            Envelope::JsonRpc(JsonRpcEnvelope { id, version, .. }) => {
                match frames {
                    FrameFormat::Enveloped => {
                        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                        out.extend_from_slice(id.as_bytes());
                        out.extend_from_slice(b",\"error\":");
                    }
                    FrameFormat::Bare => out.extend_from_slice(b"{\"error\":"),
                }
                json::write(&RpcError { error, version: *version, operation }, out);
                out.push(b'}');
            }
            Envelope::HttpJson(group) => group.write_error(error, operation, out),
            Envelope::Gateway(_) => json::write(&GatewayError(error), out),
            // It is in the trailers.
            Envelope::Grpc(_) => {}
        }
    }

    pub fn error_status(&self, error: &Error) -> u16 {
        match self {
            Envelope::JsonRpc(_) => errors::rpc_status(error),
            Envelope::HttpJson(group) => group.error_status(error),
            Envelope::Gateway(_) => errors::gateway_status(error),
            Envelope::Grpc(_) => 200,
        }
    }

    pub fn error_content_type(&self) -> &'static str {
        match self {
            Envelope::JsonRpc(_) | Envelope::Gateway(_) => "application/json",
            Envelope::HttpJson(group) => group.error_content_type(),
            Envelope::Grpc(_) => GRPC,
        }
    }
}
