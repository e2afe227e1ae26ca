//! gRPC in reverse: the request with its message, and what the message or the status of an answer says.

use sabir_model::{Base64, Call, Content, Error, Json, Part};
use sabir_proto::prost::Message;
use sabir_proto::rpc;

use super::call::PeerCall;
use super::error::{PeerError, PeerErrorKind};
use super::protocol::PeerProtocol;
use super::request::PeerRequest;
use super::response::Received;
use crate::grpc::{GRPC, GrpcCode, full_name, prefix, rpc_name, service_name};
use crate::{Operation, ProtocolVersion, V1Protobuf, V03Protobuf, percent, protobuf};

/// More memory no answer may take when it is decoded.
const HEAVIEST: usize = 256 << 20;

/// How a call of gRPC ended, as trailers or headers say it.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrpcEnd<'a> {
    /// `grpc-status`; `None`: there is none, so the answer was cut off.
    pub status: Option<&'a str>,
    /// `grpc-message`, percent-encoded.
    pub message: Option<&'a str>,
    /// `grpc-status-details-bin`, base64.
    pub details: Option<&'a str>,
}

impl GrpcEnd<'_> {
    pub fn is_ok(&self) -> bool {
        self.status == Some("0")
    }
}

impl PeerProtocol {
    pub(super) fn grpc_request(self, peer: &PeerCall<'_>, operation: Operation) -> Result<PeerRequest, Error> {
        let service = service_name(self.version());
        let name = rpc_name(self.version(), operation)
            .ok_or_else(|| Error::Unsupported(format!("{} has no call for this", self.version().number())))?;
        if let Some(what) = unrepresentable(peer.call) {
            return Err(Error::Unrepresentable(format!("gRPC has no form for {what}; use JSON-RPC or HTTP+JSON")));
        }
        let mut body = Vec::new();
        prefix::begin(&mut body);
        match self.version() {
            ProtocolVersion::V1_0 => V1Protobuf.write_call(peer, &mut body),
            _ => V03Protobuf.write_call(peer, &mut body)?,
        }
        prefix::end(0, &mut body);
        Ok(PeerRequest { operation, verb: "POST", path: format!("/{service}/{name}"), headers: Vec::new(), body })
    }

    /// Reads a message: an answer, or one of a stream.
    pub fn read_message(self, operation: Operation, message: &[u8]) -> Result<Received, PeerError> {
        let method = full_name(self.version(), operation).unwrap_or_default();
        if protobuf::response_weight(&method, message) > HEAVIEST {
            return Err(PeerError::malformed(200, "it takes more memory than any answer should"));
        }
        // A Sabir marks what it could not show. That is not what its agent has made.
        if contains(message, protobuf::UNREPRESENTABLE.as_bytes()) {
            let why = "the server has something that gRPC has no form for; use JSON-RPC or HTTP+JSON";
            return Err(PeerError::new(PeerErrorKind::Unsupported, 500, why));
        }
        let read = match self.version() {
            ProtocolVersion::V1_0 => V1Protobuf.decode_response(operation, message),
            _ => V03Protobuf.decode_response(operation, message),
        };
        match read {
            Ok(response) => Ok(Received { response, violation: None }),
            Err(violation) => Err(PeerError::malformed(200, &violation.to_string())),
        }
    }

    /// What went wrong, by the status of gRPC, or by that of HTTP where there is none.
    pub fn read_grpc_error(self, http_status: u16, end: &GrpcEnd<'_>) -> PeerError {
        let Some(code) = end.status.and_then(|status| status.parse::<u8>().ok()).map(GrpcCode) else {
            let kind = PeerErrorKind::of_status(http_status).unwrap_or(PeerErrorKind::Unavailable);
            // A path that is not there is no missing task.
            let kind = if kind == PeerErrorKind::TaskNotFound { PeerErrorKind::MethodNotFound } else { kind };
            return PeerError::new(kind, http_status, "the server answered without a status of gRPC");
        };
        let text = end.message.map(|text| percent::value(text).unwrap_or(text.into()).into_owned()).unwrap_or_default();
        let details = end.details.and_then(Base64::parse).map(|details| details.decode());
        let status = details.and_then(|details| rpc::Status::decode(details.as_slice()).ok()).unwrap_or_default();
        let details = Details::of(&status);
        let kind = details
            .kind
            .or_else(|| text.split_once(':').and_then(|(name, _)| of_name(name)))
            .or_else(|| of_code(code))
            .unwrap_or(PeerErrorKind::Internal);
        let message = match details.sentence {
            Some(sentence) if !text.is_empty() => format!("{text}: {sentence}"),
            Some(sentence) => sentence,
            None if text.is_empty() => code.name().to_owned(),
            None => text,
        };
        PeerError::new(kind, http_status_of(code), &message)
    }
}

