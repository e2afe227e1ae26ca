//! What another server says went wrong, whatever its version and binding.

use std::fmt;

use sabir_model::Json;

use crate::excerpt::excerpt;
use crate::{Operation, ProtocolVersion};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    pub kind: PeerErrorKind,
    /// The JSON-RPC code, if there is one.
    pub code: Option<i64>,
    /// The HTTP status.
    pub status: u16,
    /// In the server's own words, at most 1,000 bytes of them.
    pub message: String,
    /// What else the server says, as it wrote it.
    pub data: Option<Json>,
}

/// What the words of all versions come down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerErrorKind {
    TaskNotFound,
    NotCancelable,
    PushNotSupported,
    /// The operation is not there, or not in this state of the task.
    Unsupported,
    ContentType,
    /// The agent behind the server made something that is not A2A.
    InvalidAgentResponse,
    NoExtendedCard,
    ExtensionRequired,
    Version,
    Unauthenticated,
    Forbidden,
    /// A member of the request is wrong.
    Invalid,
    /// The request as a whole is wrong.
    InvalidRequest,
    MethodNotFound,
    /// The server could not read the JSON.
    NotJson,
    /// Later it may work: too many requests, or an agent that is not there now.
    Unavailable,
    Internal,
    /// The answer is nothing that A2A knows.
    Malformed,
}

