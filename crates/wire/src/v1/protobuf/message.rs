//! Messages.

use sabir_model as model;
use sabir_model::MessageId;
use sabir_proto::v1 as proto;

use super::names::{read_role, write_role};
use super::part::{read_part, write_part};
use crate::protobuf::{read_struct, write_struct};
use crate::received_message::ReceivedMessage;
use crate::wire_types::{PartList, RawJson, Text, Violations, WireList};

pub(super) fn write_message(message: &model::Message) -> proto::Message {
    write_message_with_id(Some(&message.id), message)
}

/// `id` is that of the message, if it has one.
pub(super) fn write_message_with_id<Id>(id: Option<&MessageId>, message: &model::Message<Id>) -> proto::Message {
    proto::Message {
        message_id: id.map(ToString::to_string).unwrap_or_default(),
        context_id: message.context.as_ref().map(ToString::to_string).unwrap_or_default(),
        task_id: message.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        role: write_role(message.role),
        parts: message.parts.iter().map(write_part).collect(),
        metadata: message.metadata.as_ref().map(write_struct),
        extensions: message.extensions.clone(),
        reference_task_ids: message.references.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn read_message(message: proto::Message) -> Result<model::Message, Violations> {
    let mut violations = Violations::default();
    let metadata = message.metadata.and_then(|object| violations.check("metadata", read_struct(object)));
    let received = ReceivedMessage {
        id: Some(message.message_id.into()),
        context: Some(message.context_id.into()),
        task: Some(message.task_id.into()),
        role: read_role(message.role),
        parts: PartList::decoded(message.parts, read_part),
        references: texts(message.reference_task_ids),
        metadata: metadata.map(RawJson::from),
        extensions: texts(message.extensions),
    };
    received.read(violations, "parts")
}

/// A list of texts as the JSON dialect reads it.
pub(super) fn texts<M>(list: Vec<String>) -> WireList<'static, Text<'static>, M> {
    WireList::Wire(list.into_iter().map(Text::from).collect())
}
