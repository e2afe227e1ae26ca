//! Frames of a stream: a task, a message or one of the two events, told apart by their `kind`.

use sabir_model as model;
use sabir_model::{Chunk, ContextId, Error, Event, StatusChange, TaskId};
use serde::{Deserialize, Serialize};

use super::message::{self, Message};
use super::part::Part;
use super::task::{self, Status, Task};
use crate::heard::{self, Heard};
use crate::json;
use crate::spelling::{Carried, Problems, Text, carried, object};
use crate::v1::Artifact;

const STATUS: &str = "status-update";
const ARTIFACT: &str = "artifact-update";

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(rename = "final", skip_serializing_if = "Option::is_none")]
    is_final: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact<'a, Part<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_chunk: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

/// Enough to know what a frame is.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
}

object! { both StatusUpdate<'a>; both ArtifactUpdate<'a>; read Kind<'a> }

/// Appends the frame of one event.
pub(super) fn write_event(task: &TaskId, context: &ContextId, event: &Event, out: &mut Vec<u8>) {
    let (task_id, context_id) = (Some(task.into()), Some(context.into()));
    match event {
        Event::Created(created) => json::write(&Task::created(task, context, created), out),
        Event::Status(change) => {
            let update = StatusUpdate {
                kind: Some(STATUS.into()),
                task_id,
                context_id,
                status: Some((&change.status).into()),
                is_final: Some(change.is_final),
                metadata: carried(&change.metadata),
            };
            json::write(&update, out);
        }
        Event::Artifact(chunk) => {
            let update = ArtifactUpdate {
                kind: Some(ARTIFACT.into()),
                task_id,
                context_id,
                artifact: Some((&*chunk.artifact).into()),
                append: Some(chunk.append),
                last_chunk: Some(chunk.last),
                metadata: carried(&chunk.metadata),
            };
            json::write(&update, out);
        }
    }
}

pub(super) fn read_frame(text: &str) -> Result<Heard, Error> {
    let kind = json::read::<Kind>(text)?.kind;
    Ok(match kind.as_ref().map(Text::as_str) {
        Some(task::KIND) => Heard::Task(Box::new(json::read::<Task>(text)?.try_into()?)),
        Some(message::KIND) => Heard::Reply(Box::new(json::read::<Message>(text)?.try_into()?)),
        Some(STATUS) => json::read::<StatusUpdate>(text)?.try_into()?,
        Some(ARTIFACT) => json::read::<ArtifactUpdate>(text)?.try_into()?,
        _ => return Err(Error::invalid("kind", "must be task, message, status-update or artifact-update")),
    })
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
            let is_final = update.is_final.unwrap_or(status.state.is_terminal());
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
            heard::event(
                task,
                context,
                Event::Artifact(Chunk { index: 0, artifact: artifact.into(), append, last, metadata }),
            )
        }))
    }
}
