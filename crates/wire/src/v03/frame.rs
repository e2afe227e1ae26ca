//! Frames of a stream: a task, a message, a status update or an artifact update; `kind` says which.

use sabir_model::{ContextId, Error, Event, TaskId};
use serde::{Deserialize, Serialize};

use super::message::{self, Message};
use super::part::Part;
use super::task::{self, Status, Task};
use crate::json;
use crate::peer_response::{self, PeerResponse};
use crate::v1::Artifact;
use crate::wire_types::{RawJson, Text, Violations, object, raw_json};

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
    metadata: Option<RawJson<'a>>,
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
    metadata: Option<RawJson<'a>>,
}

/// The first look at a frame: its kind.
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
                metadata: raw_json(&change.metadata),
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
                metadata: raw_json(&chunk.metadata),
            };
            json::write(&update, out);
        }
    }
}

pub(super) fn read_frame(text: &str) -> Result<PeerResponse, Error> {
    let kind = json::read::<Kind>(text)?.kind;
    Ok(match kind.as_ref().map(Text::as_str) {
        Some(task::KIND) => PeerResponse::Task(Box::new(json::read::<Task>(text)?.try_into()?)),
        Some(message::KIND) => PeerResponse::Message(Box::new(json::read::<Message>(text)?.try_into()?)),
        Some(STATUS) => json::read::<StatusUpdate>(text)?.read()?,
        Some(ARTIFACT) => json::read::<ArtifactUpdate>(text)?.read()?,
        _ => return Err(Error::invalid("kind", "must be task, message, status-update or artifact-update")),
    })
}

impl StatusUpdate<'_> {
    fn read(self) -> Result<PeerResponse, Violations> {
        let update = peer_response::ReceivedStatus {
            task: self.task_id,
            context: self.context_id,
            status: self.status,
            metadata: self.metadata,
        };
        update.read(|state| self.is_final.unwrap_or(state.is_terminal()))
    }
}

impl ArtifactUpdate<'_> {
    fn read(self) -> Result<PeerResponse, Violations> {
        let update = peer_response::ReceivedArtifact {
            task: self.task_id,
            context: self.context_id,
            artifact: self.artifact,
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: self.metadata,
        };
        update.read()
    }
}
