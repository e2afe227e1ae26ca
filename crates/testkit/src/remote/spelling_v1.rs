//! How A2A 1.0 spells messages, tasks and events, in both of its bindings.

use serde_json::{Value, json};

use super::call::{Artifacts, Delivery, ListQuery, SendCall};
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
    let delivery = match fields::flag(configuration, "returnImmediately")? {
        Some(true) => Delivery::Immediately,
        _ => Delivery::WhenSettled,
    };
    let push = fields::optional_object(configuration, "taskPushNotificationConfig")?;
    Ok(SendCall {
        message,
        delivery,
        history_length: fields::count(configuration, "historyLength")?,
        push: push.map(read_push).transpose()?,
        key: None,
    })
}

fn read_message(message: &Value) -> Result<RemoteMessage, RemoteError> {
    let role = match fields::text(message, "role")?.as_str() {
        "ROLE_USER" => RemoteRole::User,
        "ROLE_AGENT" => RemoteRole::Agent,
        _ => return Err(RemoteError::invalid("message.role", "must be ROLE_USER or ROLE_AGENT")),
    };
    Ok(RemoteMessage {
        id: fields::text(message, "messageId")?,
        role,
        parts: fields::elements(message, "parts")?.iter().map(read_part).collect::<Result<_, _>>()?,
        context_id: fields::optional_text(message, "contextId")?,
        task_id: fields::optional_text(message, "taskId")?,
    })
}

fn read_part(part: &Value) -> Result<RemotePart, RemoteError> {
    let is_set = |name: &str| part.get(name).is_some_and(|content| name == "data" || !content.is_null());
    let set: Vec<&str> = ["text", "raw", "url", "data"].into_iter().filter(|name| is_set(name)).collect();
    let (name, media_type) = (fields::optional_text(part, "filename")?, fields::optional_text(part, "mediaType")?);
    let content = |field: &str| {
        let text = part[field].as_str().map(str::to_owned);
        text.ok_or_else(|| RemoteError::invalid("message.parts", "the content must be a string"))
    };
    match set[..] {
        ["text"] => Ok(RemotePart::Text(content("text")?)),
        ["raw"] => Ok(RemotePart::Bytes { base64: content("raw")?, name, media_type }),
        ["url"] => Ok(RemotePart::Url { url: content("url")?, name, media_type }),
        ["data"] => Ok(RemotePart::Data(part["data"].clone())),
        _ => Err(RemoteError::invalid("message.parts", "a part has one of text, raw, url and data")),
    }
}

pub(super) fn read_push(config: &Value) -> Result<PushConfig, RemoteError> {
    let none = Value::Null;
    let authentication = fields::optional_object(config, "authentication")?.unwrap_or(&none);
    Ok(PushConfig {
        id: fields::optional_text(config, "id")?.unwrap_or_default(),
        url: fields::text(config, "url")?,
        token: fields::optional_text(config, "token")?,
        scheme: fields::optional_text(authentication, "scheme")?,
        credentials: fields::optional_text(authentication, "credentials")?,
    })
}

pub(super) fn read_list(params: &Value) -> Result<ListQuery, RemoteError> {
    let state = fields::optional_text(params, "status")?.map(|name| {
        let known = RemoteState::ALL.into_iter().find(|state| state.in_v1() == name);
        known.ok_or_else(|| RemoteError::invalid("status", "is not a task state"))
    });
    let since = fields::optional_text(params, "statusTimestampAfter")?.map(|text| {
        time::read(&text).ok_or_else(|| RemoteError::invalid("statusTimestampAfter", "is not a time in UTC"))
    });
    let artifacts = match params.get("includeArtifacts") {
        Some(Value::Bool(true)) => Artifacts::Included,
        Some(Value::String(text)) if text == "true" => Artifacts::Included,
        _ => Artifacts::LeftOut,
    };
    Ok(ListQuery {
        context_id: fields::optional_text(params, "contextId")?,
        state: state.transpose()?,
        page_size: fields::count(params, "pageSize")?,
        page_token: fields::optional_text(params, "pageToken")?,
        history_length: fields::count(params, "historyLength")?,
        changed_since: since.transpose()?,
        artifacts,
    })
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
        TaskEvent::Status { state, message, time } => json!({"statusUpdate": {
            "taskId": task_id,
            "contextId": context_id,
            "status": status(*state, message.as_ref(), *time),
        }}),
        TaskEvent::Artifact { artifact: content, append, last_chunk } => {
            let mut update = json!({"taskId": task_id, "contextId": context_id, "artifact": artifact(content)});
            // ProtoJSON leaves out what has its default.
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
    let parts: Vec<Value> = message.parts.iter().map(part).collect();
    let mut value = json!({"messageId": message.id, "role": role, "parts": parts});
    set(&mut value, "contextId", message.context_id.clone());
    set(&mut value, "taskId", message.task_id.clone());
    value
}

pub(super) fn push(task_id: &str, config: &PushConfig) -> Value {
    let mut value = json!({"id": config.id, "taskId": task_id, "url": config.url});
    set(&mut value, "authentication", config.scheme.as_ref().map(|scheme| json!({ "scheme": scheme })));
    value
}

fn status(state: RemoteState, said: Option<&RemoteMessage>, time: u64) -> Value {
    let mut value = json!({"state": state.in_v1(), "timestamp": time::spell(time)});
    set(&mut value, "message", said.map(message));
    value
}

fn artifact(artifact: &RemoteArtifact) -> Value {
    let parts: Vec<Value> = artifact.parts.iter().map(part).collect();
    json!({"artifactId": artifact.id, "name": artifact.name, "parts": parts})
}

fn part(part: &RemotePart) -> Value {
    let (mut value, name, media_type) = match part {
        RemotePart::Text(text) => return json!({ "text": text }),
        RemotePart::Data(data) => return json!({ "data": data }),
        RemotePart::Bytes { base64, name, media_type } => (json!({ "raw": base64 }), name, media_type),
        RemotePart::Url { url, name, media_type } => (json!({ "url": url }), name, media_type),
    };
    set(&mut value, "filename", name.clone());
    set(&mut value, "mediaType", media_type.clone());
    value
}
