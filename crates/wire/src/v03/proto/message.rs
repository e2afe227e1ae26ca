//! Messages in 0.3's ProtoJSON: the parts are called `content`. There is no member for references to other tasks.

use sabir_model as model;

use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::received_message::ReceivedMessage;
use crate::v1::{read_role, role_name};
use crate::wire_types::{EnumValue, PartList, RawJson, Text, Violations, WireList, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, alias = "message_id", skip_serializing_if = "Option::is_none")]
    message_id: Option<Text<'a>>,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    context_id: Option<Text<'a>>,
    #[serde(alias = "task_id", skip_serializing_if = "Option::is_none")]
    task_id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<EnumValue<'a>>,
    #[serde(default)]
    content: PartList<'a, Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
    #[serde(default, skip_serializing_if = "WireList::is_empty")]
    extensions: WireList<'a, Text<'a>, String>,
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
            message_id: id.map(Text::from),
            context_id: message.context.as_ref().map(Text::from),
            task_id: message.task.as_ref().map(Text::from),
            role: Some(role_name(message.role).into()),
            content: (&message.parts).into(),
            metadata: message.metadata.as_ref().map(RawJson::from),
            extensions: (&message.extensions).into(),
        }
    }
}

impl TryFrom<Message<'_>> for model::Message {
    type Error = Violations;

    fn try_from(message: Message<'_>) -> Result<Self, Violations> {
        let received = ReceivedMessage {
            id: message.message_id,
            context: message.context_id,
            task: message.task_id,
            role: read_role(message.role),
            parts: message.content,
            references: WireList::default(),
            metadata: message.metadata,
            extensions: message.extensions,
        };
        received.read(Violations::default(), "content")
    }
}
