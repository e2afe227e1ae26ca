//! The bodies of errors, one for each binding.

use std::borrow::Cow;

use sabir_model::{AgentId, Error, Violation};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::code;
use super::details::{self, ErrorDetails};
use super::status;
use crate::excerpt::excerpt_with_ellipsis;
use crate::{Operation, ProtocolVersion};

pub(crate) const DOMAIN: &str = "a2a-protocol.org";

/// `{code, message, data?}`: the error of a JSON-RPC answer, and the whole body in 0.3 HTTP+JSON.
pub(crate) struct RpcError<'e> {
    pub error: &'e Error,
    pub version: ProtocolVersion,
    /// `None`: not known, or not an operation at all.
    pub operation: Option<Operation>,
}

impl Serialize for RpcError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (code, title) = self.code();
        let mut body = serializer.serialize_struct("error", 3)?;
        body.serialize_field("code", &code)?;
        body.serialize_field("message", title)?;
        // The code of these two says all, and the caller knows what it sent.
        let says_all = matches!(self.error, Error::MethodNotFound(_) | Error::NotJson(_));
        match self.version {
            _ if says_all => {}
            ProtocolVersion::V1_0 => body.serialize_field("data", &[TypedDetail(self.error)])?,
            ProtocolVersion::V0_3 | ProtocolVersion::V0_2 | ProtocolVersion::V0_1 => {
                let data = self.data();
                if !data.0.is_empty() {
                    body.serialize_field("data", &data)?;
                }
            }
        }
        body.end()
    }
}

impl RpcError<'_> {
    fn code(&self) -> code::Code {
        code::of(self.error, self.version, self.operation)
    }

    /// 0.x: one object.
    fn data(&self) -> TextMembers<'_> {
        let name = code::name(self.code());
        let mut data: Vec<details::Member<'_>> = name.into_iter().map(|name| ("name", Cow::Borrowed(name))).collect();
        let detail = |error| ("detail", Cow::Owned(details::sentence(error)));
        match (self.error, details::of(self.error), self.version) {
            (Error::Invalid(violations), _, ProtocolVersion::V0_1) => {
                data.push(detail(&Error::Invalid(as_0_1_names_it(violations))));
            }
            // 0.1 has no code for bad agent responses, and 0.x has none for extensions.
            (Error::InvalidAgentResponse, _, ProtocolVersion::V0_1) | (Error::ExtensionRequired(_), ..) => {
                data.push(detail(self.error));
            }
            (_, ErrorDetails::Violations(_), _) => data.push(detail(self.error)),
            (_, ErrorDetails::Members(members), _) => data.extend(members),
        }
        TextMembers(data)
    }
}

/// In 0.1 task and session are outside of the message and have other names.
fn as_0_1_names_it(violations: &[Violation]) -> Vec<Violation> {
    let rename = |violation: &Violation| {
        let field = match violation.field.as_str() {
            "message.taskId" => "id",
            "message.contextId" => "sessionId",
            field => field,
        };
        Violation { field: field.to_owned(), description: violation.description.clone() }
    };
    violations.iter().map(rename).collect()
}

/// google.rpc.Status as 1.0 has it over HTTP+JSON.
pub(crate) struct GoogleStatus<'e>(pub &'e Error);

impl Serialize for GoogleStatus<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outer = serializer.serialize_map(Some(1))?;
        outer.serialize_entry("error", &GoogleStatusBody(self.0))?;
        outer.end()
    }
}

struct GoogleStatusBody<'e>(&'e Error);

impl Serialize for GoogleStatusBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("error", 4)?;
        body.serialize_field("code", &status::http_status(self.0))?;
        body.serialize_field("status", status::grpc_name(self.0))?;
        body.serialize_field("message", status::http_title(self.0))?;
        // Clients of this binding look at the reason alone, so there is always one.
        match details::of(self.0) {
            ErrorDetails::Violations(_) => {
                body.serialize_field("details", &(TypedDetail(self.0), ReasonDetail(self.0)))?
            }
            ErrorDetails::Members(_) => body.serialize_field("details", &[TypedDetail(self.0)])?,
        }
        body.end()
    }
}

/// RFC 9457, for callers that name no version.
pub(crate) struct ProblemDetails<'e> {
    pub error: &'e Error,
    pub version: ProtocolVersion,
    pub status: u16,
}

