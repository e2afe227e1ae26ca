//! How A2A 0.1 spells messages, tasks and events: parts say their `type`, the client makes the task's id, and an artifact is
//! known by its index.

use serde_json::{Value, json};

use super::call::{Delivery, SendCall};
use super::errors::RemoteError;
use super::fields::{self, set};
use super::spelling_v03;
use super::task::{RemoteArtifact, RemoteMessage, RemoteState, RemoteTask, TaskEvent};
use super::tasks::new_id;
use super::time;

pub(super) fn read_send(params: &Value) -> Result<SendCall, RemoteError> {
    let message = fields::object(params, "message")?;
    let parts = fields::elements(message, "parts")?.iter();
    let push = fields::optional_object(params, "pushNotification")?;
    Ok(SendCall {
        message: RemoteMessage {
            id: new_id("message"),
            role: spelling_v03::read_role(message)?,
            parts: parts.map(|part| spelling_v03::read_part(part, "type")).collect::<Result<_, _>>()?,
            context_id: fields::optional_text(params, "sessionId")?,
            task_id: Some(fields::text(params, "id")?),
        },
        delivery: Delivery::WhenSettled,
        history_length: fields::count(params, "historyLength")?,
        push: push.map(spelling_v03::read_push).transpose()?,
        key: None,
    })
}

pub(super) fn task(task: &RemoteTask) -> Value {
    let mut value = json!({
        "id": task.id,
        "sessionId": task.context_id,
        "status": status(task.state, task.status_message.as_ref(), task.status_time),
    });
    if !task.artifacts.is_empty() {
        value["artifacts"] =
            task.artifacts.iter().enumerate().map(|(index, content)| artifact(index, content)).collect();
    }
    if !task.history.is_empty() {
        value["history"] = task.history.iter().map(message).collect();
    }
    value
}

/// There is no event for a task; its status stands for it. No task has more than one artifact, so its index is 0.
pub(super) fn event(task_id: &str, event: &TaskEvent) -> Value {
    match event {
        TaskEvent::Created(created) => json!({
            "id": task_id,
            "status": status(created.state, created.status_message.as_ref(), created.status_time),
            "final": created.state.is_settled(),
        }),
        TaskEvent::Status { state, message, time } => json!({
            "id": task_id,
            "status": status(*state, message.as_ref(), *time),
            "final": state.is_settled(),
        }),
        TaskEvent::Artifact { artifact: content, append, last_chunk } => {
            let mut chunk = artifact(0, content);
            set(&mut chunk, "append", append.then_some(true));
            set(&mut chunk, "lastChunk", last_chunk.then_some(true));
            json!({"id": task_id, "artifact": chunk})
        }
    }
}

fn message(message: &RemoteMessage) -> Value {
    let parts: Vec<Value> = message.parts.iter().map(|part| spelling_v03::part(part, "type")).collect();
    json!({"role": spelling_v03::role(message.role), "parts": parts})
}

fn status(state: RemoteState, said: Option<&RemoteMessage>, time: u64) -> Value {
    let mut value = json!({"state": state.in_v01(), "timestamp": time::spell(time)});
    set(&mut value, "message", said.map(message));
    value
}

fn artifact(index: usize, artifact: &RemoteArtifact) -> Value {
    let parts: Vec<Value> = artifact.parts.iter().map(|part| spelling_v03::part(part, "type")).collect();
    json!({"name": artifact.name, "index": index, "parts": parts})
}
