//! The first member of a task that holds JSON which protobuf cannot, by its name in JSON.

use sabir_model as model;
use sabir_model::{Content, Json};

use super::part::written_metadata;
use crate::protobuf;

/// `artifacts[0].parts[2].data.data.id: a double cannot hold ...`; a place that is found inside gets its member before it.
pub(super) fn unrepresentable(task: &model::Task) -> Option<String> {
    let in_status = || before("status.message", in_message(task.status.message.as_deref()?));
    let in_artifacts = || in_list("artifacts", task.artifacts.iter().map(|artifact| in_artifact(artifact)));
    let in_history = || in_list("history", task.history.iter().map(|message| in_message(message)));
    in_status().or_else(in_artifacts).or_else(in_history).or_else(|| in_json("metadata", task.metadata.as_ref()))
}

fn in_message(message: &model::Message) -> Option<String> {
    let in_parts = in_list(".content", message.parts.iter().map(in_part));
    in_parts.or_else(|| in_json(".metadata", message.metadata.as_ref()))
}

fn in_artifact(artifact: &model::Artifact) -> Option<String> {
    let in_parts = in_list(".parts", artifact.parts.iter().map(in_part));
    in_parts.or_else(|| in_json(".metadata", artifact.metadata.as_ref()))
}

fn in_part(part: &model::Part) -> Option<String> {
    let in_data = match &part.content {
        Content::Data(data) if data.is_object() => in_json(".data.data", Some(data)),
        Content::Data(data) => in_json(".data.data.value", Some(data)),
        Content::Text(_) | Content::Bytes(_) | Content::Url(_) => None,
    };
    in_data.or_else(|| in_json(".metadata", written_metadata(part).as_deref()))
}

fn in_list(member: &str, places: impl Iterator<Item = Option<String>>) -> Option<String> {
    let mut places = places.enumerate();
    places.find_map(|(index, place)| place.map(|place| format!("{member}[{index}]{place}")))
}

fn in_json(member: &str, json: Option<&Json>) -> Option<String> {
    before(member, protobuf::unrepresentable(json?))
}

fn before(member: &str, place: Option<String>) -> Option<String> {
    place.map(|place| format!("{member}{place}"))
}
