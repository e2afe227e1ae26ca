//! Messages as 0.3 spells them.

use sabir_model as model;
use sabir_model::TaskId;
use serde::{Deserialize, Serialize};

use super::names::{read_role, role_name};
use super::part::Part;
use crate::received_message::ReceivedMessage;
use crate::wire_types::{PartList, RawJson, Text, Violations, WireList, object};

pub(super) const KIND: &str = "message";

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    kind: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Text<'a>>,
    #[serde(default)]
    parts: PartList<'a, Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    reference_task_ids: WireList<'a, Text<'a>, TaskId>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    extensions: WireList<'a, Text<'a>, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { both Message<'a> }

impl<'a> From<&'a model::Message> for Message<'a> {
    fn from(message: &'a model::Message) -> Self {
        Message::with_id(Some(&message.id), message)
    }
}

impl<'a> Message<'a> {
    /// `id` is that of the message, if it has one.
    pub(super) fn with_id<Id>(id: Option<&'a model::MessageId>, message: &'a model::Message<Id>) -> Self {
        Message {
            kind: Some(KIND.into()),
            message_id: id.map(Text::from),
            role: Some(role_name(message.role).into()),
            parts: (&message.parts).into(),
            context_id: message.context.as_ref().map(Text::from),
            task_id: message.task.as_ref().map(Text::from),
            reference_task_ids: (&message.references).into(),
            extensions: (&message.extensions).into(),
            metadata: message.metadata.as_ref().map(RawJson::from),
        }
    }
}

impl TryFrom<Message<'_>> for model::Message {
    type Error = Violations;

    fn try_from(message: Message<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        violations.kind(KIND, message.kind);
        let received = ReceivedMessage {
            id: message.message_id,
            context: message.context_id,
            task: message.task_id,
            role: read_role(message.role),
            parts: message.parts,
            references: message.reference_task_ids,
            metadata: message.metadata,
            extensions: message.extensions,
        };
        received.read(violations, "parts")
    }
}