impl PeerErrorKind {
    /// The name that the specification of 1.0 has for it; others are named after their meaning.
    pub fn name(self) -> &'static str {
        match self {
            PeerErrorKind::TaskNotFound => "TaskNotFoundError",
            PeerErrorKind::NotCancelable => "TaskNotCancelableError",
            PeerErrorKind::PushNotSupported => "PushNotificationNotSupportedError",
            PeerErrorKind::Unsupported => "UnsupportedOperationError",
            PeerErrorKind::ContentType => "ContentTypeNotSupportedError",
            PeerErrorKind::InvalidAgentResponse => "InvalidAgentResponseError",
            PeerErrorKind::NoExtendedCard => "ExtendedAgentCardNotConfiguredError",
            PeerErrorKind::ExtensionRequired => "ExtensionSupportRequiredError",
            PeerErrorKind::Version => "VersionNotSupportedError",
            PeerErrorKind::Unauthenticated => "UnauthenticatedError",
            PeerErrorKind::Forbidden => "PermissionDeniedError",
            PeerErrorKind::Invalid => "InvalidParamsError",
            PeerErrorKind::InvalidRequest => "InvalidRequestError",
            PeerErrorKind::MethodNotFound => "MethodNotFoundError",
            PeerErrorKind::NotJson => "JSONParseError",
            PeerErrorKind::Unavailable => "UnavailableError",
            PeerErrorKind::Internal => "InternalError",
            PeerErrorKind::Malformed => "MalformedResponseError",
        }
    }

    /// By the code of JSON-RPC. 0.1 and 0.3 gave other meanings to some of them.
    pub(super) fn of_code(code: i64, version: ProtocolVersion, operation: Operation, status: u16) -> Option<Self> {
        let is_send = matches!(operation, Operation::Send | Operation::Stream);
        Some(match (code, version) {
            (-32700, _) => PeerErrorKind::NotJson,
            (-32600, _) => PeerErrorKind::InvalidRequest,
            (-32601, _) => PeerErrorKind::MethodNotFound,
            (-32602, _) => PeerErrorKind::Invalid,
            (-32603, _) => return Self::of_status(status).or(Some(PeerErrorKind::Internal)),
            (-32001, _) => PeerErrorKind::TaskNotFound,
            (-32002, _) => PeerErrorKind::NotCancelable,
            (-32003, _) => PeerErrorKind::PushNotSupported,
            (-32004, _) => PeerErrorKind::Unsupported,
            (-32005, _) => PeerErrorKind::ContentType,
            (-32006, ProtocolVersion::V0_1) => PeerErrorKind::Unsupported,
            (-32007, ProtocolVersion::V0_1) => PeerErrorKind::Unauthenticated,
            (-32008, ProtocolVersion::V0_1) => PeerErrorKind::Forbidden,
            (-32009, ProtocolVersion::V0_1) => PeerErrorKind::Unsupported,
            (-32010 | -32011, ProtocolVersion::V0_1) => PeerErrorKind::Unavailable,
            (-32006, _) => PeerErrorKind::InvalidAgentResponse,
            (-32007, ProtocolVersion::V0_3 | ProtocolVersion::V0_2) if is_send => PeerErrorKind::Unavailable,
            (-32007, _) => PeerErrorKind::NoExtendedCard,
            (-32008, ProtocolVersion::V0_3 | ProtocolVersion::V0_2) if status == 401 => PeerErrorKind::Unauthenticated,
            (-32008, _) => PeerErrorKind::ExtensionRequired,
            (-32009, ProtocolVersion::V0_3 | ProtocolVersion::V0_2) if status == 403 => PeerErrorKind::Forbidden,
            (-32009, _) => PeerErrorKind::Version,
            _ => return None,
        })
    }

    /// By the reason of an ErrorInfo.
    pub(super) fn of_reason(reason: &str) -> Option<Self> {
        Some(match reason {
            "TASK_NOT_FOUND" => PeerErrorKind::TaskNotFound,
            "TASK_NOT_CANCELABLE" => PeerErrorKind::NotCancelable,
            "PUSH_NOTIFICATION_NOT_SUPPORTED" => PeerErrorKind::PushNotSupported,
            "UNSUPPORTED_OPERATION" | "UNREPRESENTABLE" => PeerErrorKind::Unsupported,
            "CONTENT_TYPE_NOT_SUPPORTED" => PeerErrorKind::ContentType,
            "INVALID_AGENT_RESPONSE" => PeerErrorKind::InvalidAgentResponse,
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED" => PeerErrorKind::NoExtendedCard,
            "EXTENSION_SUPPORT_REQUIRED" => PeerErrorKind::ExtensionRequired,
            "VERSION_NOT_SUPPORTED" => PeerErrorKind::Version,
            "UNAUTHENTICATED" => PeerErrorKind::Unauthenticated,
            "PERMISSION_DENIED" => PeerErrorKind::Forbidden,
            "INVALID_PARAMS" | "INVALID_ARGUMENT" => PeerErrorKind::Invalid,
            "INVALID_REQUEST" => PeerErrorKind::InvalidRequest,
            "METHOD_NOT_FOUND" | "UNIMPLEMENTED" => PeerErrorKind::MethodNotFound,
            "RESOURCE_EXHAUSTED" | "UNAVAILABLE" => PeerErrorKind::Unavailable,
            "INTERNAL" | "INTERNAL_ERROR" => PeerErrorKind::Internal,
            _ => return None,
        })
    }

    /// By the HTTP status, where nothing better is known. `None`: it says nothing.
    pub(super) fn of_status(status: u16) -> Option<Self> {
        Some(match status {
            400 | 422 => PeerErrorKind::Invalid,
            401 => PeerErrorKind::Unauthenticated,
            403 => PeerErrorKind::Forbidden,
            404 => PeerErrorKind::TaskNotFound,
            405 | 501 => PeerErrorKind::Unsupported,
            409 => PeerErrorKind::NotCancelable,
            415 => PeerErrorKind::ContentType,
            408 | 425 | 429 | 502..=504 => PeerErrorKind::Unavailable,
            500 => PeerErrorKind::Internal,
            _ => return None,
        })
    }
}

/// What a server says is repeated only so far.
const LONGEST_MESSAGE: usize = 1000;

impl PeerError {
    pub(super) fn new(kind: PeerErrorKind, status: u16, message: &str) -> Self {
        let end = (0..=LONGEST_MESSAGE.min(message.len())).rev().find(|end| message.is_char_boundary(*end));
        let message = message[..end.unwrap_or(0)].to_owned();
        PeerError { kind, code: None, status, message, data: None }
    }

    /// An answer that is no A2A; `why` says in which way.
    pub fn malformed(status: u16, why: &str) -> Self {
        Self::new(PeerErrorKind::Malformed, status, why)
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeerError { kind, code, status, message, .. } = self;
        match (kind, code) {
            (PeerErrorKind::Malformed, _) => write!(f, "the server's answer is not A2A: {message}"),
            (_, Some(code)) if message.is_empty() => write!(f, "the server answered error {code}"),
            (_, Some(code)) => write!(f, "{message} ({code})"),
            (_, None) if message.is_empty() => write!(f, "the server answered {status}"),
            (_, None) => write!(f, "{message} (HTTP {status})"),
        }
    }
}

impl std::error::Error for PeerError {}

/// For an error that quotes what came.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", excerpt(text.trim()))
}
