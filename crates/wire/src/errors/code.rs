//! JSON-RPC codes and their titles, as each version of the protocol lists them.

use sabir_model::Error;

use crate::{Operation, ProtocolVersion};

pub(super) type Code = (i32, &'static str);

const PARSE: Code = (-32700, "Invalid JSON payload");
const REQUEST: Code = (-32600, "Request payload validation error");
const METHOD: Code = (-32601, "Method not found");
const PARAMS: Code = (-32602, "Invalid parameters");
const INTERNAL: Code = (-32603, "Internal error");
const TASK_NOT_FOUND: Code = (-32001, "Task not found");
const NOT_CANCELABLE: Code = (-32002, "Task cannot be canceled");
const NO_PUSH: Code = (-32003, "Push Notification is not supported");
const UNSUPPORTED: Code = (-32004, "This operation is not supported");
const CONTENT_TYPE: Code = (-32005, "Incompatible content types");
const AGENT_RESPONSE: Code = (-32006, "Invalid agent response");
const VERSION: Code = (-32009, "Version not supported");
const UNAVAILABLE: Code = (-32007, "Agent unavailable");
const UNAUTHENTICATED: Code = (-32008, "Authentication required");
const FORBIDDEN: Code = (-32009, "Authorization failed");

/// `operation` is the one that failed; `None`: not known, or not an operation at all.
pub(super) fn of(error: &Error, version: ProtocolVersion, operation: Option<Operation>) -> Code {
    match version {
        ProtocolVersion::V1_0 => v1(error),
        ProtocolVersion::V0_3 | ProtocolVersion::V0_2 => v0_3(error, operation),
        ProtocolVersion::V0_1 => v0_1(error),
    }
}

pub(super) fn v1(error: &Error) -> Code {
    match error {
        Error::TaskNotFound(_) => TASK_NOT_FOUND,
        Error::NotCancelable(_) => NOT_CANCELABLE,
        Error::TaskFinished(_) => UNSUPPORTED,
        Error::NotWaiting(_) => UNSUPPORTED,
        Error::QuestionClosed(_) => PARAMS,
        Error::PushNotSupported => NO_PUSH,
        Error::Unsupported(_) => UNSUPPORTED,
        Error::ContentType(_) => CONTENT_TYPE,
        Error::InvalidAgentResponse => AGENT_RESPONSE,
        Error::ExtendedCardNotConfigured => (-32007, "Extended agent card is not configured"),
        Error::ExtendedCardNotOffered => UNSUPPORTED,
        Error::ExtensionRequired(_) => (-32008, "Required extension was not activated"),
        Error::Version(_) => VERSION,
        Error::Invalid(_) => PARAMS,
        Error::InvalidRequest(_) => REQUEST,
        Error::MethodNotFound(_) => METHOD,
        Error::NotJson(_) => PARSE,
        Error::AgentNotFound { .. } => PARAMS,
        Error::Busy(_) => INTERNAL,
        Error::Stopping => INTERNAL,
        Error::StoreFull => INTERNAL,
        Error::Overloaded => INTERNAL,
        Error::Unauthenticated(_) => REQUEST,
        Error::IdentityUnavailable => INTERNAL,
        Error::LimitReached { .. } => INTERNAL,
        Error::Forbidden(_) => REQUEST,
        Error::Misdirected(_) => REQUEST,
        Error::BrokenHead(_) => REQUEST,
        Error::TooLarge { .. } => REQUEST,
        Error::UnsupportedMediaType(_) => REQUEST,
        Error::UnsupportedCompression(_) => REQUEST,
        Error::BrokenBody(_) => REQUEST,
        Error::PathNotFound(_) => METHOD,
        Error::ServiceNotFound => METHOD,
        Error::VerbNotAllowed(_) => REQUEST,
        Error::DeadlineExceeded => INTERNAL,
        Error::Unrepresentable(_) => INTERNAL,
        Error::Internal(_) => INTERNAL,
    }
}

fn v0_3(error: &Error, operation: Option<Operation>) -> Code {
    const NO_EXTENDED_CARD: Code = (-32007, "Authenticated Extended Card is not configured");
    match error {
        Error::TaskNotFound(_) => TASK_NOT_FOUND,
        Error::NotCancelable(_) => NOT_CANCELABLE,
        Error::TaskFinished(_) => UNSUPPORTED,
        Error::NotWaiting(_) => UNSUPPORTED,
        Error::QuestionClosed(_) => PARAMS,
        Error::PushNotSupported => NO_PUSH,
        Error::Unsupported(_) => UNSUPPORTED,
        Error::ContentType(_) => CONTENT_TYPE,
        Error::InvalidAgentResponse => AGENT_RESPONSE,
        Error::ExtendedCardNotConfigured => NO_EXTENDED_CARD,
        Error::ExtendedCardNotOffered => NO_EXTENDED_CARD,
        Error::ExtensionRequired(_) => REQUEST,
        Error::Version(_) => VERSION,
        Error::Invalid(_) => PARAMS,
        Error::InvalidRequest(_) => REQUEST,
        Error::MethodNotFound(_) => METHOD,
        Error::NotJson(_) => PARSE,
        Error::AgentNotFound { .. } => PARAMS,
        Error::Busy(_) => unavailable(operation),
        Error::Stopping => unavailable(operation),
        Error::StoreFull => unavailable(operation),
        Error::Overloaded => unavailable(operation),
        Error::Unauthenticated(_) => UNAUTHENTICATED,
        Error::IdentityUnavailable => unavailable(operation),
        Error::LimitReached { .. } => unavailable(operation),
        Error::Forbidden(_) => FORBIDDEN,
        Error::Misdirected(_) => REQUEST,
        Error::BrokenHead(_) => REQUEST,
        Error::TooLarge { .. } => REQUEST,
        Error::UnsupportedMediaType(_) => REQUEST,
        Error::UnsupportedCompression(_) => REQUEST,
        Error::BrokenBody(_) => REQUEST,
        Error::PathNotFound(_) => METHOD,
        Error::ServiceNotFound => METHOD,
        Error::VerbNotAllowed(_) => REQUEST,
        Error::DeadlineExceeded => INTERNAL,
        Error::Unrepresentable(_) => INTERNAL,
        Error::Internal(_) => INTERNAL,
    }
}

/// 0.1 has few codes, and gave other meanings to most of those that came later.
fn v0_1(error: &Error) -> Code {
    match error {
        Error::TaskNotFound(_) => TASK_NOT_FOUND,
        Error::NotCancelable(_) => NOT_CANCELABLE,
        Error::TaskFinished(_) => UNSUPPORTED,
        Error::NotWaiting(_) => UNSUPPORTED,
        Error::QuestionClosed(_) => PARAMS,
        Error::PushNotSupported => NO_PUSH,
        Error::Unsupported(_) => UNSUPPORTED,
        Error::ContentType(_) => CONTENT_TYPE,
        Error::InvalidAgentResponse => INTERNAL,
        Error::ExtendedCardNotConfigured => UNSUPPORTED,
        Error::ExtendedCardNotOffered => UNSUPPORTED,
        Error::ExtensionRequired(_) => REQUEST,
        Error::Version(_) => VERSION,
        Error::Invalid(_) => PARAMS,
        Error::InvalidRequest(_) => REQUEST,
        Error::MethodNotFound(_) => METHOD,
        Error::NotJson(_) => PARSE,
        Error::AgentNotFound { .. } => PARAMS,
        Error::Busy(_) => INTERNAL,
        Error::Stopping => INTERNAL,
        Error::StoreFull => INTERNAL,
        Error::Overloaded => INTERNAL,
        Error::Unauthenticated(_) => REQUEST,
        Error::IdentityUnavailable => INTERNAL,
        Error::LimitReached { .. } => INTERNAL,
        Error::Forbidden(_) => REQUEST,
        Error::Misdirected(_) => REQUEST,
        Error::BrokenHead(_) => REQUEST,
        Error::TooLarge { .. } => REQUEST,
        Error::UnsupportedMediaType(_) => REQUEST,
        Error::UnsupportedCompression(_) => REQUEST,
        Error::BrokenBody(_) => REQUEST,
        Error::PathNotFound(_) => METHOD,
        Error::ServiceNotFound => METHOD,
        Error::VerbNotAllowed(_) => REQUEST,
        Error::DeadlineExceeded => INTERNAL,
        Error::Unrepresentable(_) => INTERNAL,
        Error::Internal(_) => INTERNAL,
    }
}

/// -32007 means this on a send only; on the card method it means the card.
fn unavailable(operation: Option<Operation>) -> Code {
    match operation {
        Some(Operation::Send | Operation::Stream) => UNAVAILABLE,
        _ => INTERNAL,
    }
}

/// `data.name`: it distinguishes the meanings of codes that have two of them in 0.x.
pub(super) fn name(code: Code) -> Option<&'static str> {
    match code {
        VERSION => Some("VersionNotSupported"),
        UNAVAILABLE => Some("AgentUnavailable"),
        UNAUTHENTICATED => Some("AuthenticationRequired"),
        FORBIDDEN => Some("AuthorizationFailed"),
        _ => None,
    }
}

