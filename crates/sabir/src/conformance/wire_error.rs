//! An error as a server wrote it, and whether it is the one that the specification wants.

use sabir_wire::{Binding, PeerError, PeerErrorKind, PeerProtocol, ProtocolVersion};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct WireError {
    pub kind: PeerErrorKind,
    /// The code of JSON-RPC; also in the body of 0.3's HTTP+JSON.
    pub code: Option<i64>,
    /// Of HTTP. An error of gRPC has the one that HTTP+JSON would have.
    pub status: u16,
    /// Of the ErrorInfo of 1.0.
    pub reason: Option<String>,
    /// The member `error`, or the whole body where there is none.
    pub object: Value,
}

/// An error of the specification's table (1.0 section 5.4).
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub name: &'static str,
    pub kind: PeerErrorKind,
    pub code: i64,
    /// The statuses of HTTP+JSON in 1.0.1 and 1.0.0.
    pub statuses: &'static [u16],
    pub reason: &'static str,
}

pub const TASK_NOT_FOUND: Expected = Expected {
    name: "TaskNotFoundError",
    kind: PeerErrorKind::TaskNotFound,
    code: -32001,
    statuses: &[404],
    reason: "TASK_NOT_FOUND",
};
pub const NOT_CANCELABLE: Expected = Expected {
    name: "TaskNotCancelableError",
    kind: PeerErrorKind::NotCancelable,
    code: -32002,
    statuses: &[400, 409],
    reason: "TASK_NOT_CANCELABLE",
};
pub const PUSH_NOT_SUPPORTED: Expected = Expected {
    name: "PushNotificationNotSupportedError",
    kind: PeerErrorKind::PushNotSupported,
    code: -32003,
    statuses: &[400],
    reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
};
pub const UNSUPPORTED: Expected = Expected {
    name: "UnsupportedOperationError",
    kind: PeerErrorKind::Unsupported,
    code: -32004,
    statuses: &[400],
    reason: "UNSUPPORTED_OPERATION",
};
pub const EXTENSION_REQUIRED: Expected = Expected {
    name: "ExtensionSupportRequiredError",
    kind: PeerErrorKind::ExtensionRequired,
    code: -32008,
    statuses: &[400],
    reason: "EXTENSION_SUPPORT_REQUIRED",
};
pub const VERSION_NOT_SUPPORTED: Expected = Expected {
    name: "VersionNotSupportedError",
    kind: PeerErrorKind::Version,
    code: -32009,
    statuses: &[400],
    reason: "VERSION_NOT_SUPPORTED",
};

/// The codes of gRPC that an error may have, by its reason: that of 1.0.1, then that of 1.0.0 where it is another.
pub fn grpc_codes(reason: &str) -> Option<&'static [&'static str]> {
    Some(match reason {
        "TASK_NOT_FOUND" => &["NOT_FOUND"],
        "TASK_NOT_CANCELABLE" | "EXTENDED_AGENT_CARD_NOT_CONFIGURED" | "EXTENSION_SUPPORT_REQUIRED" => {
            &["FAILED_PRECONDITION"]
        }
        "PUSH_NOTIFICATION_NOT_SUPPORTED" | "UNSUPPORTED_OPERATION" | "VERSION_NOT_SUPPORTED" => {
            &["FAILED_PRECONDITION", "UNIMPLEMENTED"]
        }
        "CONTENT_TYPE_NOT_SUPPORTED" => &["INVALID_ARGUMENT"],
        "INVALID_AGENT_RESPONSE" => &["INTERNAL"],
        _ => return None,
    })
}

impl WireError {
    pub fn new(error: PeerError, object: Value) -> Self {
        let reason = details(&object).into_iter().flatten().find_map(|detail| detail.get("reason")?.as_str());
        let reason = reason.map(str::to_owned);
        WireError { kind: error.kind, code: error.code, status: error.status, reason, object }
    }

