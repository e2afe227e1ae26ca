//! HTTP statuses, and the names that google.rpc gives to the same things.

use sabir_model::Error;

use super::code;

/// Of an HTTP+JSON answer, as 1.0 lists them.
pub(crate) fn http_status(error: &Error) -> u16 {
    row(error).0
}

pub(super) fn grpc_name(error: &Error) -> &'static str {
    row(error).1
}

fn row(error: &Error) -> (u16, &'static str) {
    match error {
        Error::TaskNotFound(_) => (404, "NOT_FOUND"),
        Error::NotCancelable(_) => (400, "FAILED_PRECONDITION"),
        Error::TaskFinished(_) => (400, "FAILED_PRECONDITION"),
        Error::NotWaiting(_) => (400, "FAILED_PRECONDITION"),
        Error::QuestionClosed(_) => (400, "INVALID_ARGUMENT"),
        Error::PushNotSupported => (400, "FAILED_PRECONDITION"),
        Error::Unsupported(_) => (400, "FAILED_PRECONDITION"),
        Error::ContentType(_) => (400, "INVALID_ARGUMENT"),
        Error::InvalidAgentResponse => (500, "INTERNAL"),
        Error::ExtendedCardNotConfigured => (400, "FAILED_PRECONDITION"),
        Error::ExtendedCardNotOffered => (400, "FAILED_PRECONDITION"),
        Error::ExtensionRequired(_) => (400, "FAILED_PRECONDITION"),
        Error::Version(_) => (400, "FAILED_PRECONDITION"),
        Error::Invalid(_) => (400, "INVALID_ARGUMENT"),
        Error::InvalidRequest(_) => (400, "INVALID_ARGUMENT"),
        Error::MethodNotFound(_) => (404, "UNIMPLEMENTED"),
        Error::NotJson(_) => (400, "INVALID_ARGUMENT"),
        Error::AgentNotFound { .. } => (404, "NOT_FOUND"),
        Error::Busy(_) => (503, "RESOURCE_EXHAUSTED"),
        Error::Stopping => (503, "UNAVAILABLE"),
        Error::StoreFull => (503, "UNAVAILABLE"),
        Error::Overloaded => (503, "RESOURCE_EXHAUSTED"),
        Error::Forbidden(_) => (403, "PERMISSION_DENIED"),
        Error::Misdirected(_) => (421, "INVALID_ARGUMENT"),
        Error::BrokenHead(_) => (400, "INVALID_ARGUMENT"),
        Error::TooLarge { .. } => (413, "INVALID_ARGUMENT"),
        Error::UnsupportedMediaType(_) => (415, "INVALID_ARGUMENT"),
        Error::BrokenBody(_) => (400, "INVALID_ARGUMENT"),
        Error::PathNotFound(_) => (404, "NOT_FOUND"),
        Error::VerbNotAllowed(_) => (405, "UNIMPLEMENTED"),
        Error::Internal(_) => (500, "INTERNAL"),
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

/// Of a JSON-RPC answer: 200, except for what is outside JSON-RPC.
pub(crate) fn rpc_status(error: &Error) -> u16 {
    match error {
        Error::TaskNotFound(_)
        | Error::NotCancelable(_)
        | Error::TaskFinished(_)
        | Error::NotWaiting(_)
        | Error::QuestionClosed(_)
        | Error::PushNotSupported
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
        | Error::AgentNotFound { .. }
        | Error::Internal(_) => 200,
        Error::Busy(_)
        | Error::Stopping
        | Error::StoreFull
        | Error::Overloaded
        | Error::Forbidden(_)
        | Error::Misdirected(_)
        | Error::BrokenHead(_)
        | Error::TooLarge { .. }
        | Error::UnsupportedMediaType(_)
        | Error::BrokenBody(_)
        | Error::PathNotFound(_)
        | Error::VerbNotAllowed(_) => http_status(error),
    }
}

/// In seconds. Nothing was stored, so a retry is safe.
pub(crate) fn retry_after(error: &Error) -> Option<u32> {
    (http_status(error) == 503).then_some(5)
}

/// The title where an answer has an HTTP status instead of a code.
pub(super) fn http_title(error: &Error) -> &'static str {
    match error {
        Error::AgentNotFound { .. } => "Agent not found",
        Error::Busy(_) | Error::Stopping | Error::StoreFull => "Agent unavailable",
        Error::Overloaded => "Server overloaded",
        Error::Forbidden(_) => "Forbidden",
        Error::Misdirected(_) => "Misdirected request",
        Error::BrokenHead(_) => "Broken head",
        Error::TooLarge { .. } => "Content too large",
        Error::UnsupportedMediaType(_) => "Unsupported media type",
        Error::BrokenBody(_) => "Broken body",
        Error::PathNotFound(_) => "Path not found",
        Error::VerbNotAllowed(_) => "Method not allowed",
        Error::TaskNotFound(_)
        | Error::NotCancelable(_)
        | Error::TaskFinished(_)
        | Error::NotWaiting(_)
        | Error::QuestionClosed(_)
        | Error::PushNotSupported
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
        | Error::Internal(_) => code::v1(error).1,
    }
}