/// The name of an error in 0.3, by which clients of its gRPC know what went wrong.
pub(crate) fn name_0_3(error: &Error, operation: Option<Operation>) -> &'static str {
    match v0_3(error, operation) {
        TASK_NOT_FOUND => "TaskNotFoundError",
        NOT_CANCELABLE => "TaskNotCancelableError",
        NO_PUSH => "PushNotificationNotSupportedError",
        UNSUPPORTED => "UnsupportedOperationError",
        CONTENT_TYPE => "ContentTypeNotSupportedError",
        AGENT_RESPONSE => "InvalidAgentResponseError",
        UNAVAILABLE => "AgentUnavailableError",
        UNAUTHENTICATED => "AuthenticationRequiredError",
        FORBIDDEN => "AuthorizationFailedError",
        VERSION => "VersionNotSupportedError",
        PARSE => "JSONParseError",
        REQUEST => "InvalidRequestError",
        METHOD => "MethodNotFoundError",
        PARAMS => "InvalidParamsError",
        (-32007, _) => "AuthenticatedExtendedCardNotConfiguredError",
        _ => "InternalError",
    }
}

/// `ErrorInfo.reason`. The ones without a code of their own are what the SDKs say.
pub(super) fn reason(error: &Error) -> &'static str {
    match error {
        Error::TaskNotFound(_) => "TASK_NOT_FOUND",
        Error::NotCancelable(_) => "TASK_NOT_CANCELABLE",
        Error::TaskFinished(_) => "UNSUPPORTED_OPERATION",
        Error::NotWaiting(_) => "UNSUPPORTED_OPERATION",
        Error::QuestionClosed(_) => "INVALID_PARAMS",
        Error::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
        Error::Unsupported(_) => "UNSUPPORTED_OPERATION",
        Error::ContentType(_) => "CONTENT_TYPE_NOT_SUPPORTED",
        Error::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
        Error::ExtendedCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        Error::ExtendedCardNotOffered => "UNSUPPORTED_OPERATION",
        Error::ExtensionRequired(_) => "EXTENSION_SUPPORT_REQUIRED",
        Error::Version(_) => "VERSION_NOT_SUPPORTED",
        Error::Invalid(_) => "INVALID_PARAMS",
        Error::InvalidRequest(_) => "INVALID_REQUEST",
        Error::MethodNotFound(_) => "METHOD_NOT_FOUND",
        Error::NotJson(_) => "INVALID_REQUEST",
        Error::AgentNotFound { .. } => "INVALID_PARAMS",
        Error::Busy(_) => "RESOURCE_EXHAUSTED",
        Error::Stopping => "UNAVAILABLE",
        Error::StoreFull => "UNAVAILABLE",
        Error::Overloaded => "RESOURCE_EXHAUSTED",
        Error::Unauthenticated(_) => "UNAUTHENTICATED",
        Error::IdentityUnavailable => "UNAVAILABLE",
        Error::LimitReached { .. } => "RESOURCE_EXHAUSTED",
        Error::Forbidden(_) => "PERMISSION_DENIED",
        Error::Misdirected(_) => "INVALID_REQUEST",
        Error::BrokenHead(_) => "INVALID_REQUEST",
        Error::TooLarge { .. } => "INVALID_REQUEST",
        Error::UnsupportedMediaType(_) => "INVALID_REQUEST",
        Error::UnsupportedCompression(_) => "INVALID_REQUEST",
        Error::BrokenBody(_) => "INVALID_REQUEST",
        Error::PathNotFound(_) => "METHOD_NOT_FOUND",
        Error::ServiceNotFound => "SERVICE_NOT_FOUND",
        Error::VerbNotAllowed(_) => "INVALID_REQUEST",
        Error::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Error::Unrepresentable(_) => "UNREPRESENTABLE",
        Error::Internal(_) => "INTERNAL_ERROR",
    }
}
