//! Messages in 0.3's ProtoJSON: the parts are called `content`. There is no member for references to other tasks.

use sabir_model as model;
use sabir_model::{ContextId, MessageId, TaskId};
use serde::{Deserialize, Serialize};

use super::part::Part;
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
        Message {
            message_id: Some((&message.id).into()),
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
        let mut violations = Violations::default();
        let id = violations.required_id("messageId", message.message_id, MessageId::parse);
        let context = violations.id("contextId", message.context_id, ContextId::parse);
        let task = violations.id("taskId", message.task_id, TaskId::parse);
        let role = violations.check_required("role", read_role(message.role));
        let parts = message.content.read_required("content", &mut violations);
        let metadata = violations.object("metadata", message.metadata);
        let extensions = message.extensions.into_wire().into_iter().map(Text::into_string).collect();
        let message = id.zip(role).map(|(id, role)| model::Message {
            id,
            role,
            parts,
            task,
            context,
            references: Vec::new(),
            extensions,
            metadata,
            request_metadata: None,
            answers: None,
        });
        violations.finish(message)
    }
}
