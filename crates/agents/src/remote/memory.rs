//! What is remembered of a remote task: its ids, and which message of ours it has.

use sabir_model::{ContextId, MessageId, TaskId};
use serde::{Deserialize, Serialize};

/// Kept with our task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskMemory {
    /// The id of the remote task.
    pub(super) task: TaskId,
    pub(super) context: ContextId,
    /// The last message that the remote agent has taken.
    pub(super) message: MessageId,
    /// Whether the remote task waits for its next message. One that does not has ended with its turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) waits: bool,
    /// How many other remote tasks our task has had before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) earlier: u32,
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

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
