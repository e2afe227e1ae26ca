//! An answer of gRPC, told as HTTP+JSON would tell it: its message as ProtoJSON, its status as `google.rpc.Status` in JSON.
//!
//! So the rules about tasks, streams and errors are the same for every binding. What only gRPC has is kept beside it, for the
//! rules of gRPC itself.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use sabir_model::Base64;
use sabir_outbound::client::OpenResponse;
use sabir_outbound::{DialError, Response};
use sabir_proto::prost::Message;
use sabir_proto::rpc;
use sabir_wire::grpc::{GRPC, GrpcCode};
use sabir_wire::{Binding, GrpcEnd, PeerError, PeerProtocol};
use serde_json::{Value, json};

use super::exchange::{Answered, media_type};
use super::grpc_messages::GrpcMessages;
use super::proto_json::{self, GrpcMethod};
use super::wire_error::WireError;

/// What of an answer only gRPC has.
#[derive(Debug)]
pub struct GrpcAnswer {
    pub http_status: u16,
    /// `None`: nothing says how the call ended.
    pub code: Option<GrpcCode>,
    /// The call failed.
    pub error: Option<PeerError>,
    /// Why the body is not what gRPC wants: a media type, and one message.
    pub framing: Option<String>,
    /// Why its message cannot be read.
    pub unreadable: Option<String>,
    /// Without its prefix.
    pub message: Bytes,
}

/// How a call ended.
pub struct GrpcClose {
    /// `None`: nothing says so.
    pub code: Option<GrpcCode>,
    pub error: Option<WireError>,
}

/// How a stream begins.
pub enum GrpcOpening {
    /// It was refused before its first message.
    Refused(Box<Answered>),
    /// With the first bytes, if there are some already.
    Begun(Bytes),
}

/// How long a server may take to refuse a stream whose head it has sent.
const REFUSAL: Duration = Duration::from_secs(2);

/// The protocol that the JSON of this answer belongs to.
pub fn text_protocol(protocol: PeerProtocol) -> PeerProtocol {
    match protocol.binding() {
        Binding::JsonRpc | Binding::HttpJson => protocol,
        Binding::Grpc => {
            PeerProtocol::new(protocol.version(), Binding::HttpJson).expect("versions with gRPC have HTTP+JSON")
        }
    }
}

impl Answered {
    pub fn of_grpc(protocol: PeerProtocol, method: &GrpcMethod, response: Response) -> Self {
        let Response { status, headers, body, trailers } = response;
        let end = grpc_end(&headers, &trailers);
        let (http_status, code) = (status.as_u16(), code_of(&end));
        let mut grpc =
            GrpcAnswer { http_status, code, error: None, framing: None, unreadable: None, message: Bytes::new() };
        if status.is_success() {
            grpc.framing = wrong_type(&headers);
        }
        if let Some(error) = error_of(protocol, http_status, &end) {
            let json = code.map(|code| json!({"error": error_object(code, &end, &error)}).to_string());
            let body = Bytes::from(json.unwrap_or_default());
            return Answered {
                status: error.status,
                headers,
                body,
                grpc: Some(GrpcAnswer { error: Some(error), ..grpc }),
            };
        }
        let json = only_message(&body, &mut grpc).and_then(|message| {
            grpc.message = message;
            method.read_response(&grpc.message)
        });
        let body = match json {
            Ok(json) => Bytes::from(json.to_string()),
            Err(why) => {
                grpc.unreadable = Some(why);
                Bytes::new()
            }
        };
        Answered { status: http_status, headers, body, grpc: Some(grpc) }
    }
}

impl GrpcClose {
    pub fn of(protocol: PeerProtocol, http_status: u16, headers: &HeaderMap, trailers: &HeaderMap) -> Self {
        let end = grpc_end(headers, trailers);
        let code = code_of(&end);
        let error = error_of(protocol, http_status, &end).map(|error| {
            let object = code.map(|code| error_object(code, &end, &error)).unwrap_or_default();
            WireError::new(error, object)
        });
        GrpcClose { code, error }
    }
}

