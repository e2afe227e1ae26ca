//! How A2A 0.3 and 0.2 spell messages, tasks and events in JSON-RPC: every object says its `kind`.

use serde_json::{Value, json};

use super::call::{Delivery, SendCall};
use super::errors::RemoteError;
use super::fields::{self, set};
use super::task::{
    PushConfig, RemoteArtifact, RemoteMessage, RemotePart, RemoteRole, RemoteState, RemoteTask, TaskEvent,
};
use super::time;

pub(super) fn read_send(params: &Value) -> Result<SendCall, RemoteError> {
    let message = read_message(fields::object(params, "message")?)?;
    let none = Value::Null;
    let configuration = fields::optional_object(params, "configuration")?.unwrap_or(&none);
    let delivery = match fields::flag(configuration, "blocking")? {
        Some(false) => Delivery::Immediately,
        _ => Delivery::WhenSettled,
    };
    let push = fields::optional_object(configuration, "pushNotificationConfig")?;
    Ok(SendCall {
        message,
        delivery,
        history_length: fields::count(configuration, "historyLength")?,
        push: push.map(read_push).transpose()?,
        key: None,
    })
}

/// Until 0.2.5, a configuration had to name the output modes.
pub(super) fn check_v02(params: &Value) -> Result<(), RemoteError> {
    match fields::optional_object(params, "configuration")? {
        Some(configuration) if !configuration["acceptedOutputModes"].is_array() => {
            Err(RemoteError::invalid("configuration.acceptedOutputModes", "is required"))
        }
        _ => Ok(()),
    }
}

fn read_message(message: &Value) -> Result<RemoteMessage, RemoteError> {
    if fields::text(message, "kind")? != "message" {
        return Err(RemoteError::invalid("message.kind", "must be message"));
    }
    Ok(RemoteMessage {
        id: fields::text(message, "messageId")?,
        role: read_role(message)?,
        parts: fields::elements(message, "parts")?
            .iter()
            .map(|part| read_part(part, "kind"))
            .collect::<Result<_, _>>()?,
        context_id: fields::optional_text(message, "contextId")?,
        task_id: fields::optional_text(message, "taskId")?,
    })
}

pub(super) fn read_role(message: &Value) -> Result<RemoteRole, RemoteError> {
    match fields::text(message, "role")?.as_str() {
        "user" => Ok(RemoteRole::User),
        "agent" => Ok(RemoteRole::Agent),
        _ => Err(RemoteError::invalid("message.role", "must be user or agent")),
    }
}

/// `discriminator` is `kind`, and `type` in 0.1.
pub(super) fn read_part(part: &Value, discriminator: &str) -> Result<RemotePart, RemoteError> {
    match fields::text(part, discriminator)?.as_str() {
        "text" => match part["text"].as_str() {
            Some(text) => Ok(RemotePart::Text(text.to_owned())),
            None => Err(RemoteError::invalid("message.parts", "a text part has a text")),
        },
        "data" if part["data"].is_object() => Ok(RemotePart::Data(part["data"].clone())),
        "file" => {
            let file = fields::object(part, "file")?;
            let (name, media_type) = (fields::optional_text(file, "name")?, fields::optional_text(file, "mimeType")?);
            match (fields::optional_text(file, "bytes")?, fields::optional_text(file, "uri")?) {
                (Some(base64), None) => Ok(RemotePart::Bytes { base64, name, media_type }),
                (None, Some(url)) => Ok(RemotePart::Url { url, name, media_type }),
                _ => Err(RemoteError::invalid("message.parts", "a file has bytes or a uri")),
            }
        }
        _ => Err(RemoteError::invalid("message.parts", "a part is text, a file, or data that is an object")),
    }
}

pub(super) fn read_push(config: &Value) -> Result<PushConfig, RemoteError> {
    let none = Value::Null;
    let authentication = fields::optional_object(config, "authentication")?.unwrap_or(&none);
    Ok(PushConfig {
        id: fields::optional_text(config, "id")?.unwrap_or_default(),
        url: fields::text(config, "url")?,
        token: fields::optional_text(config, "token")?,
        scheme: authentication["schemes"][0].as_str().map(str::to_owned),
        credentials: fields::optional_text(authentication, "credentials")?,
    })
}

pub(super) fn task(task: &RemoteTask) -> Value {
    let mut value = json!({
        "kind": "task",
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

pub(super) fn event(task_id: &str, context_id: &str, event: &TaskEvent) -> Value {
    match event {
        TaskEvent::Created(created) => task(created),
        TaskEvent::Status { state, message, time } => json!({
            "kind": "status-update",
            "taskId": task_id,
            "contextId": context_id,
            "status": status(*state, message.as_ref(), *time),
            "final": state.is_settled(),
        }),
        TaskEvent::Artifact { artifact: content, append, last_chunk } => json!({
            "kind": "artifact-update",
            "taskId": task_id,
            "contextId": context_id,
            "artifact": artifact(content),
            "append": append,
            "lastChunk": last_chunk,
        }),
    }
}

pub(super) fn message(message: &RemoteMessage) -> Value {
    let parts: Vec<Value> = message.parts.iter().map(|content| part(content, "kind")).collect();
    let mut value = json!({"kind": "message", "messageId": message.id, "role": role(message.role), "parts": parts});
    set(&mut value, "contextId", message.context_id.clone());
    set(&mut value, "taskId", message.task_id.clone());
    value
}

pub(super) fn role(role: RemoteRole) -> &'static str {
    match role {
        RemoteRole::User => "user",
        RemoteRole::Agent => "agent",
    }
}

/// `PushNotificationConfig`, which the versions before 1.0 have in common.
pub(super) fn push(config: &PushConfig) -> Value {
    let mut value = json!({"id": config.id, "url": config.url});
    set(&mut value, "authentication", config.scheme.as_ref().map(|scheme| json!({ "schemes": [scheme] })));
    value
}

pub(super) fn part(part: &RemotePart, discriminator: &str) -> Value {
    let (kind, field, mut content) = match part {
        RemotePart::Text(text) => ("text", "text", json!(text)),
        RemotePart::Data(data) => ("data", "data", json!(data)),
        RemotePart::Bytes { base64, .. } => ("file", "file", json!({ "bytes": base64 })),
        RemotePart::Url { url, .. } => ("file", "file", json!({ "uri": url })),
    };
    if let RemotePart::Bytes { name, media_type, .. } | RemotePart::Url { name, media_type, .. } = part {
        set(&mut content, "name", name.clone());
        set(&mut content, "mimeType", media_type.clone());
    }
    json!({discriminator: kind, field: content})
}

fn status(state: RemoteState, said: Option<&RemoteMessage>, time: u64) -> Value {
    let mut value = json!({"state": state.in_v03(), "timestamp": time::spell(time)});
    set(&mut value, "message", said.map(message));
    value
}

fn artifact(artifact: &RemoteArtifact) -> Value {
    let parts: Vec<Value> = artifact.parts.iter().map(|content| part(content, "kind")).collect();
    json!({"artifactId": artifact.id, "name": artifact.name, "parts": parts})
}
