//! The table of JSON-RPC methods: the versions that have a method of this name, and its operation.

use crate::version::MethodVersions;
use crate::{Operation, ProtocolVersion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub versions: MethodVersions,
    pub operation: Operation,
}

impl Method {
    /// Early clients have another name for one of them.
    pub fn find_with_aliases(name: &str) -> Option<Self> {
        match name {
            "message/sendStream" => Self::find("message/stream"),
            name => Self::find(name),
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        const V1: MethodVersions = MethodVersions::V1;
        const V0_3: MethodVersions = MethodVersions::V0_3;
        const V0_1: MethodVersions = MethodVersions::V0_1;
        const ALL_0_X: MethodVersions = MethodVersions::ALL_0_X;
        let (versions, operation) = match name {
            "SendMessage" => (V1, Operation::Send),
            "SendStreamingMessage" => (V1, Operation::Stream),
            "GetTask" => (V1, Operation::Get),
            "ListTasks" => (V1, Operation::List),
            "CancelTask" => (V1, Operation::Cancel),
            "SubscribeToTask" => (V1, Operation::Subscribe),
            "CreateTaskPushNotificationConfig" => (V1, Operation::PushSet),
            "GetTaskPushNotificationConfig" => (V1, Operation::PushGet),
            "ListTaskPushNotificationConfigs" => (V1, Operation::PushList),
            "DeleteTaskPushNotificationConfig" => (V1, Operation::PushDelete),
            "GetExtendedAgentCard" => (V1, Operation::ExtendedCard),
            "message/send" => (V0_3, Operation::Send),
            "message/stream" => (V0_3, Operation::Stream),
            "tasks/pushNotificationConfig/set" => (V0_3, Operation::PushSet),
            "tasks/pushNotificationConfig/get" => (V0_3, Operation::PushGet),
            "tasks/pushNotificationConfig/list" => (V0_3, Operation::PushList),
            "tasks/pushNotificationConfig/delete" => (V0_3, Operation::PushDelete),
            "agent/getAuthenticatedExtendedCard" => (V0_3, Operation::ExtendedCard),
            "tasks/get" => (ALL_0_X, Operation::Get),
            "tasks/cancel" => (ALL_0_X, Operation::Cancel),
            "tasks/resubscribe" => (ALL_0_X, Operation::Subscribe),
            "tasks/send" => (V0_1, Operation::Send),
            "tasks/sendSubscribe" => (V0_1, Operation::Stream),
            "tasks/pushNotification/set" => (V0_1, Operation::PushSet),
            "tasks/pushNotification/get" => (V0_1, Operation::PushGet),
            _ => return None,
        };
        Some(Self { versions, operation })
    }
}

/// The name by which a server of this version knows an operation. `None`: it has no such method.
pub(crate) fn method_name(version: ProtocolVersion, operation: Operation) -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        Method::find(name).is_some_and(|method| method.operation == operation && method.versions.contains(version))
    })
}

/// Every name of the table.
const NAMES: [&str; 25] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "message/send",
    "message/stream",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/send",
    "tasks/sendSubscribe",
    "tasks/pushNotification/set",
    "tasks/pushNotification/get",
];
