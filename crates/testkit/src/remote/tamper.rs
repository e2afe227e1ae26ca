//! Changing JSON that was right.

use serde_json::{Map, Value, json};

use super::faults::Malformation;
use super::protocol::RemoteProtocol;

/// Visits every object, the outer ones first.
pub(super) fn each_object(value: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            change(members);
            members.values_mut().for_each(|member| each_object(member, change));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| each_object(element, change)),
        _ => {}
    }
}

/// Removes these members wherever they are.
pub(super) fn remove(value: &mut Value, names: &[&str]) {
    each_object(value, &mut |members| members.retain(|name, _| !names.contains(&name.as_str())));
}

/// Changes this member wherever it is.
pub(super) fn change(value: &mut Value, name: &str, change: &mut dyn FnMut(&mut Value)) {
    each_object(value, &mut |members| {
        if let Some(member) = members.get_mut(name) {
            change(member);
        }
    });
}

pub(super) fn without_zone(value: &mut Value) {
    change(value, "timestamp", &mut |time| {
        if let Some(text) = time.as_str() {
            *time = json!(text.trim_end_matches('Z'));
        }
    });
}

/// Applies a malformation to the content of an answer or a frame. What is about the envelope is done by `spoil_envelope`.
pub(super) fn spoil(content: &mut Value, protocol: RemoteProtocol, how: &Malformation) {
    match how {
        Malformation::NotJson | Malformation::WrongRpcId | Malformation::NoResult | Malformation::ErrorNull => {}
        Malformation::MissingIds => {
            remove(content, &["id", "taskId", "contextId", "sessionId", "messageId", "artifactId", "index"]);
        }
        Malformation::State(name) => change(content, "state", &mut |state| *state = json!(name)),
        Malformation::TimesWithoutZone => without_zone(content),
        Malformation::NullMembers => each_object(content, &mut add_nulls),
        Malformation::EmptyParts => {
            for name in ["parts", "content"] {
                change(content, name, &mut |parts| *parts = json!([]));
            }
        }
        Malformation::UnknownPart => {
            let part = match protocol {
                RemoteProtocol::V01JsonRpc => json!({"type": "hologram", "hologram": {"depth": 3}}),
                RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => {
                    json!({"kind": "hologram", "hologram": {"depth": 3}})
                }
                _ => json!({"hologram": {"depth": 3}}),
            };
            for name in ["parts", "content"] {
                change(content, name, &mut |parts| {
                    if let Some(parts) = parts.as_array_mut() {
                        parts.insert(0, part.clone());
                    }
                });
            }
        }
        Malformation::UnknownEvent => {
            *content = match protocol {
                RemoteProtocol::V01JsonRpc => json!({"id": "task", "progress": 50}),
                RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => {
                    json!({"kind": "progress-update", "taskId": "task", "progress": 50})
                }
                _ => json!({"progressUpdate": {"taskId": "task", "progress": 50}}),
            };
        }
        Malformation::ForeignTask(id) => name_task(content, protocol, id),
        Malformation::StatusIsText => change(content, "status", &mut |status| *status = json!("working")),
    }
}

/// Makes all of it about another task.
pub(super) fn name_task(content: &mut Value, protocol: RemoteProtocol, id: &str) {
    each_object(content, &mut |members| {
        let is_task = members.contains_key("status") && !members.contains_key("taskId");
        for name in ["taskId", "id"] {
            let is_meant = name == "taskId" || is_task || protocol == RemoteProtocol::V01JsonRpc;
            if let Some(member) = members.get_mut(name).filter(|_| is_meant) {
                *member = json!(id);
            }
        }
    });
}

/// Applies a malformation to an answer or a frame with its envelope.
pub(super) fn spoil_envelope(whole: &mut Value, how: &Malformation) {
    let Some(members) = whole.as_object_mut() else {
        return;
    };
    match how {
        Malformation::WrongRpcId => drop(members.insert("id".to_owned(), json!("another-id"))),
        Malformation::NoResult => drop(members.remove("result")),
        Malformation::ErrorNull => drop(members.insert("error".to_owned(), Value::Null)),
        _ => {}
    }
}

/// Optional members of every object that may have some.
fn add_nulls(members: &mut Map<String, Value>) {
    let optional: &[&str] = if members.contains_key("state") {
        &["message", "timestamp"]
    } else if members.contains_key("status") {
        &["metadata", "artifacts", "history"]
    } else if members.contains_key("parts") || members.contains_key("content") {
        &["metadata", "extensions", "name", "description", "referenceTaskIds"]
    } else if members.contains_key("text") || members.contains_key("file") || members.contains_key("data") {
        &["metadata"]
    } else if members.contains_key("artifact") {
        &["metadata", "append", "lastChunk"]
    } else {
        &[]
    };
    for name in optional {
        members.entry(*name).or_insert(Value::Null);
    }
}
