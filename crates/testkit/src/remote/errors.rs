//! What a remote agent refuses, and the codes, statuses and reasons of it.
//!
//! The table is that of A2A 1.0 (section 5.4); the older versions use the same JSON-RPC codes.

use serde_json::{Value, json};

use super::protocol::RemoteProtocol;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorKind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ExtendedCardNotConfigured,
    VersionNotSupported,
    InvalidJson,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    /// One with this JSON-RPC code.
    Other(i64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RemoteError {
    pub kind: ErrorKind,
    pub task_id: Option<String>,
    /// The member of the request that is wrong.
    pub field: Option<String>,
    pub detail: Option<String>,
}

/// JSON-RPC code, title, reason, HTTP status and gRPC status.
type Row = (i64, &'static str, &'static str, u16, &'static str);

impl ErrorKind {
    fn row(self) -> Row {
        match self {
            Self::TaskNotFound => (-32001, "Task not found", "TASK_NOT_FOUND", 404, "NOT_FOUND"),
            Self::TaskNotCancelable => {
                (-32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION")
            }
            Self::PushNotSupported => (
                -32003,
                "Push Notification is not supported",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
                400,
                "FAILED_PRECONDITION",
            ),
            Self::UnsupportedOperation => {
                (-32004, "This operation is not supported", "UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION")
            }
            Self::ExtendedCardNotConfigured => (
                -32007,
                "Extended agent card is not configured",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
                400,
                "FAILED_PRECONDITION",
            ),
            Self::VersionNotSupported => {
                (-32009, "Version not supported", "VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION")
            }
            Self::InvalidJson => (-32700, "Invalid JSON payload", "INVALID_REQUEST", 400, "INVALID_ARGUMENT"),
            Self::InvalidRequest => {
                (-32600, "Request payload validation error", "INVALID_REQUEST", 400, "INVALID_ARGUMENT")
            }
            Self::MethodNotFound => (-32601, "Method not found", "METHOD_NOT_FOUND", 404, "UNIMPLEMENTED"),
            Self::InvalidParams => (-32602, "Invalid parameters", "INVALID_PARAMS", 400, "INVALID_ARGUMENT"),
            Self::Internal => (-32603, "Internal error", "INTERNAL_ERROR", 500, "INTERNAL"),
            Self::Other(code) => (code, "The agent has an error", "INTERNAL_ERROR", 500, "INTERNAL"),
        }
    }

    pub(super) fn code(self) -> i64 {
        self.row().0
    }

    /// Errors that A2A defines itself must have an ErrorInfo in HTTP+JSON.
    fn is_of_a2a(self) -> bool {
        (-32099..=-32001).contains(&self.code())
    }
}

impl RemoteError {
    pub(super) fn new(kind: ErrorKind) -> Self {
        Self { kind, task_id: None, field: None, detail: None }
    }

    pub(super) fn task_not_found(id: &str) -> Self {
        Self { task_id: Some(id.to_owned()), ..Self::new(ErrorKind::TaskNotFound) }
    }

    pub(super) fn of_task(kind: ErrorKind, id: &str, detail: &str) -> Self {
        Self { task_id: Some(id.to_owned()), detail: Some(detail.to_owned()), ..Self::new(kind) }
    }

    pub(super) fn unsupported(detail: &str) -> Self {
        Self { detail: Some(detail.to_owned()), ..Self::new(ErrorKind::UnsupportedOperation) }
    }

    pub(super) fn invalid(field: &str, detail: &str) -> Self {
        Self { field: Some(field.to_owned()), detail: Some(detail.to_owned()), ..Self::new(ErrorKind::InvalidParams) }
    }

    pub(super) fn http_status(&self, protocol: RemoteProtocol) -> u16 {
        match self.kind {
            // As the SDKs of the 0.3 line have it.
            ErrorKind::TaskNotCancelable if !protocol.is_v1() => 409,
            kind => kind.row().3,
        }
    }

    /// The member `error` of a JSON-RPC response.
    pub(super) fn in_json_rpc(&self, protocol: RemoteProtocol) -> Value {
        let (code, title, ..) = self.kind.row();
        let mut error = json!({"code": code, "message": title});
        if protocol.is_v1() {
            if let Some(details) = self.details() {
                error["data"] = details;
            }
        } else if let Some(data) = self.members() {
            error["data"] = data;
        }
        error
    }

    /// The body of an HTTP+JSON response.
    pub(super) fn in_http_json(&self, protocol: RemoteProtocol) -> Value {
        if !protocol.is_v1() {
            return self.in_json_rpc(protocol);
        }
        let (_, title, _, status, grpc) = self.kind.row();
        let mut error = json!({"code": status, "status": grpc, "message": title});
        if let Some(details) = self.details() {
            error["details"] = details;
        }
        json!({ "error": error })
    }

    fn details(&self) -> Option<Value> {
        if let Some(field) = &self.field {
            let violation = json!({"field": field, "description": self.detail});
            return Some(json!([{
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [violation],
            }]));
        }
        if !self.kind.is_of_a2a() {
            return None;
        }
        let mut info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.row().2,
            "domain": "a2a-protocol.org",
        });
        if let Some(members) = self.members() {
            info["metadata"] = members;
        }
        Some(json!([info]))
    }

    fn members(&self) -> Option<Value> {
        let mut members = json!({});
        if let Some(id) = &self.task_id {
            members["taskId"] = json!(id);
        }
        if let Some(detail) = &self.detail {
            members["detail"] = json!(detail);
        }
        (members != json!({})).then_some(members)
    }
}
