//! Frames of a stream: a status or an artifact, told apart by the member that is there.

use sabir_model as model;
use sabir_model::{Event, StatusChange, TaskId};
use serde::{Deserialize, Serialize};

use super::artifact::{Artifact, Artifacts};
use super::task::Status;
use crate::heard::{self, Heard};
use crate::spelling::{Carried, Problems, Text, carried, object};

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
    metadata: Option<Carried<'a>>,
    /// On the last frame: all that the task has made.
    #[serde(default, skip_serializing_if = "Artifacts::is_empty")]
    artifacts: Artifacts<'a>,
}

object! { both Frame<'a> }

impl<'a> Frame<'a> {
    pub(super) fn event(task: &'a TaskId, event: &'a Event) -> Self {
        let frame = Frame { id: Some(task.into()), ..Frame::default() };
        match event {
            Event::Created(created) => Frame { status: Some(Status::created(created)), is_final: Some(false), ..frame },
            Event::Status(change) => {
                let metadata = carried(&change.metadata);
                Frame { status: Some((&change.status).into()), is_final: Some(change.is_final), metadata, ..frame }
            }
            Event::Artifact(chunk) => {
                Frame { artifact: Some(Artifact::of(chunk)), metadata: carried(&chunk.metadata), ..frame }
            }
        }
    }

    /// It is never the last one: a task that is at its end tells that by its last event once more, and one that waits
    /// goes on with its next turn.
    pub(super) fn snapshot(task: &'a model::Task) -> Self {
        Frame {
            id: Some((&task.id).into()),
            status: Some((&task.status).into()),
            is_final: Some(false),
            ..Frame::default()
        }
    }

    pub(super) fn end(task: &'a model::Task, event: &'a Event) -> Self {
        Frame { artifacts: Artifacts::Ours(&task.artifacts), ..Frame::event(&task.id, event) }
    }
}

impl TryFrom<Frame<'_>> for Heard {
    type Error = Problems;

    fn try_from(frame: Frame<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let task = problems.required_id("id", frame.id, TaskId::parse);
        let artifacts = frame.artifacts.read_each("artifacts", &mut problems);
        let metadata = problems.object("metadata", frame.metadata);
        match (frame.status, frame.artifact) {
            (Some(status), None) => {
                let status: Option<model::Status> = problems.keep("status", status.try_into());
                problems.or(task.zip(status).map(|(task, status)| {
                    let is_final = frame.is_final.unwrap_or(status.state.is_terminal());
                    told(
                        task,
                        StatusChange { status, is_final, input: Vec::new(), begins_turn: false, usage: None, metadata },
                        artifacts,
                    )
                }))
            }
            (None, Some(artifact)) => {
                let chunk = problems.keep("artifact", artifact.read(0));
                problems.or(task
                    .zip(chunk)
                    .map(|(task, chunk)| heard::event(task, None, Event::Artifact(model::Chunk { metadata, ..chunk }))))
            }
            _ => {
                problems.add("", "must hold one of status and artifact");
                Err(problems)
            }
        }
    }
}

fn told(task: TaskId, change: StatusChange, artifacts: Vec<model::Artifact>) -> Heard {
    let status = change.status.clone();
    let event = Event::Status(change);
    if artifacts.is_empty() {
        return heard::event(task, None, event);
    }
    let whole = heard::Task {
        id: Some(task),
        context: None,
        status: Some(status),
        artifacts,
        history: Vec::new(),
        metadata: None,
        born: super::dialect::BIRTH,
    };
    let task = whole.into_model().expect("it has an id and a status");
    Heard::End { task: Box::new(task), event: Box::new(event) }
}
