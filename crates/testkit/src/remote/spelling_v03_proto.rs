//! How A2A 0.3 spells messages, tasks and events in HTTP+JSON: ProtoJSON of the package `a2a.v1`.
//!
//! Unknown members are refused, as the servers of that time did.

use serde_json::{Value, json};

use super::call::{Delivery, SendCall};
use super::errors::RemoteError;
use super::fields::{self, set};
use super::spelling_v03;
use super::task::{
    PushConfig, RemoteArtifact, RemoteMessage, RemotePart, RemoteRole, RemoteState, RemoteTask, TaskEvent,
};
use super::time;

const MESSAGE: [&str; 8] =
    ["messageId", "contextId", "taskId", "role", "content", "metadata", "extensions", "referenceTaskIds"];
const CONFIGURATION: [&str; 4] = ["acceptedOutputModes", "pushNotification", "historyLength", "blocking"];

pub(super) fn read_send(body: &Value) -> Result<SendCall, RemoteError> {
    fields::only(body, &["message", "request", "configuration", "metadata"])?;
    let message = match body.get("request") {
        Some(message) => message,
        None => fields::object(body, "message")?,
    };
    let none = Value::Null;
    let configuration = fields::optional_object(body, "configuration")?.unwrap_or(&none);
    fields::only(configuration, &CONFIGURATION)?;
    // The default of a flag in ProtoJSON is false: a configuration without it does not wait.
    let delivery = match (configuration, fields::flag(configuration, "blocking")?) {
        (Value::Null, _) | (_, Some(true)) => Delivery::WhenSettled,
        _ => Delivery::Immediately,
    };
    let push = fields::optional_object(configuration, "pushNotification")?;
    Ok(SendCall {
        message: read_message(message)?,
        delivery,
        // Nor can zero be told from no length.
        history_length: fields::count(configuration, "historyLength")?.filter(|length| *length > 0),
        push: push.map(spelling_v03::read_push).transpose()?,
        key: None,
    })
}

fn read_message(message: &Value) -> Result<RemoteMessage, RemoteError> {
    fields::only(message, &MESSAGE)?;
    let role = match fields::text(message, "role")?.as_str() {
        "ROLE_USER" => RemoteRole::User,
        "ROLE_AGENT" => RemoteRole::Agent,
        _ => return Err(RemoteError::invalid("message.role", "must be ROLE_USER or ROLE_AGENT")),
    };
    Ok(RemoteMessage {
        id: fields::text(message, "messageId")?,
        role,
        parts: fields::elements(message, "content")?.iter().map(read_part).collect::<Result<_, _>>()?,
        context_id: fields::optional_text(message, "contextId")?,
        task_id: fields::optional_text(message, "taskId")?,
    })
}

fn read_part(part: &Value) -> Result<RemotePart, RemoteError> {
    fields::only(part, &["text", "file", "data", "metadata"])?;
    match (part["text"].as_str(), fields::optional_object(part, "file")?, &part["data"]["data"]) {
        (Some(text), None, Value::Null) => Ok(RemotePart::Text(text.to_owned())),
        (None, None, data) if data.is_object() => Ok(RemotePart::Data(data.clone())),
        (None, Some(file), Value::Null) => {
            fields::only(file, &["fileWithBytes", "fileWithUri", "mimeType", "name"])?;
            let (name, media_type) = (fields::optional_text(file, "name")?, fields::optional_text(file, "mimeType")?);
            match (fields::optional_text(file, "fileWithBytes")?, fields::optional_text(file, "fileWithUri")?) {
                (Some(base64), None) => Ok(RemotePart::Bytes { base64, name, media_type }),
                (None, Some(url)) => Ok(RemotePart::Url { url, name, media_type }),
                _ => Err(RemoteError::invalid("message.content", "a file has fileWithBytes or fileWithUri")),
            }
        }
        _ => Err(RemoteError::invalid("message.content", "a part has one of text, file and data")),
    }
}

/// Both forms that clients send: the request message, and the config by itself.
pub(super) fn read_push(body: &Value) -> Result<PushConfig, RemoteError> {
    let config = fields::optional_object(body, "config")?.unwrap_or(body);
    let mut push = spelling_v03::read_push(fields::object(config, "pushNotificationConfig")?)?;
    if push.id.is_empty() {
        push.id = fields::optional_text(body, "configId")?.unwrap_or_default();
    }
    Ok(push)
}

pub(super) fn push(task_id: &str, config: &PushConfig) -> Value {
    let name = format!("tasks/{task_id}/pushNotificationConfigs/{}", config.id);
    json!({"name": name, "pushNotificationConfig": spelling_v03::push(config)})
}

pub(super) fn task(task: &RemoteTask) -> Value {
    let mut value = json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": status(task.state, task.status_message.as_ref(), task.status_time),
    });
    if !task.artifacts.is_empty() {
        value["artifacts"] = task.artifacts.iter().map(artifact).collect();
    }
    if !task.history.is_empty() {
        value["history"] = task.history.iter().map(message).collect();
    }
    value
}

/// A `StreamResponse`.
pub(super) fn event(task_id: &str, context_id: &str, event: &TaskEvent) -> Value {
    match event {
        TaskEvent::Created(created) => json!({ "task": task(created) }),
        TaskEvent::Status { state, message, time } => {
            let status = status(*state, message.as_ref(), *time);
            let mut update = json!({"taskId": task_id, "contextId": context_id, "status": status});
            set(&mut update, "final", state.is_settled().then_some(true));
            json!({ "statusUpdate": update })
        }
        TaskEvent::Artifact { artifact: content, append, last_chunk } => {
            let mut update = json!({"taskId": task_id, "contextId": context_id, "artifact": artifact(content)});
            set(&mut update, "append", append.then_some(true));
            set(&mut update, "lastChunk", last_chunk.then_some(true));
            json!({ "artifactUpdate": update })
        }
    }
}

pub(super) fn message(message: &RemoteMessage) -> Value {
    let role = match message.role {
        RemoteRole::User => "ROLE_USER",
        RemoteRole::Agent => "ROLE_AGENT",
    };
    let content: Vec<Value> = message.parts.iter().map(part).collect();
    let mut value = json!({"messageId": message.id, "role": role, "content": content});
    set(&mut value, "contextId", message.context_id.clone());
    set(&mut value, "taskId", message.task_id.clone());
    value
}

fn status(state: RemoteState, said: Option<&RemoteMessage>, time: u64) -> Value {
    let mut value = json!({"state": state.in_v03_proto(), "timestamp": time::spell(time)});
    set(&mut value, "message", said.map(message));
    value
}

fn artifact(artifact: &RemoteArtifact) -> Value {
    let parts: Vec<Value> = artifact.parts.iter().map(part).collect();
    json!({"artifactId": artifact.id, "name": artifact.name, "parts": parts})
}

fn part(part: &RemotePart) -> Value {
    let (mut file, name, media_type) = match part {
        RemotePart::Text(text) => return json!({ "text": text }),
        RemotePart::Data(data) => return json!({"data": { "data": data }}),
        RemotePart::Bytes { base64, name, media_type } => (json!({ "fileWithBytes": base64 }), name, media_type),
        RemotePart::Url { url, name, media_type } => (json!({ "fileWithUri": url }), name, media_type),
    };
    set(&mut file, "name", name.clone());
    set(&mut file, "mimeType", media_type.clone());
    json!({ "file": file })
}
