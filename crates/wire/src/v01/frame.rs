//! Frames of a stream: a status or an artifact, whichever member is there.

use sabir_model as model;
use sabir_model::{Event, StatusChange, TaskId};
use serde::{Deserialize, Serialize};

use super::artifact::{Artifact, ArtifactList};
use super::task::Status;
use crate::peer_response::{self, PeerResponse};
use crate::wire_types::{RawJson, Text, Violations, object, raw_json};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Frame<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(rename = "final", skip_serializing_if = "Option::is_none")]
    is_final: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
    /// On the last frame: all artifacts of the task.
    #[serde(default, skip_serializing_if = "ArtifactList::is_empty")]
    artifacts: ArtifactList<'a>,
}

object! { both Frame<'a> }

impl<'a> Frame<'a> {
    pub(super) fn event(task: &'a TaskId, event: &'a Event) -> Self {
        let frame = Frame { id: Some(task.into()), ..Frame::default() };
        match event {
            Event::Created(created) => Frame { status: Some(Status::created(created)), is_final: Some(false), ..frame },
            Event::Status(change) => {
                let metadata = raw_json(&change.metadata);
                Frame { status: Some((&change.status).into()), is_final: Some(change.is_final), metadata, ..frame }
            }
            Event::Artifact(chunk) => {
                Frame { artifact: Some(Artifact::of(chunk)), metadata: raw_json(&chunk.metadata), ..frame }
            }
        }
    }

    /// A snapshot is never final: a finished task sends its last event again, and a waiting task continues with its
    /// next turn.
    pub(super) fn snapshot(task: &'a model::Task) -> Self {
        Frame {
            id: Some((&task.id).into()),
            status: Some((&task.status).into()),
            is_final: Some(false),
            ..Frame::default()
        }
    }

    pub(super) fn end(task: &'a model::Task, event: &'a Event) -> Self {
        Frame { artifacts: ArtifactList::Model(&task.artifacts), ..Frame::event(&task.id, event) }
    }
}

impl TryFrom<Frame<'_>> for PeerResponse {
    type Error = Violations;

    fn try_from(frame: Frame<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let task = violations.required_id("id", frame.id, TaskId::parse);
        let artifacts = frame.artifacts.read_each("artifacts", &mut violations);
        let metadata = violations.object("metadata", frame.metadata);
        match (frame.status, frame.artifact) {
            (Some(status), None) => {
                let status: Option<model::Status> = violations.check("status", status.try_into());
                violations.finish(task.zip(status).map(|(task, status)| {
                    let is_final = frame.is_final.unwrap_or(status.state.is_terminal());
                    status_response(
                        task,
                        StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata },
                        artifacts,
                    )
                }))
            }
            (None, Some(artifact)) => {
                let chunk = violations.check("artifact", artifact.read(0));
                violations.finish(task.zip(chunk).map(|(task, chunk)| {
                    peer_response::event(task, None, Event::Artifact(model::Chunk { metadata, ..chunk }))
                }))
            }
            _ => {
                violations.add("", "must hold one of status and artifact");
                Err(violations)
            }
        }
    }
}

fn status_response(task: TaskId, change: StatusChange, artifacts: Vec<model::Artifact>) -> PeerResponse {
    let status = change.status.clone();
    let event = Event::Status(change);
    if artifacts.is_empty() {
        return peer_response::event(task, None, event);
    }
    let task_with_artifacts = peer_response::ReceivedTask {
        id: Some(task),
        context: None,
        status: Some(status),
        artifacts,
        history: Vec::new(),
        metadata: None,
        born: super::dialect::BIRTH,
    };
    let task = task_with_artifacts.into_model().expect("it has an id and a status");
    PeerResponse::FinalEvent { task: Box::new(task), event: Box::new(event) }
}
