//! Frames of a stream; two of them are the results of a send.
//!
//! `SendMessageResponse` and `StreamResponse` have the same numbers for what both can hold, task = 1 and message = 2. So
//! the bytes are the same, and `StreamResponse` serves for both.

use sabir_model as model;
use sabir_model::{ContextId, Event, State, TaskId};
use sabir_proto::v1 as proto;
use sabir_proto::v1::stream_response::Payload;

use super::message::{read_message, write_message};
use super::task::{read_artifact, read_status, read_task, write_artifact, write_created, write_status, write_task};
use crate::peer_response::{PeerResponse, ReceivedArtifact, ReceivedStatus};
use crate::protobuf::{read_struct, write_struct};
use crate::wire_types::{RawJson, Violations};

pub(super) fn write_task_frame(task: &model::Task) -> proto::StreamResponse {
    frame(Payload::Task(write_task(task)))
}

pub(super) fn write_message_frame(message: &model::Message) -> proto::StreamResponse {
    frame(Payload::Message(write_message(message)))
}

pub(super) fn write_event(task: &TaskId, context: &ContextId, event: &Event) -> proto::StreamResponse {
    frame(match event {
        Event::Created(created) => Payload::Task(write_created(task, context, created)),
        Event::Status(change) => Payload::StatusUpdate(proto::TaskStatusUpdateEvent {
            task_id: task.to_string(),
            context_id: context.to_string(),
            status: Some(write_status(&change.status)),
            metadata: change.metadata.as_ref().map(write_struct),
        }),
        Event::Artifact(chunk) => Payload::ArtifactUpdate(proto::TaskArtifactUpdateEvent {
            task_id: task.to_string(),
            context_id: context.to_string(),
            artifact: Some(write_artifact(&chunk.artifact)),
            append: chunk.append,
            last_chunk: chunk.last,
            metadata: chunk.metadata.as_ref().map(write_struct),
        }),
    })
}

fn frame(payload: Payload) -> proto::StreamResponse {
    proto::StreamResponse { payload: Some(payload) }
}

pub(super) fn read_frame(frame: proto::StreamResponse) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let response = match frame.payload {
        Some(Payload::Task(task)) => {
            violations.check("task", read_task(task)).map(|task| PeerResponse::Task(Box::new(task)))
        }
        Some(Payload::Message(message)) => {
            violations.check("message", read_message(message)).map(|message| PeerResponse::Message(Box::new(message)))
        }
        Some(Payload::StatusUpdate(update)) => violations.check("statusUpdate", read_status_update(update)),
        Some(Payload::ArtifactUpdate(update)) => violations.check("artifactUpdate", read_artifact_update(update)),
        None => {
            violations.add("", "exactly one of task, message, statusUpdate and artifactUpdate is required");
            None
        }
    };
    violations.finish(response)
}

fn read_status_update(update: proto::TaskStatusUpdateEvent) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let metadata = update.metadata.and_then(|object| violations.check("metadata", read_struct(object)));
    let received = ReceivedStatus {
        task: Some(update.task_id.into()),
        context: Some(update.context_id.into()),
        status: update.status,
        metadata: metadata.map(RawJson::from),
    };
    let response = violations.check("", received.read_with(State::is_terminal, read_status));
    violations.finish(response)
}

fn read_artifact_update(update: proto::TaskArtifactUpdateEvent) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let metadata = update.metadata.and_then(|object| violations.check("metadata", read_struct(object)));
    let received = ReceivedArtifact {
        task: Some(update.task_id.into()),
        context: Some(update.context_id.into()),
        artifact: update.artifact,
        append: Some(update.append),
        last_chunk: Some(update.last_chunk),
        metadata: metadata.map(RawJson::from),
    };
    let response = violations.check("", received.read_with(read_artifact));
    violations.finish(response)
}
