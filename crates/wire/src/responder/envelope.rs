//! What a binding writes around a payload or an error.

use std::borrow::Cow;

use sabir_model::Error;

use crate::errors::{self, GatewayError, RpcError};
use crate::gateway::GatewayOperation;
use crate::http_json::EndpointGroup;
use crate::{Operation, ProtocolVersion, json, percent};

#[derive(Clone)]
pub(crate) enum Envelope<'a> {
    JsonRpc(JsonRpcEnvelope<'a>),
    HttpJson(EndpointGroup),
    Gateway(GatewayOperation),
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
        }
    }

    /// Writes what comes before a result.
    pub fn write_start(&self, out: &mut Vec<u8>) {
        if let Envelope::JsonRpc(JsonRpcEnvelope { id, .. }) = self {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b",\"result\":");
        }
    }

    /// Writes what comes after a result.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        if let Envelope::JsonRpc(_) = self {
            out.push(b'}');
        }
    }

    pub fn frames(&self) -> FrameFormat {
        match self {
            Envelope::JsonRpc(envelope) => envelope.frames,
            Envelope::HttpJson(_) | Envelope::Gateway(_) => FrameFormat::Bare,
        }
    }

    pub fn content_type(&self) -> &'static str {
        match self {
            Envelope::JsonRpc(_) | Envelope::Gateway(_) => "application/json",
            Envelope::HttpJson(group) => group.content_type(),
        }
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
        }
    }

    pub fn error_status(&self, error: &Error) -> u16 {
        match self {
            Envelope::JsonRpc(_) => errors::rpc_status(error),
            Envelope::HttpJson(group) => group.error_status(error),
            Envelope::Gateway(_) => errors::gateway_status(error),
        }
    }

    pub fn error_content_type(&self) -> &'static str {
        match self {
            Envelope::JsonRpc(_) | Envelope::Gateway(_) => "application/json",
            Envelope::HttpJson(group) => group.error_content_type(),
        }
    }
}
