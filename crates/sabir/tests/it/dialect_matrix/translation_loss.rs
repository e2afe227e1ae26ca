//! What gets lost between dialects, and nothing else does.
//!
//! Each removal names the row of the tables of translation that marks it; the gateway, which has no columns there,
//! carries text alone.

use super::json_format::JsonFormat;
use super::neutral_task::{Artifact, Content, Event, Message, Part, Status, Task};

impl JsonFormat {
    /// The task, as far as this spelling can tell it.
    pub fn reduce_task(self, task: &Task) -> Task {
        let mut reduced = task.clone();
        reduced.status = self.reduce_status(&task.status);
        reduced.history = task.history.iter().map(|message| self.reduce_message(message)).collect();
        reduced.artifacts = task.artifacts.iter().map(|artifact| self.reduce_artifact(artifact)).collect();
        if self == JsonFormat::Gateway {
            // Text only.
            reduced.metadata = None;
        }
        reduced
    }

    fn reduce_status(self, status: &Status) -> Status {
        let mut reduced = status.clone();
        reduced.message = status.message.as_ref().map(|message| self.reduce_message(message));
        reduced.state = match (self, status.state.as_str()) {
            // Row `TaskState`: REJECTED -> `failed`, AUTH_REQUIRED -> `input-required` in 0.1.
            (JsonFormat::Type, "rejected") => "failed",
            (JsonFormat::Type, "auth-required") => "input-required",
            // The gateway waits, for whatever it is.
            (JsonFormat::Gateway, "auth-required") => "input-required",
            (_, state) => state,
        }
        .to_owned();
        if self == JsonFormat::Gateway {
            // Told in milliseconds.
            reduced.time = None;
        }
        reduced
    }

    /// A message, sent or read.
    pub fn reduce_message(self, message: &Message) -> Message {
        let mut reduced = message.clone();
        reduced.parts = message.parts.iter().map(|part| self.reduce_part(part)).collect();
        match self {
            JsonFormat::V1 | JsonFormat::Kind => {}
            JsonFormat::Proto => {
                // Row `message.extensions, referenceTaskIds`: 0.3 ProtoJSON has no referenceTaskIds.
                reduced.references.clear();
            }
            JsonFormat::Type => {
                // Rows `message.messageId`, `message.taskId` and `message.contextId`: said beside the message, or not.
                (reduced.id, reduced.task, reduced.context) = (None, None, None);
                // Row `message.extensions, referenceTaskIds`: neither in 0.1.
                reduced.extensions.clear();
                reduced.references.clear();
            }
            // Text only.
            JsonFormat::Gateway => reduced = Message::new(&message.role, vec![Part::text(message.text())]),
        }
        reduced
    }

    fn reduce_part(self, part: &Part) -> Part {
        let mut reduced = part.clone();
        match &part.content {
            _ if self == JsonFormat::V1 => {}
            // Row `Part text`: `mediaType` and `filename` on text parts are dropped before 1.0.
            Content::Text(_) => (reduced.media_type, reduced.name) = (None, None),
            // Row `Part data object`: `mediaType` is dropped before 1.0.
            Content::Data(_) => reduced.media_type = None,
            Content::Bytes(_) | Content::Url(_) => {}
        }
        reduced
    }

    fn reduce_artifact(self, artifact: &Artifact) -> Artifact {
        let mut reduced = artifact.clone();
        reduced.parts = artifact.parts.iter().map(|part| self.reduce_part(part)).collect();
        match self {
            JsonFormat::V1 | JsonFormat::Kind | JsonFormat::Proto => {}
            // Row `message.extensions`, for artifacts too: 0.1 has no extensions.
            JsonFormat::Type => reduced.extensions.clear(),
            // Text only.
            JsonFormat::Gateway => {
                let texts: Vec<&str> = artifact.parts.iter().filter_map(Part::as_text).collect();
                let parts = vec![Part::text(texts.join("\n"))];
                reduced =
                    Artifact { id: None, name: None, description: None, metadata: None, extensions: Vec::new(), parts };
            }
        }
        reduced
    }

    /// One event of a task that became like `whole`.
    pub fn reduce_event(self, event: &Event, whole: &Task) -> Event {
        match event {
            // Row `StreamResponse wrapper`: in 0.1 a Task frame becomes a status event.
            Event::Task(task) if self == JsonFormat::Type => Event::Status {
                task: task.id.clone(),
                context: None,
                status: self.reduce_status(&task.status),
                is_final: Some(false),
                artifacts: Vec::new(),
            },
            Event::Task(task) => Event::Task(self.reduce_task(task)),
            Event::Status { task, context, status, .. } => {
                // Row `StreamResponse wrapper`: in 0.1 the last frame also carries the artifacts.
                let is_end = self == JsonFormat::Type && status.is_terminal();
                let made = if is_end { whole.artifacts.as_slice() } else { &[] };
                Event::Status {
                    task: task.clone(),
                    context: self.reduce_context(context),
                    status: self.reduce_status(status),
                    // Row `StatusUpdate (no final)`: 1.0 does not say it. The turns here end when they ask.
                    is_final: (self != JsonFormat::V1).then(|| status.is_at_rest()),
                    artifacts: made.iter().map(|artifact| self.reduce_artifact(artifact)).collect(),
                }
            }
            Event::Artifact { task, context, artifact, append, last } => Event::Artifact {
                task: task.clone(),
                context: self.reduce_context(context),
                artifact: self.reduce_artifact(artifact),
                append: *append,
                last: *last,
            },
        }
    }

    /// Row `StreamResponse wrapper`: events of 0.1 are `{id,status,final}` or `{id,artifact}`.
    fn reduce_context(self, context: &Option<String>) -> Option<String> {
        context.clone().filter(|_| self != JsonFormat::Type)
    }
}