/// What protobuf cannot hold of what is sent. A marker would be another message than the one that was meant.
fn unrepresentable(call: &Call) -> Option<String> {
    let in_json = |name: &str, json: &Json| protobuf::unrepresentable(json).map(|why| format!("{name}{why}"));
    let in_option = |name: &str, json: &Option<Json>| json.as_ref().and_then(|json| in_json(name, json));
    match call {
        Call::Send(send) => {
            let in_part = |(index, part): (usize, &Part)| {
                let data = match &part.content {
                    Content::Data(data) => in_json(&format!("message.parts[{index}].data"), data),
                    _ => None,
                };
                data.or_else(|| in_option(&format!("message.parts[{index}].metadata"), &part.metadata))
            };
            let mut parts = send.message.parts.iter().enumerate();
            parts
                .find_map(in_part)
                .or_else(|| in_option("message.metadata", &send.message.metadata))
                .or_else(|| in_option("metadata", &send.metadata))
        }
        Call::Cancel(cancel) => in_option("metadata", &cancel.metadata),
        _ => None,
    }
}

#[derive(Default)]
struct Details {
    kind: Option<PeerErrorKind>,
    sentence: Option<String>,
}

impl Details {
    fn of(status: &rpc::Status) -> Self {
        let mut details = Details::default();
        for any in &status.details {
            let value = any.value.as_slice();
            match any.type_url.rsplit('/').next() {
                Some("google.rpc.ErrorInfo") => {
                    let Ok(info) = rpc::ErrorInfo::decode(value) else { continue };
                    details.kind = details.kind.or(PeerErrorKind::of_reason(&info.reason));
                    details.sentence = details.sentence.or(info.metadata.get("detail").cloned());
                }
                Some("google.rpc.BadRequest") => {
                    let Ok(request) = rpc::BadRequest::decode(value) else { continue };
                    let violations = request.field_violations.iter().take(5);
                    let each: Vec<String> =
                        violations.map(|violation| format!("{} {}", violation.field, violation.description)).collect();
                    details.sentence = details.sentence.or((!each.is_empty()).then(|| each.join("; ")));
                }
                _ => {}
            }
        }
        details
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Errors of 0.3 begin with their name.
fn of_name(name: &str) -> Option<PeerErrorKind> {
    let kinds = [
        PeerErrorKind::TaskNotFound,
        PeerErrorKind::NotCancelable,
        PeerErrorKind::PushNotSupported,
        PeerErrorKind::Unsupported,
        PeerErrorKind::ContentType,
        PeerErrorKind::InvalidAgentResponse,
        PeerErrorKind::Version,
        PeerErrorKind::Invalid,
        PeerErrorKind::InvalidRequest,
        PeerErrorKind::MethodNotFound,
        PeerErrorKind::NotJson,
        PeerErrorKind::Internal,
    ];
    match name {
        "AuthenticatedExtendedCardNotConfiguredError" => Some(PeerErrorKind::NoExtendedCard),
        "AgentUnavailableError" => Some(PeerErrorKind::Unavailable),
        "AuthenticationRequiredError" => Some(PeerErrorKind::Unauthenticated),
        "AuthorizationFailedError" => Some(PeerErrorKind::Forbidden),
        _ => kinds.into_iter().find(|kind| kind.name() == name),
    }
}

fn of_code(code: GrpcCode) -> Option<PeerErrorKind> {
    match code.name() {
        "NOT_FOUND" => Some(PeerErrorKind::TaskNotFound),
        "FAILED_PRECONDITION" => Some(PeerErrorKind::Unsupported),
        "DEADLINE_EXCEEDED" | "CANCELLED" | "ABORTED" => Some(PeerErrorKind::Unavailable),
        name => PeerErrorKind::of_reason(name),
    }
}

/// As HTTP+JSON would have it.
fn http_status_of(code: GrpcCode) -> u16 {
    match code.name() {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => 400,
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ALREADY_EXISTS" | "ABORTED" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" => 499,
        "UNIMPLEMENTED" => 501,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => 500,
    }
}

/// The media type of a request.
pub(super) const CONTENT_TYPE: &str = GRPC;
