//! Frames of a stream: a task, a message, a status update or an artifact update. The first two are also results of a send.

use sabir_model::{ContextId, Event, TaskId};
use sabir_proto::v03;
use sabir_proto::v03::stream_response::Payload;

use super::fields::{present, read_metadata, write_metadata};
use super::message::read_message;
use super::task::{read_artifact, read_status, read_task, write_artifact, write_created, write_status};
use crate::peer_response::{PeerResponse, ReceivedArtifact, ReceivedStatus};
use crate::wire_types::{Violations, raw_json};

pub(super) fn write_event(task: &TaskId, context: &ContextId, event: &Event) -> Payload {
    match event {
        Event::Created(created) => Payload::Task(write_created(task, context, created)),
        Event::Status(change) => Payload::StatusUpdate(v03::TaskStatusUpdateEvent {
            task_id: task.to_string(),
            context_id: context.to_string(),
            status: Some(write_status(&change.status)),
            r#final: change.is_final,
            metadata: write_metadata(&change.metadata),
        }),
        Event::Artifact(chunk) => Payload::ArtifactUpdate(v03::TaskArtifactUpdateEvent {
            task_id: task.to_string(),
            context_id: context.to_string(),
            artifact: Some(write_artifact(&chunk.artifact)),
            append: chunk.append,
            last_chunk: chunk.last,
            metadata: write_metadata(&chunk.metadata),
        }),
    }
}

pub(super) fn read_frame(frame: v03::StreamResponse) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let response = match frame.payload {
        Some(Payload::Task(task)) => {
            violations.check("task", read_task(task)).map(|task| PeerResponse::Task(Box::new(task)))
        }
        Some(Payload::Msg(message)) => {
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

fn read_status_update(update: v03::TaskStatusUpdateEvent) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let metadata = read_metadata(update.metadata, &mut violations);
    let received = ReceivedStatus {
        task: present(update.task_id),
        context: present(update.context_id),
        status: update.status,
        metadata: raw_json(&metadata),
    };
    let event = violations.check("", received.read_with(|_| update.r#final, read_status));
    violations.finish(event)
}

fn read_artifact_update(update: v03::TaskArtifactUpdateEvent) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let metadata = read_metadata(update.metadata, &mut violations);
    let received = ReceivedArtifact {
        task: present(update.task_id),
        context: present(update.context_id),
        artifact: update.artifact,
        append: Some(update.append),
        last_chunk: Some(update.last_chunk),
        metadata: raw_json(&metadata),
    };
    let event = violations.check("", received.read_with(read_artifact));
    violations.finish(event)
}
