//! HTTP statuses, and the names that google.rpc gives to the same things.

use sabir_model::Error;

use super::code;

/// Of an HTTP+JSON answer, as 1.0 lists them.
pub(crate) fn http_status(error: &Error) -> u16 {
    row(error).0
}

pub(crate) fn grpc_name(error: &Error) -> &'static str {
    row(error).1
}

/// The status, its google.rpc name, and the title of an answer that has an HTTP status instead of a code; `None`: the title
/// of the code.
fn row(error: &Error) -> (u16, &'static str, Option<&'static str>) {
    match error {
        Error::TaskNotFound(_) => (404, "NOT_FOUND", None),
        Error::NotCancelable(_) => (400, "FAILED_PRECONDITION", None),
        Error::TaskFinished(_) => (400, "FAILED_PRECONDITION", None),
        Error::NotWaiting(_) => (400, "FAILED_PRECONDITION", None),
        Error::QuestionClosed(_) => (400, "INVALID_ARGUMENT", None),
        Error::PushNotSupported => (400, "FAILED_PRECONDITION", None),
        Error::Unsupported(_) => (400, "FAILED_PRECONDITION", None),
        Error::ContentType(_) => (400, "INVALID_ARGUMENT", None),
        Error::InvalidAgentResponse => (500, "INTERNAL", None),
        Error::ExtendedCardNotConfigured => (400, "FAILED_PRECONDITION", None),
        Error::ExtendedCardNotOffered => (400, "FAILED_PRECONDITION", None),
        Error::ExtensionRequired(_) => (400, "FAILED_PRECONDITION", None),
        Error::Version(_) => (400, "FAILED_PRECONDITION", None),
        Error::Invalid(_) => (400, "INVALID_ARGUMENT", None),
        Error::InvalidRequest(_) => (400, "INVALID_ARGUMENT", None),
        Error::MethodNotFound(_) => (404, "UNIMPLEMENTED", None),
        Error::NotJson(_) => (400, "INVALID_ARGUMENT", None),
        Error::AgentNotFound { .. } => (404, "NOT_FOUND", Some("Agent not found")),
        Error::Busy(_) => (503, "RESOURCE_EXHAUSTED", Some("Agent unavailable")),
        Error::Stopping => (503, "UNAVAILABLE", Some("Agent unavailable")),
        Error::StoreFull => (503, "UNAVAILABLE", Some("Agent unavailable")),
        Error::Overloaded => (503, "RESOURCE_EXHAUSTED", Some("Server overloaded")),
        Error::Unauthenticated(_) => (401, "UNAUTHENTICATED", Some("Authentication required")),
        Error::IdentityUnavailable => (503, "UNAVAILABLE", Some("Server unavailable")),
        Error::LimitReached { .. } => (429, "RESOURCE_EXHAUSTED", Some("Too many requests")),
        Error::Forbidden(_) => (403, "PERMISSION_DENIED", Some("Forbidden")),
        Error::Misdirected(_) => (421, "INVALID_ARGUMENT", Some("Misdirected request")),
        Error::BrokenHead(_) => (400, "INVALID_ARGUMENT", Some("Broken head")),
        Error::TooLarge { .. } => (413, "INVALID_ARGUMENT", Some("Content too large")),
        Error::UnsupportedMediaType(_) => (415, "INVALID_ARGUMENT", Some("Unsupported media type")),
        Error::UnsupportedCompression(_) => (415, "UNIMPLEMENTED", Some("Unsupported compression")),
        Error::BrokenBody(_) => (400, "INVALID_ARGUMENT", Some("Broken body")),
        Error::PathNotFound(_) => (404, "NOT_FOUND", Some("Path not found")),
        Error::ServiceNotFound => (404, "NOT_FOUND", Some("Service not found")),
        Error::VerbNotAllowed(_) => (405, "UNIMPLEMENTED", Some("Method not allowed")),
        Error::DeadlineExceeded => (504, "DEADLINE_EXCEEDED", Some("Deadline exceeded")),
        Error::Unrepresentable(_) => (500, "INTERNAL", None),
        Error::Internal(_) => (500, "INTERNAL", None),
    }
}

/// Of an answer of the gateway.
pub(crate) fn gateway_status(error: &Error) -> u16 {
    match error {
        // The decision was valid while its question was open.
        Error::QuestionClosed(_) => 409,
        _ => http_status(error),
    }
}

/// Of a JSON-RPC answer: 200, except for errors that only HTTP has a title for. An unknown agent is an error of JSON-RPC.
pub(crate) fn rpc_status(error: &Error) -> u16 {
    match (error, row(error)) {
        (Error::AgentNotFound { .. }, _) | (_, (_, _, None)) => 200,
        (_, (status, _, Some(_))) => status,
    }
}

/// In seconds. Nothing was stored, so a retry is safe.
pub(crate) fn retry_after(error: &Error) -> Option<u32> {
    match error {
        Error::LimitReached { retry_after, .. } => Some(*retry_after),
        _ => (http_status(error) == 503).then_some(5),
    }
}

/// The title where an answer has an HTTP status instead of a code.
pub(super) fn http_title(error: &Error) -> &'static str {
    row(error).2.unwrap_or_else(|| code::v1(error).1)
}
