//! A message in any spelling.

use sabir_model::{ContextId, IncomingMessage, MessageId, Role, TaskId};
use serde::Deserialize;

use super::part::{DataEncoding, Part};
use super::task_id::agreed;
use crate::Strictness;
use crate::v1::read_role;
use crate::wire_types::{EnumValue, PartList, RawJson, Text, Violations, WireList, object};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    message_id: Option<Text<'a>>,
    #[serde(rename = "message_id")]
    snake_message_id: Option<Text<'a>>,
    context_id: Option<Text<'a>>,
    #[serde(rename = "context_id")]
    snake_context_id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    role: Option<EnumValue<'a>>,
    #[serde(default, alias = "content")]
    parts: PartList<'a, Part<'a>>,
    metadata: Option<RawJson<'a>>,
    #[serde(default)]
    extensions: WireList<'a, Text<'a>, String>,
    #[serde(default, alias = "reference_task_ids")]
    reference_task_ids: WireList<'a, Text<'a>, TaskId>,
}

object! { read Message<'a> }

impl Message<'_> {
    /// Only lenient reading takes a message without id or role.
    pub(crate) fn read(self, form: DataEncoding, strictness: Strictness) -> Result<IncomingMessage, Violations> {
        let mut violations = Violations::default();
        let mut one_of = |name, snake, id, other| agreed([(name, id), (snake, other)], &mut violations).flatten();
        let message_id = one_of("messageId", "message_id", self.message_id, self.snake_message_id);
        let context = one_of("contextId", "context_id", self.context_id, self.snake_context_id);
        let task = one_of("taskId", "task_id", self.task_id, self.snake_task_id);
        let message_id = message_id.map(|(_, id)| id);
        if message_id.is_none() && strictness != Strictness::Lenient {
            violations.add("messageId", "is required");
        }
        let id = violations.id("messageId", message_id, MessageId::parse);
        let context = context.and_then(|(name, id)| violations.id(name, Some(id), ContextId::parse));
        let task = task.and_then(|(name, id)| violations.id(name, Some(id), TaskId::parse));
        let role = match strictness {
            Strictness::Lenient => violations.check("role", read_any_role(self.role)).flatten(),
            Strictness::Complete | Strictness::Strict => violations.check_required("role", read_any_role(self.role)),
        };
        let role = role.unwrap_or(Role::User);
        let mut parts = self.parts.read_required("parts", &mut violations);
        parts.iter_mut().for_each(|part| form.apply(part));
        let references = violations.task_ids("referenceTaskIds", self.reference_task_ids);
        let metadata = violations.object("metadata", self.metadata);
        let extensions = self.extensions.into_wire().into_iter().map(Text::into_string).collect();
        let message = IncomingMessage {
            task,
            context,
            references,
            extensions,
            metadata,
            ..IncomingMessage::new(id, role, parts)
        };
        violations.finish(Some(message))
    }
}

fn read_any_role(name: Option<EnumValue<'_>>) -> Result<Option<Role>, Violations> {
    match name {
        Some(EnumValue::Text(name)) if name.as_str() == "user" => Ok(Some(Role::User)),
        Some(EnumValue::Text(name)) if name.as_str() == "agent" => Ok(Some(Role::Agent)),
        name => read_role(name),
    }
}
