//! What is remembered of a remote task: its ids, and which message of ours it has.

use sabir_model::{ContextId, MessageId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// Kept with our task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct TaskMemory {
    /// The last remote task that a message of ours was sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<RemoteTask>,
    /// The id at the remote agent of a message that could not be sent: nothing of it has left this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unsent: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteTask {
    pub(super) id: TaskId,
    pub(super) context: ContextId,
    /// The last message that it has taken, by its id there.
    pub(super) message: MessageId,
    /// It waits for its next message. One that does not has ended with its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waits: Option<Waits>,
    /// How many other remote tasks our task has had before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) earlier: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waits {
    /// Since when, by its own clock, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Timestamp>,
}

/// Kept with our context: the remote one that goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContextMemory {
    pub(super) context: ContextId,
}

impl TaskMemory {
    /// Text that cannot be read is from another kind of agent, which had this id before.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("ids are text")
    }
}

impl ContextMemory {
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("an id is text")
    }
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
