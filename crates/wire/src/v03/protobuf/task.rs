//! Tasks, with their status and their artifacts.

use sabir_model as model;
use sabir_model::{ArtifactId, ContextId, State, TaskId};
use sabir_proto::v03;

use super::super::dialect::BIRTH;
use super::fields::{present, read_metadata, write_metadata};
use super::message::{read_message, write_message};
use super::names::{read_state, state_number};
use super::part::{read_part, write_part};
use crate::peer_response::ReceivedTask;
use crate::protobuf::{read_time, write_known_time, write_time};
use crate::wire_types::{Violations, WireList, non_empty};

pub(super) fn write_task(task: &model::Task) -> v03::Task {
    v03::Task {
        id: task.id.to_string(),
        context_id: task.context.to_string(),
        status: Some(write_status(&task.status)),
        artifacts: task.artifacts.iter().map(|artifact| write_artifact(artifact)).collect(),
        history: task.history.iter().map(|message| write_message(Some(&message.id), message)).collect(),
        metadata: write_metadata(&task.metadata),
    }
}

/// The task as event 1 shows it.
pub(super) fn write_created(task: &TaskId, context: &ContextId, created: &model::Created) -> v03::Task {
    let note = created.note.as_ref();
    let status = v03::TaskStatus {
        state: state_number(State::Submitted),
        update: note.map(|message| write_message(Some(&message.id), message)),
        timestamp: Some(write_known_time(created.time)),
    };
    v03::Task {
        id: task.to_string(),
        context_id: context.to_string(),
        status: Some(status),
        artifacts: Vec::new(),
        history: vec![write_message(Some(&created.message.id), &created.message)],
        metadata: write_metadata(&created.metadata),
    }
}

pub(super) fn write_status(status: &model::Status) -> v03::TaskStatus {
    v03::TaskStatus {
        state: state_number(status.state),
        update: status.message.as_ref().map(|message| write_message(Some(&message.id), message)),
        timestamp: write_time(status.time),
    }
}

pub(super) fn write_artifact(artifact: &model::Artifact) -> v03::Artifact {
    v03::Artifact {
        artifact_id: artifact.id.to_string(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
        parts: artifact.parts.iter().map(write_part).collect(),
        metadata: write_metadata(&artifact.metadata),
        extensions: artifact.extensions.clone(),
    }
}

pub(super) fn read_task(task: v03::Task) -> Result<model::Task, Violations> {
    let mut violations = Violations::default();
    let artifacts = WireList::<_, ()>::Wire(task.artifacts);
    let history = WireList::<_, ()>::Wire(task.history);
    let received = ReceivedTask {
        id: violations.required_id("id", present(task.id), TaskId::parse),
        context: violations.id("contextId", present(task.context_id), ContextId::parse),
        status: violations.required("status", task.status).and_then(|s| violations.check("status", read_status(s))),
        artifacts: artifacts.read_each("artifacts", &mut violations, read_artifact),
        history: history.read_each("history", &mut violations, read_message),
        metadata: read_metadata(task.metadata, &mut violations),
        born: BIRTH,
    };
    violations.finish(received.into_model())
}

/// A status without a time gets the oldest time there is.
pub(super) fn read_status(status: v03::TaskStatus) -> Result<model::Status, Violations> {
    let mut violations = Violations::default();
    let state = violations.check_required("state", read_state(status.state));
    let message = status.update.and_then(|message| violations.check("message", read_message(message)));
    let message = message.map(Into::into);
    let time = status.timestamp.map(read_time).unwrap_or_default();
    violations.finish(state.map(|state| model::Status { state, message, time }))
}

pub(super) fn read_artifact(artifact: v03::Artifact) -> Result<model::Artifact, Violations> {
    let mut violations = Violations::default();
    let id = violations.required_id("artifactId", present(artifact.artifact_id), ArtifactId::parse);
    let parts = WireList::<_, ()>::Wire(artifact.parts).read_each("parts", &mut violations, read_part);
    let metadata = read_metadata(artifact.metadata, &mut violations);
    violations.finish(id.map(|id| model::Artifact {
        id,
        name: non_empty(present(artifact.name)),
        description: non_empty(present(artifact.description)),
        parts,
        extensions: artifact.extensions,
        metadata,
    }))
}
