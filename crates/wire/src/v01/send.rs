//! The params of a send in 0.1: the client names task and session, outside of the message.

use sabir_model as model;
use sabir_model::{ContextId, Delivery, Direct, IncomingMessage, OnUnknown, TaskId};
use serde::Deserialize;

use crate::lenient::{any_context_id, any_task_id};
use crate::v03::PushConfig;
use crate::wire_types::{Int32, RawJson, Text, Violations, WireList, object};
use crate::{Operation, Strictness};

/// With every member name that clients use for the ids of task and session; strict reading takes those of 0.1 only.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SendParams<'a, M> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    task_id: Option<Text<'a>>,
    #[serde(rename = "task_id")]
    snake_task_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    session_id: Option<Text<'a>>,
    #[serde(rename = "session_id")]
    snake_session_id: Option<Text<'a>>,
    context_id: Option<Text<'a>>,
    #[serde(rename = "context_id")]
    snake_context_id: Option<Text<'a>>,
    message: Option<M>,
    #[serde(alias = "push_notification")]
    push_notification: Option<PushConfig<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int32>,
    /// Not in the schema, but what the first clients sent.
    #[serde(default, alias = "accepted_output_modes")]
    accepted_output_modes: WireList<'a, Text<'a>, String>,
    metadata: Option<RawJson<'a>>,
}

object! { read SendParams<'a, M> }

impl<M> SendParams<'_, M> {
    pub(super) fn into_send(
        self,
        operation: Operation,
        strictness: Strictness,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Violations>,
    ) -> Result<Box<model::Send>, Violations> {
        let mut violations = Violations::default();
        let (task, context) = match strictness {
            Strictness::Strict => (
                violations.required_id("id", self.id, TaskId::parse),
                violations.id("sessionId", self.session_id, ContextId::parse),
            ),
            Strictness::Complete | Strictness::Lenient => {
                let tasks =
                    [("id", self.id), ("taskId", self.task_id), ("task_id", self.snake_task_id), ("name", self.name)];
                let contexts = [
                    ("sessionId", self.session_id),
                    ("session_id", self.snake_session_id),
                    ("contextId", self.context_id),
                    ("context_id", self.snake_context_id),
                ];
                (any_task_id(tasks, &mut violations), any_context_id(contexts, &mut violations))
            }
        };
        let message = violations.required("message", self.message);
        let message = message.and_then(|message| violations.check("message", read_message(message)));
        let message = message.map(|message| set_task_and_context(message, task, context, &mut violations));
        let push = self.push_notification.and_then(|config| violations.check("pushNotification", config.try_into()));
        let history = violations.count("historyLength", self.history_length);
        let metadata = violations.object("metadata", self.metadata);
        let delivery = if operation == Operation::Stream { Delivery::Stream } else { Delivery::WhenSettled };
        let accepted_output = self.accepted_output_modes.into_wire();
        violations.finish(message.map(|message| {
            Box::new(model::Send {
                metadata,
                delivery,
                history,
                accepted_output: accepted_output.into_iter().map(Text::into_string).collect(),
                push,
                on_unknown: OnUnknown::Create,
                direct: Direct::StoredTask,
                ..model::Send::new(message, super::dialect::BIRTH)
            })
        }))
    }
}

/// Puts the message into its task and context. A message in the format of later versions may name them too; then they
/// must agree.
fn set_task_and_context(
    mut message: IncomingMessage,
    task: Option<TaskId>,
    context: Option<ContextId>,
    violations: &mut Violations,
) -> IncomingMessage {
    if matches!((&message.task, &task), (Some(inner), Some(outer)) if inner != outer) {
        violations.add("id", "differs from message.taskId");
    }
    if matches!((&message.context, &context), (Some(inner), Some(outer)) if inner != outer) {
        violations.add("sessionId", "differs from message.contextId");
    }
    message.task = task;
    message.context = context.or(message.context.take());
    message
}
