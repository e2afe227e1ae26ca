//! The names of the methods, and what they mean.

use crate::Operation;
use crate::version::Generation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub generation: Generation,
    pub operation: Operation,
}

impl Method {
    /// Also what some clients of early days call one of them.
    pub fn called(name: &str) -> Option<Self> {
        match name {
            "message/sendStream" => Self::named("message/stream"),
            name => Self::named(name),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        use Generation::{Shared, V0_1, V0_3, V1};
        let (generation, operation) = match name {
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
            "tasks/get" => (Shared, Operation::Get),
            "tasks/cancel" => (Shared, Operation::Cancel),
            "tasks/resubscribe" => (Shared, Operation::Subscribe),
            "tasks/send" => (V0_1, Operation::Send),
            "tasks/sendSubscribe" => (V0_1, Operation::Stream),
            "tasks/pushNotification/set" => (V0_1, Operation::PushSet),
            "tasks/pushNotification/get" => (V0_1, Operation::PushGet),
            _ => return None,
        };
        Some(Self { generation, operation })
    }
}
