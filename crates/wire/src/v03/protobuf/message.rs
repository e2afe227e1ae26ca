//! Messages. Their parts are called `content`, and there is no field for references to other tasks.

use sabir_model as model;
use sabir_model::{ContextId, MessageId, TaskId};
use sabir_proto::v03;

use super::fields::{present, read_metadata, texts, write_metadata};
use super::names::{read_role, role_number};
use super::part::{read_part, write_part};
use crate::received_message::ReceivedMessage;
use crate::wire_types::{PartList, Violations, WireList, raw_json};

/// `id` is that of the message, if it has one.
pub(super) fn write_message<Id>(id: Option<&MessageId>, message: &model::Message<Id>) -> v03::Message {
    v03::Message {
        message_id: id.map(MessageId::to_string).unwrap_or_default(),
        context_id: message.context.as_ref().map(ContextId::to_string).unwrap_or_default(),
        task_id: message.task.as_ref().map(TaskId::to_string).unwrap_or_default(),
        role: role_number(message.role),
        content: message.parts.iter().map(write_part).collect(),
        metadata: write_metadata(&message.metadata),
        extensions: message.extensions.clone(),
    }
}

pub(super) fn read_message(message: v03::Message) -> Result<model::Message, Violations> {
    let mut violations = Violations::default();
    let metadata = read_metadata(message.metadata, &mut violations);
    let received = ReceivedMessage {
        id: present(message.message_id),
        context: present(message.context_id),
        task: present(message.task_id),
        role: read_role(message.role),
        parts: PartList::decoded(message.content, read_part),
        references: WireList::default(),
        metadata: raw_json(&metadata),
        extensions: texts(message.extensions),
    };
    received.read(violations, "content")
}
