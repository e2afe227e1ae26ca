//! Tasks, their status and their artifacts.

use sabir_model as model;
use sabir_model::{ArtifactId, ContextId, Created, State, TaskId, Wanted};
use sabir_proto::v1 as proto;

use super::message::{read_message, write_message};
use super::names::{read_state, write_state};
use super::part::{read_part, write_part};
use crate::peer_response::ReceivedTask;
use crate::protobuf::{read_struct, read_time, write_known_time, write_struct, write_time};
use crate::v1::BIRTH;
use crate::wire_types::{Violations, WireList, non_empty};

pub(super) fn write_task(task: &model::Task) -> proto::Task {
    write_listed_task(task, Wanted::Yes)
}

/// A task in a list of tasks; `artifacts` says whether the caller wants them.
pub(super) fn write_listed_task(task: &model::Task, artifacts: Wanted) -> proto::Task {
    let artifacts = match artifacts {
        Wanted::Yes => task.artifacts.as_slice(),
        Wanted::No => &[],
    };
    proto::Task {
        id: task.id.to_string(),
        context_id: task.context.to_string(),
        status: Some(write_status(&task.status)),
        artifacts: artifacts.iter().map(|artifact| write_artifact(artifact)).collect(),
        history: task.history.iter().map(|message| write_message(message)).collect(),
        metadata: task.metadata.as_ref().map(write_struct),
    }
}

/// The task as event 1 shows it.
pub(super) fn write_created(task: &TaskId, context: &ContextId, created: &Created) -> proto::Task {
    proto::Task {
        id: task.to_string(),
        context_id: context.to_string(),
        status: Some(proto::TaskStatus {
            state: write_state(State::Submitted),
            message: created.note.as_deref().map(write_message),
            timestamp: Some(write_known_time(created.time)),
        }),
        artifacts: Vec::new(),
        history: vec![write_message(&created.message)],
        metadata: created.metadata.as_ref().map(write_struct),
    }
}

pub(super) fn write_status(status: &model::Status) -> proto::TaskStatus {
    proto::TaskStatus {
        state: write_state(status.state),
        message: status.message.as_deref().map(write_message),
        timestamp: write_time(status.time),
    }
}

pub(super) fn write_artifact(artifact: &model::Artifact) -> proto::Artifact {
    proto::Artifact {
        artifact_id: artifact.id.to_string(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
        parts: artifact.parts.iter().map(write_part).collect(),
        metadata: artifact.metadata.as_ref().map(write_struct),
        extensions: artifact.extensions.clone(),
    }
}

pub(super) fn read_task(task: proto::Task) -> Result<model::Task, Violations> {
    let mut violations = Violations::default();
    let artifacts = WireList::<_, ()>::Wire(task.artifacts);
    let history = WireList::<_, ()>::Wire(task.history);
    let received = ReceivedTask {
        id: violations.required_id("id", Some(task.id.into()), TaskId::parse),
        context: violations.id("contextId", Some(task.context_id.into()), ContextId::parse),
        status: violations
            .required("status", task.status)
            .and_then(|status| violations.check("status", read_status(status))),
        artifacts: artifacts.read_each("artifacts", &mut violations, read_artifact),
        history: history.read_each("history", &mut violations, read_message),
        metadata: task.metadata.and_then(|object| violations.check("metadata", read_struct(object))),
        born: BIRTH,
    };
    violations.finish(received.into_model())
}

pub(super) fn read_status(status: proto::TaskStatus) -> Result<model::Status, Violations> {
    let mut violations = Violations::default();
    let state = violations.check_required("state", read_state(status.state));
    let message = status.message.and_then(|message| violations.check("message", read_message(message)));
    let message = message.map(Into::into);
    let time = status.timestamp.map(read_time).unwrap_or_default();
    violations.finish(state.map(|state| model::Status { state, message, time }))
}

pub(super) fn read_artifact(artifact: proto::Artifact) -> Result<model::Artifact, Violations> {
    let mut violations = Violations::default();
    let id = violations.required_id("artifactId", Some(artifact.artifact_id.into()), ArtifactId::parse);
    let parts = WireList::<_, ()>::Wire(artifact.parts).read_each("parts", &mut violations, read_part);
    let metadata = artifact.metadata.and_then(|object| violations.check("metadata", read_struct(object)));
    violations.finish(id.map(|id| model::Artifact {
        id,
        name: non_empty(Some(artifact.name.into())),
        description: non_empty(Some(artifact.description.into())),
        parts,
        extensions: artifact.extensions,
        metadata,
    }))
}
