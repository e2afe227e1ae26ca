//! The protocols that a remote agent can speak, and the operations that they have in common.

use Operation::*;

/// A version of A2A together with the binding that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteProtocol {
    V1JsonRpc,
    V1HttpJson,
    V03JsonRpc,
    /// ProtoJSON below `/v1`, as the SDKs of that time spoke it.
    V03HttpJson,
    V02JsonRpc,
    V01JsonRpc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteBinding {
    JsonRpc,
    HttpJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Card,
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

/// The three spellings of JSON-RPC method names: 1.0, 0.3 and 0.2, 0.1.
const METHODS: [(Operation, &str, &str, &str); 11] = [
    (Send, "SendMessage", "message/send", "tasks/send"),
    (Stream, "SendStreamingMessage", "message/stream", "tasks/sendSubscribe"),
    (Get, "GetTask", "tasks/get", "tasks/get"),
    (List, "ListTasks", "", ""),
    (Cancel, "CancelTask", "tasks/cancel", "tasks/cancel"),
    (Subscribe, "SubscribeToTask", "tasks/resubscribe", "tasks/resubscribe"),
    (SetPush, "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", "tasks/pushNotification/set"),
    (GetPush, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get", "tasks/pushNotification/get"),
    (ListPush, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", ""),
    (DeletePush, "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete", ""),
    (ExtendedCard, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", ""),
];

impl RemoteProtocol {
    pub const ALL: [Self; 6] =
        [Self::V1JsonRpc, Self::V1HttpJson, Self::V03JsonRpc, Self::V03HttpJson, Self::V02JsonRpc, Self::V01JsonRpc];

    /// Major and minor number, as in `A2A-Version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V1JsonRpc | Self::V1HttpJson => "1.0",
            Self::V03JsonRpc | Self::V03HttpJson => "0.3",
            Self::V02JsonRpc => "0.2",
            Self::V01JsonRpc => "0.1",
        }
    }

    pub fn binding(self) -> RemoteBinding {
        match self {
            Self::V1HttpJson | Self::V03HttpJson => RemoteBinding::HttpJson,
            Self::V1JsonRpc | Self::V03JsonRpc | Self::V02JsonRpc | Self::V01JsonRpc => RemoteBinding::JsonRpc,
        }
    }

    /// The protocol of this version and binding (`jsonrpc` or `http+json`).
    pub fn named(version: &str, binding: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.version() == version && known.binding().name() == binding)
    }

    pub fn is_v1(self) -> bool {
        self.version() == "1.0"
    }

    /// The JSON-RPC method of an operation, if the version has one.
    pub fn method(self, operation: Operation) -> Option<&'static str> {
        METHODS.iter().find(|row| row.0 == operation).map(|row| self.spelled(row)).filter(|name| !name.is_empty())
    }

    pub(super) fn operation_of(self, method: &str) -> Option<Operation> {
        METHODS.iter().find(|row| !method.is_empty() && self.spelled(row) == method).map(|row| row.0)
    }

    fn spelled(self, row: &(Operation, &'static str, &'static str, &'static str)) -> &'static str {
        match self.version() {
            "1.0" => row.1,
            "0.1" => row.3,
            _ => row.2,
        }
    }
}

impl RemoteBinding {
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http+json",
        }
    }

    /// As cards spell it.
    pub fn on_card(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }
}
