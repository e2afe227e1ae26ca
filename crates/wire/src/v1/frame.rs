//! Frames of a stream, which are also the bodies of webhooks; two of them are the results of a send.

use sabir_model as model;
use sabir_model::{Chunk, ContextId, Event, StatusChange, TaskId};
use serde::{Deserialize, Serialize};

use super::message::Message;
use super::part::Part;
use super::task::{Artifact, Status, Task};
use crate::heard::{self, Heard};
use crate::spelling::{Carried, Problems, Text, carried, object};

/// Exactly one of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Frame<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<Task<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Message<'a>>,
    #[serde(alias = "status_update", skip_serializing_if = "Option::is_none")]
    status_update: Option<StatusUpdate<'a>>,
    #[serde(alias = "artifact_update", skip_serializing_if = "Option::is_none")]
    artifact_update: Option<ArtifactUpdate<'a>>,
}

/// 1.0 does not say which status is the last one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct StatusUpdate<'a> {
    #[serde(borrow, alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct ArtifactUpdate<'a> {
    #[serde(borrow, alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact<'a, Part<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(alias = "last_chunk", skip_serializing_if = "Option::is_none")]
    last_chunk: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

object! { both Frame<'a>; both StatusUpdate<'a>; both ArtifactUpdate<'a> }

impl<'a> Frame<'a> {
    pub(super) fn task(task: &'a model::Task) -> Self {
        Frame { task: Some(task.into()), ..Frame::default() }
    }

    pub(super) fn message(message: &'a model::Message) -> Self {
        Frame { message: Some(message.into()), ..Frame::default() }
    }

    pub(super) fn event(task: &'a TaskId, context: &'a ContextId, event: &'a Event) -> Self {
        let (task_id, context_id) = (Some(task.into()), Some(context.into()));
        match event {
            Event::Created(created) => Frame { task: Some(Task::created(task, context, created)), ..Frame::default() },
            Event::Status(change) => {
                let (status, metadata) = (Some((&change.status).into()), carried(&change.metadata));
                let update = StatusUpdate { task_id, context_id, status, metadata };
                Frame { status_update: Some(update), ..Frame::default() }
            }
            Event::Artifact(chunk) => {
                let update = ArtifactUpdate {
                    task_id,
                    context_id,
                    artifact: Some((&*chunk.artifact).into()),
                    append: chunk.append.then_some(true),
                    last_chunk: chunk.last.then_some(true),
                    metadata: carried(&chunk.metadata),
                };
                Frame { artifact_update: Some(update), ..Frame::default() }
            }
        }
    }
}

impl TryFrom<Frame<'_>> for Heard {
    type Error = Problems;

    fn try_from(frame: Frame<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let heard = match (frame.task, frame.message, frame.status_update, frame.artifact_update) {
            (Some(task), None, None, None) => {
                problems.keep("task", task.try_into()).map(|task| Heard::Task(Box::new(task)))
            }
            (None, Some(message), None, None) => {
                problems.keep("message", message.try_into()).map(|message| Heard::Reply(Box::new(message)))
            }
            (None, None, Some(update), None) => problems.keep("statusUpdate", update.try_into()),
            (None, None, None, Some(update)) => problems.keep("artifactUpdate", update.try_into()),
            _ => {
                problems.add("", "exactly one of task, message, statusUpdate and artifactUpdate is required");
                None
            }
        };
        problems.or(heard)
    }
}

impl TryFrom<StatusUpdate<'_>> for Heard {
    type Error = Problems;

    fn try_from(update: StatusUpdate<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let task = problems.required_id("taskId", update.task_id, TaskId::parse);
        let context = problems.id("contextId", update.context_id, ContextId::parse);
        let status = problems.required("status", update.status);
        let status = status.and_then(|status| problems.keep("status", status.try_into()));
        let metadata = problems.object("metadata", update.metadata);
        problems.or(task.zip(status).map(|(task, status): (TaskId, model::Status)| {
            let is_final = status.state.is_terminal();
            let change =
                StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata };
            heard::event(task, context, Event::Status(change))
        }))
    }
}

impl TryFrom<ArtifactUpdate<'_>> for Heard {
    type Error = Problems;

    fn try_from(update: ArtifactUpdate<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let task = problems.required_id("taskId", update.task_id, TaskId::parse);
        let context = problems.id("contextId", update.context_id, ContextId::parse);
        let artifact = problems.required("artifact", update.artifact);
        let artifact: Option<model::Artifact> =
            artifact.and_then(|artifact| problems.keep("artifact", artifact.try_into()));
        let metadata = problems.object("metadata", update.metadata);
        let (append, last) = (update.append.unwrap_or(false), update.last_chunk.unwrap_or(false));
        problems.or(task.zip(artifact).map(|(task, artifact)| {
            // Its place in the task is for the reader to count.
            heard::event(
                task,
                context,
                Event::Artifact(Chunk { index: 0, artifact: artifact.into(), append, last, metadata }),
            )
        }))
    }
}