impl GrpcOpening {
    pub async fn read(
        protocol: PeerProtocol,
        method: &GrpcMethod,
        response: &mut OpenResponse,
        patience: Duration,
    ) -> Result<Self, DialError> {
        let first = match response.chunk(REFUSAL.min(patience)).await {
            Ok(first) => first.unwrap_or_default(),
            // It will come, or be refused by the status behind it.
            Err(DialError::BodyTimeout { .. }) => return Ok(GrpcOpening::Begun(Bytes::new())),
            Err(error) => return Err(error),
        };
        let OpenResponse { status, headers, trailers, .. } = response;
        if GrpcClose::of(protocol, status.as_u16(), headers, trailers).error.is_none() {
            return Ok(GrpcOpening::Begun(first));
        }
        let (headers, trailers) = (headers.clone(), trailers.clone());
        let refusal = Response { status: *status, headers, body: Bytes::new(), trailers };
        Ok(GrpcOpening::Refused(Box::new(Answered::of_grpc(protocol, method, refusal))))
    }
}

impl GrpcAnswer {
    /// `gRPC NOT_FOUND`.
    pub fn words(&self) -> String {
        match self.code {
            Some(code) => format!("gRPC {}", code.name()),
            None => format!("HTTP {} without grpc-status", self.http_status),
        }
    }
}

/// In the trailers, or in the headers where there is no body.
fn grpc_end<'h>(headers: &'h HeaderMap, trailers: &'h HeaderMap) -> GrpcEnd<'h> {
    let place = if trailers.contains_key("grpc-status") { trailers } else { headers };
    let text = |name: &str| place.get(name).and_then(|value| value.to_str().ok());
    GrpcEnd { status: text("grpc-status"), message: text("grpc-message"), details: text("grpc-status-details-bin") }
}

fn code_of(end: &GrpcEnd<'_>) -> Option<GrpcCode> {
    end.status?.parse().ok().map(GrpcCode)
}

/// `None`: the call went well, or nothing says that it did not.
fn error_of(protocol: PeerProtocol, http_status: u16, end: &GrpcEnd<'_>) -> Option<PeerError> {
    let has_failed = match code_of(end) {
        Some(code) => code != GrpcCode::OK,
        None => !(200..300).contains(&http_status),
    };
    has_failed.then(|| protocol.read_grpc_error(http_status, end))
}

/// The member `error` of HTTP+JSON.
fn error_object(code: GrpcCode, end: &GrpcEnd<'_>, error: &PeerError) -> Value {
    let message = if end.message.is_none_or(str::is_empty) { "" } else { error.message.as_str() };
    let mut object = json!({"code": error.status, "status": code.name(), "message": message});
    let status =
        end.details.and_then(Base64::parse).and_then(|text| rpc::Status::decode(text.decode().as_slice()).ok());
    if let Some(status) = status {
        object["details"] = status.details.iter().map(proto_json::read_detail).collect();
    }
    object
}

fn wrong_type(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(media_type);
    match content_type {
        Some(name) if name == GRPC || name == "application/grpc+proto" => None,
        Some(name) => Some(format!("the answer has the type {name}")),
        None => Some("the answer has no Content-Type".to_owned()),
    }
}

/// The first message of a body. That there is no other one is noted.
fn only_message(body: &[u8], grpc: &mut GrpcAnswer) -> Result<Bytes, String> {
    let mut messages = GrpcMessages::new(body.len());
    messages.feed(body);
    let Some(first) = messages.next()? else {
        return Err(if body.is_empty() { "there is no message" } else { "its message is cut off" }.to_owned());
    };
    if messages.is_cut_off() {
        grpc.framing = Some("more than one message came".to_owned());
    }
    Ok(first)
}