impl Serialize for ProblemDetails<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = code::reason(self.error).to_ascii_lowercase().replace('_', "-");
        let (a2a_code, _) = code::of(self.error, self.version, None);
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("type", &format_args!("urn:a2a:error:{kind}"))?;
        body.serialize_entry("title", status::http_title(self.error))?;
        body.serialize_entry("status", &self.status)?;
        body.serialize_entry("detail", &details::sentence(self.error))?;
        body.serialize_entry("a2a_code", &a2a_code)?;
        if let Some(task) = details::task_of(self.error) {
            body.serialize_entry("task_id", &excerpt_with_ellipsis(task.as_str()))?;
        }
        body.end()
    }
}

/// `{"error": text}`, the text beginning with what kind of error it is.
pub(crate) struct GatewayError<'e>(pub &'e Error);

impl Serialize for GatewayError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(Some(1))?;
        body.serialize_entry("error", &GatewayText(self.0))?;
        body.end()
    }
}

/// The text alone.
pub(crate) struct GatewayText<'e>(pub &'e Error);

impl Serialize for GatewayText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sentence = details::sentence(self.0);
        let text = match self.0 {
            Error::AgentNotFound { named, known } => {
                let known: Vec<&str> = known.iter().map(AgentId::as_str).collect();
                format!("agent not found: {}; known: {}", excerpt_with_ellipsis(named), known.join(", "))
            }
            Error::TaskNotFound(task) => format!("run not found: {}", excerpt_with_ellipsis(task.as_str())),
            Error::PathNotFound(_) => format!("not found: {sentence}"),
            // In all three cases there is no run that could be stopped or answered.
            Error::NotCancelable(_) | Error::NotWaiting(_) | Error::TaskFinished(_) => {
                "bad request: task is not active".to_owned()
            }
            Error::Busy(_) | Error::Stopping | Error::StoreFull | Error::Overloaded | Error::IdentityUnavailable => {
                format!("unavailable: {sentence}")
            }
            Error::Unauthenticated(_) => format!("unauthorized: {sentence}"),
            Error::LimitReached { .. } => format!("too many requests: {sentence}"),
            Error::QuestionClosed(_) => format!("conflict: {sentence}"),
            Error::Forbidden(_) => format!("forbidden: {sentence}"),
            Error::DeadlineExceeded | Error::Unrepresentable(_) | Error::Internal(_) => sentence,
            Error::PushNotSupported
            | Error::Unsupported(_)
            | Error::ContentType(_)
            | Error::InvalidAgentResponse
            | Error::ExtendedCardNotConfigured
            | Error::ExtendedCardNotOffered
            | Error::ExtensionRequired(_)
            | Error::Version(_)
            | Error::Invalid(_)
            | Error::InvalidRequest(_)
            | Error::MethodNotFound(_)
            | Error::NotJson(_)
            | Error::Misdirected(_)
            | Error::BrokenHead(_)
            | Error::TooLarge { .. }
            | Error::UnsupportedMediaType(_)
            | Error::UnsupportedCompression(_)
            | Error::BrokenBody(_)
            | Error::ServiceNotFound
            | Error::VerbNotAllowed(_) => format!("bad request: {sentence}"),
        };
        serializer.serialize_str(&text)
    }
}

/// One typed detail of 1.0: a BadRequest where fields are at fault, else an ErrorInfo.
struct TypedDetail<'e>(&'e Error);

impl Serialize for TypedDetail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut detail = serializer.serialize_map(None)?;
        match details::of(self.0) {
            ErrorDetails::Violations(violations) => {
                let fields: Vec<TextMembers<'_>> = violations
                    .into_iter()
                    .map(|(field, description)| TextMembers(vec![("field", field), ("description", description)]))
                    .collect();
                detail.serialize_entry("@type", "type.googleapis.com/google.rpc.BadRequest")?;
                detail.serialize_entry("fieldViolations", &fields)?;
            }
            ErrorDetails::Members(members) => {
                detail.serialize_entry("@type", "type.googleapis.com/google.rpc.ErrorInfo")?;
                detail.serialize_entry("reason", code::reason(self.0))?;
                detail.serialize_entry("domain", DOMAIN)?;
                if !members.is_empty() {
                    detail.serialize_entry("metadata", &TextMembers(members))?;
                }
            }
        }
        detail.end()
    }
}

/// An ErrorInfo with nothing but the reason.
struct ReasonDetail<'e>(&'e Error);

impl Serialize for ReasonDetail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut detail = serializer.serialize_map(Some(3))?;
        detail.serialize_entry("@type", "type.googleapis.com/google.rpc.ErrorInfo")?;
        detail.serialize_entry("reason", code::reason(self.0))?;
        detail.serialize_entry("domain", DOMAIN)?;
        detail.end()
    }
}

struct TextMembers<'e>(Vec<details::Member<'e>>);

impl Serialize for TextMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}
