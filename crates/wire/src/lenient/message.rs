//! A message in any spelling.

use sabir_model::{ContextId, IncomingMessage, MessageId, Role, TaskId};
use serde::Deserialize;

use super::part::{DataForm, Part};
use super::task_id::agreed;
use crate::Reading;
use crate::spelling::{Carried, Name, Parts, Problems, Several, Text, object};
use crate::v1::read_role;

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
    role: Option<Name<'a>>,
    #[serde(default, alias = "content")]
    parts: Parts<'a, Part<'a>>,
    metadata: Option<Carried<'a>>,
    #[serde(default)]
    extensions: Several<'a, Text<'a>, String>,
    #[serde(default, alias = "reference_task_ids")]
    reference_task_ids: Several<'a, Text<'a>, TaskId>,
}

object! { read Message<'a> }

impl Message<'_> {
    /// Only a lenient reading fills in what is missing.
    pub(crate) fn read(self, form: DataForm, reading: Reading) -> Result<IncomingMessage, Problems> {
        let mut problems = Problems::default();
        let mut one_of = |name, snake, id, other| agreed([(name, id), (snake, other)], &mut problems).flatten();
        let message_id = one_of("messageId", "message_id", self.message_id, self.snake_message_id);
        let context = one_of("contextId", "context_id", self.context_id, self.snake_context_id);
        let task = one_of("taskId", "task_id", self.task_id, self.snake_task_id);
        let message_id = message_id.map(|(_, id)| id);
        if message_id.is_none() && reading != Reading::Lenient {
            problems.add("messageId", "is required");
        }
        let id = problems.id("messageId", message_id, MessageId::parse);
        let context = context.and_then(|(name, id)| problems.id(name, Some(id), ContextId::parse));
        let task = task.and_then(|(name, id)| problems.id(name, Some(id), TaskId::parse));
        let role = match reading {
            Reading::Lenient => problems.keep("role", read_any_role(self.role)).flatten(),
            Reading::Complete | Reading::Strict => problems.keep_required("role", read_any_role(self.role)),
        };
        let role = role.unwrap_or(Role::User);
        let mut parts = self.parts.read_some("parts", &mut problems);
        parts.iter_mut().for_each(|part| form.apply(part));
        let references = problems.task_ids("referenceTaskIds", self.reference_task_ids);
        let metadata = problems.object("metadata", self.metadata);
        let extensions = self.extensions.into_read().into_iter().map(Text::into_string).collect();
        let message = IncomingMessage {
            task,
            context,
            references,
            extensions,
            metadata,
            ..IncomingMessage::new(id, role, parts)
        };
        problems.or(Some(message))
    }
}

fn read_any_role(name: Option<Name<'_>>) -> Result<Option<Role>, Problems> {
    match name {
        Some(Name::Text(name)) if name.as_str() == "user" => Ok(Some(Role::User)),
        Some(Name::Text(name)) if name.as_str() == "agent" => Ok(Some(Role::Agent)),
        name => read_role(name),
    }
}
