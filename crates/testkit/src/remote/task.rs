//! What a remote agent knows of its tasks, in no spelling of the wire.

/// A task as the remote agent has it: its true outcome, whatever the wire said.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTask {
    pub id: String,
    pub context_id: String,
    pub state: RemoteState,
    pub status_message: Option<RemoteMessage>,
    /// Milliseconds since 1970.
    pub status_time: u64,
    pub artifacts: Vec<RemoteArtifact>,
    /// Oldest first.
    pub history: Vec<RemoteMessage>,
    pub push_configs: Vec<PushConfig>,
}

impl RemoteTask {
    /// The text of all artifacts.
    pub fn text(&self) -> String {
        self.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(RemotePart::text).collect()
    }

    /// The task with at most this much of its history, the newest messages of it.
    pub(super) fn with_history(mut self, length: Option<usize>) -> Self {
        if let Some(length) = length {
            let surplus = self.history.len().saturating_sub(length);
            self.history.drain(..surplus);
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl RemoteState {
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Terminal, or waiting for the client.
    pub fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    pub(super) fn in_v1(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Rejected => "TASK_STATE_REJECTED",
        }
    }

    pub(super) fn in_v03(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }

    /// ProtoJSON of 0.3 has two Ls where 1.0 has one.
    pub(super) fn in_v03_proto(self) -> &'static str {
        match self {
            Self::Canceled => "TASK_STATE_CANCELLED",
            other => other.in_v1(),
        }
    }

    /// 0.1 knows neither `rejected` nor `auth-required`.
    pub(super) fn in_v01(self) -> &'static str {
        match self {
            Self::Rejected => "failed",
            Self::AuthRequired => "input-required",
            other => other.in_v03(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteRole {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemoteMessage {
    pub id: String,
    pub role: RemoteRole,
    pub parts: Vec<RemotePart>,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
}

impl RemoteMessage {
    /// All text parts, joined with a space.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(RemotePart::text).collect();
        texts.join(" ").trim().to_owned()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum RemotePart {
    Text(String),
    Bytes { base64: String, name: Option<String>, media_type: Option<String> },
    Url { url: String, name: Option<String>, media_type: Option<String> },
    Data(serde_json::Value),
}

impl RemotePart {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemoteArtifact {
    pub id: String,
    pub name: String,
    pub parts: Vec<RemotePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    pub id: String,
    pub url: String,
    pub token: Option<String>,
    pub scheme: Option<String>,
    pub credentials: Option<String>,
}

/// One entry in the log of a task; what a stream shows.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {
    Created(Box<RemoteTask>),
    Status { state: RemoteState, message: Option<RemoteMessage>, time: u64 },
    Artifact { artifact: RemoteArtifact, append: bool, last_chunk: bool },
}
