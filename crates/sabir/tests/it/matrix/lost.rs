//! What gets lost between dialects, and nothing else does.
//!
//! Each removal names the row of the tables of translation that marks it; the gateway, which has no columns there,
//! carries text alone.

use super::neutral::{Artifact, Content, Event, Message, Part, Status, Task};
use super::spelling::Spelling;

impl Spelling {
    /// The task, as far as this spelling can tell it.
    pub fn tell_task(self, task: &Task) -> Task {
        let mut told = task.clone();
        told.status = self.tell_status(&task.status);
        told.history = task.history.iter().map(|message| self.tell_message(message)).collect();
        told.artifacts = task.artifacts.iter().map(|artifact| self.tell_artifact(artifact)).collect();
        if self == Spelling::Gateway {
            // Text only.
            told.metadata = None;
        }
        told
    }

    fn tell_status(self, status: &Status) -> Status {
        let mut told = status.clone();
        told.message = status.message.as_ref().map(|message| self.tell_message(message));
        told.state = match (self, status.state.as_str()) {
            // Row `TaskState`: REJECTED -> `failed`, AUTH_REQUIRED -> `input-required` in 0.1.
            (Spelling::Type, "rejected") => "failed",
            (Spelling::Type, "auth-required") => "input-required",
            // The gateway waits, for whatever it is.
            (Spelling::Gateway, "auth-required") => "input-required",
            (_, state) => state,
        }
        .to_owned();
        if self == Spelling::Gateway {
            // Told in milliseconds.
            told.time = None;
        }
        told
    }

    /// A message, sent or read.
    pub fn tell_message(self, message: &Message) -> Message {
        let mut told = message.clone();
        told.parts = message.parts.iter().map(|part| self.tell_part(part)).collect();
        match self {
            Spelling::V1 | Spelling::Kind => {}
            Spelling::Proto => {
                // Row `message.extensions, referenceTaskIds`: 0.3 ProtoJSON has no referenceTaskIds.
                told.references.clear();
            }
            Spelling::Type => {
                // Rows `message.messageId`, `message.taskId` and `message.contextId`: said beside the message, or not.
                (told.id, told.task, told.context) = (None, None, None);
                // Row `message.extensions, referenceTaskIds`: neither in 0.1.
                told.extensions.clear();
                told.references.clear();
            }
            // Text only.
            Spelling::Gateway => told = Message::new(&message.role, vec![Part::text(message.text())]),
        }
        told
    }

    fn tell_part(self, part: &Part) -> Part {
        let mut told = part.clone();
        match &part.content {
            _ if self == Spelling::V1 => {}
            // Row `Part text`: `mediaType` and `filename` on text parts are dropped before 1.0.
            Content::Text(_) => (told.media_type, told.name) = (None, None),
            // Row `Part data object`: `mediaType` is dropped before 1.0.
            Content::Data(_) => told.media_type = None,
            Content::Bytes(_) | Content::Url(_) => {}
        }
        told
    }

    fn tell_artifact(self, artifact: &Artifact) -> Artifact {
        let mut told = artifact.clone();
        told.parts = artifact.parts.iter().map(|part| self.tell_part(part)).collect();
        match self {
            Spelling::V1 | Spelling::Kind | Spelling::Proto => {}
            // Row `message.extensions`, for artifacts too: 0.1 has no extensions.
            Spelling::Type => told.extensions.clear(),
            // Text only.
            Spelling::Gateway => {
                let texts: Vec<&str> = artifact.parts.iter().filter_map(Part::as_text).collect();
                let parts = vec![Part::text(texts.join("\n"))];
                told =
                    Artifact { id: None, name: None, description: None, metadata: None, extensions: Vec::new(), parts };
            }
        }
        told
    }

    /// One event of a task that became like `whole`.
    pub fn tell_event(self, event: &Event, whole: &Task) -> Event {
        match event {
            // Row `StreamResponse wrapper`: in 0.1 a Task frame becomes a status event.
            Event::Task(task) if self == Spelling::Type => Event::Status {
                task: task.id.clone(),
                context: None,
                status: self.tell_status(&task.status),
                is_final: Some(false),
                artifacts: Vec::new(),
            },
            Event::Task(task) => Event::Task(self.tell_task(task)),
            Event::Status { task, context, status, .. } => {
                // Row `StreamResponse wrapper`: in 0.1 the last frame also carries the artifacts.
                let is_end = self == Spelling::Type && status.is_terminal();
                let made = if is_end { whole.artifacts.as_slice() } else { &[] };
                Event::Status {
                    task: task.clone(),
                    context: self.tell_context(context),
                    status: self.tell_status(status),
                    // Row `StatusUpdate (no final)`: 1.0 does not say it. The turns here end when they ask.
                    is_final: (self != Spelling::V1).then(|| status.is_at_rest()),
                    artifacts: made.iter().map(|artifact| self.tell_artifact(artifact)).collect(),
                }
            }
            Event::Artifact { task, context, artifact, append, last } => Event::Artifact {
                task: task.clone(),
                context: self.tell_context(context),
                artifact: self.tell_artifact(artifact),
                append: *append,
                last: *last,
            },
        }
    }

    /// Row `StreamResponse wrapper`: events of 0.1 are `{id,status,final}` or `{id,artifact}`.
    fn tell_context(self, context: &Option<String>) -> Option<String> {
        context.clone().filter(|_| self != Spelling::Type)
    }
}
