//! What protobuf cannot hold of a task, by name: `artifacts[0].parts[2].data.id: ...`.
//!
//! Only carried JSON can be that; a task without any is done after a glance at its parts.

use sabir_model::{Artifact, Content, Json, Message, Part, Task};

use crate::protobuf::unrepresentable;

/// The first such member of the task, in the order in which it is written.
pub(super) fn first_in_task(task: &Task) -> Option<String> {
    let in_status =
        || task.status.message.as_deref().and_then(first_in_message).map(|place| format!("status.message.{place}"));
    let in_artifacts = || first_of("artifacts", &task.artifacts, |artifact| first_in_artifact(artifact));
    let in_history = || first_of("history", &task.history, |message| first_in_message(message));
    let in_metadata = || in_member("metadata", task.metadata.as_ref());
    in_status().or_else(in_artifacts).or_else(in_history).or_else(in_metadata)
}

fn first_in_message(message: &Message) -> Option<String> {
    first_of("parts", &message.parts, first_in_part).or_else(|| in_member("metadata", message.metadata.as_ref()))
}

fn first_in_artifact(artifact: &Artifact) -> Option<String> {
    first_of("parts", &artifact.parts, first_in_part).or_else(|| in_member("metadata", artifact.metadata.as_ref()))
}

fn first_in_part(part: &Part) -> Option<String> {
    let data = match &part.content {
        Content::Data(data) => Some(data),
        Content::Text(_) | Content::Bytes(_) | Content::Url(_) => None,
    };
    in_member("data", data).or_else(|| in_member("metadata", part.metadata.as_ref()))
}

fn first_of<T>(member: &str, list: &[T], first: impl Fn(&T) -> Option<String>) -> Option<String> {
    list.iter().enumerate().find_map(|(index, each)| first(each).map(|place| format!("{member}[{index}].{place}")))
}

fn in_member(member: &str, json: Option<&Json>) -> Option<String> {
    json.and_then(unrepresentable).map(|place| format!("{member}{place}"))
}