    /// Why this is another error than the expected one; `None`: it is that one.
    pub fn differs_from(&self, expected: &Expected, protocol: PeerProtocol) -> Option<String> {
        let is_expected = match (protocol.binding(), protocol.version()) {
            (Binding::JsonRpc, _) => self.code == Some(expected.code),
            // Whether the code fits the reason is a rule of its own.
            (Binding::Grpc, ProtocolVersion::V1_0) => match &self.reason {
                Some(reason) => reason == expected.reason,
                None => grpc_codes(expected.reason).is_some_and(|codes| codes.contains(&self.grpc_code())),
            },
            (Binding::HttpJson, ProtocolVersion::V1_0) => {
                // Without a reason the status is all there is, and that there is none is judged elsewhere; so is 200.
                let is_named = self.reason.as_deref().is_none_or(|reason| reason == expected.reason);
                let has_status = expected.statuses.contains(&self.status) || self.status == 200;
                is_named && has_status
            }
            // 0.3 does not say which status or code is which error; its SDKs differ in all but this one.
            (Binding::HttpJson | Binding::Grpc, _) => {
                let is_missing = expected.kind == PeerErrorKind::TaskNotFound;
                self.kind == expected.kind || if is_missing { self.status == 404 } else { self.status >= 400 }
            }
        };
        (!is_expected).then(|| format!("{} instead of {}", self.words(protocol), expected.words(protocol)))
    }

    /// `-32603`, `HTTP 500 INTERNAL_ERROR`, `gRPC INTERNAL INTERNAL_ERROR`.
    pub fn words(&self, protocol: PeerProtocol) -> String {
        match (protocol.binding(), self.code) {
            (Binding::JsonRpc, Some(code)) => format!("{code}"),
            (Binding::JsonRpc, None) => format!("HTTP {} without a code", self.status),
            (Binding::HttpJson | Binding::Grpc, _) => {
                let reason = self.reason.as_deref().map(|reason| format!(" {reason}")).unwrap_or_default();
                match self.grpc_code() {
                    code if protocol.binding() == Binding::Grpc && !code.is_empty() => format!("gRPC {code}{reason}"),
                    _ => format!("HTTP {}{reason}", self.status),
                }
            }
        }
    }

    /// `NOT_FOUND`; empty: the error names none.
    pub fn grpc_code(&self) -> &str {
        self.object["status"].as_str().unwrap_or_default()
    }

    /// Whether the error is of A2A's own table.
    pub fn is_of_a2a(&self) -> bool {
        match self.code {
            Some(code) => (-32099..=-32001).contains(&code),
            None => matches!(
                self.kind,
                PeerErrorKind::TaskNotFound
                    | PeerErrorKind::NotCancelable
                    | PeerErrorKind::PushNotSupported
                    | PeerErrorKind::Unsupported
                    | PeerErrorKind::NoExtendedCard
                    | PeerErrorKind::Version
            ),
        }
    }

    /// The server wants to know who asks.
    pub fn asks_for_credentials(&self) -> bool {
        matches!(self.kind, PeerErrorKind::Unauthenticated | PeerErrorKind::Forbidden)
            || matches!(self.status, 401 | 403)
    }

    /// Whether nothing of it is A2A: a proxy or another kind of server has answered.
    pub fn is_foreign(&self, protocol: PeerProtocol) -> bool {
        let says_something = ["code", "message", "detail", "title"].iter().any(|name| self.object.get(name).is_some());
        match protocol.binding() {
            Binding::JsonRpc => self.code.is_none() && !matches!(self.status, 429 | 503),
            Binding::HttpJson | Binding::Grpc => !says_something && !matches!(self.status, 429 | 503),
        }
    }

    /// The typed details of 1.0, if there is a list of them.
    pub fn details(&self) -> Option<&Vec<Value>> {
        details(&self.object)
    }
}

impl Expected {
    fn words(&self, protocol: PeerProtocol) -> String {
        match (protocol.binding(), protocol.version()) {
            (Binding::JsonRpc, _) => format!("{} ({})", self.code, self.name),
            (Binding::HttpJson, ProtocolVersion::V1_0) => format!("HTTP {} {}", self.statuses[0], self.reason),
            (Binding::HttpJson, _) => format!("HTTP {} ({})", self.statuses[0], self.name),
            (Binding::Grpc, ProtocolVersion::V1_0) => format!("gRPC {} {}", self.grpc_code(), self.reason),
            (Binding::Grpc, _) => format!("gRPC {} ({})", self.grpc_code(), self.name),
        }
    }

    fn grpc_code(&self) -> &'static str {
        grpc_codes(self.reason).map_or("UNKNOWN", |codes| codes[0])
    }
}

fn details(object: &Value) -> Option<&Vec<Value>> {
    object.get("data").and_then(Value::as_array).or_else(|| object.get("details").and_then(Value::as_array))
}
