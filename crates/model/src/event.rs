//! What happened: the entries of a task's log.
//!
//! Only what a stream shows takes a number. Whatever else must be stored rides on the shown event
//! beside it: the caller's message on the `working` that it starts, the usage on the last status.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Artifact, Json, Message, Status, Timestamp};

/// The number of an event in its task: 1, 2, 3, without gaps. 0 means before the first.
pub type Seq = u64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// Always number 1, shown as the submitted task.
    Created(Created),
    Status(StatusChange),
    Artifact(Chunk),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    pub message: Arc<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// What the task waits for, when it cannot start at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<Message>>,
    pub time: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    pub status: Status,
    /// The turn is over with this: a terminal state, or a question that ends the turn.
    #[serde(default, skip_serializing_if = "is_false", rename = "final")]
    pub is_final: bool,
    /// The caller's messages that this change takes into the history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Arc<Message>>,
    /// The last of these messages begins a turn. Otherwise they answer the run's question, or nobody takes them up.
    /// Logs from before this was told have it nowhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begins_turn: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the agent says about this event itself, beside the metadata of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The artifact's place in the task, by first appearance.
    pub index: u32,
    pub artifact: Arc<Artifact>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub append: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// What the agent says about this event itself, beside the metadata of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What a turn has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// An event with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub seq: Seq,
    pub event: Event,
}

impl Event {
    /// The moment of a status; chunks carry none.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Event::Status(change) => Some(&change.status),
            Event::Created(_) | Event::Artifact(_) => None,
        }
    }

    pub fn ends_turn(&self) -> bool {
        matches!(self, Event::Status(change) if change.is_final)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
