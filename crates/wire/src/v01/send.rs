//! The params of a send in 0.1: task and session are named beside the message, by the client.

use sabir_model as model;
use sabir_model::{ContextId, Delivery, Direct, IncomingMessage, OnUnknown, TaskId};
use serde::Deserialize;

use crate::lenient::{any_context_id, any_task_id};
use crate::spelling::{Carried, Int, Problems, Several, Text, object};
use crate::v03::PushConfig;
use crate::{Operation, Reading};

/// With every name that the ids of task and session have been seen under; a strict reading looks at its own only.
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
    history_length: Option<Int>,
    /// Not in the schema, but what the first clients sent.
    #[serde(default, alias = "accepted_output_modes")]
    accepted_output_modes: Several<'a, Text<'a>, String>,
    metadata: Option<Carried<'a>>,
}

object! { read SendParams<'a, M> }

impl<M> SendParams<'_, M> {
    pub(super) fn into_send(
        self,
        operation: Operation,
        reading: Reading,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Problems>,
    ) -> Result<Box<model::Send>, Problems> {
        let mut problems = Problems::default();
        let (task, context) = match reading {
            Reading::Strict => (
                problems.required_id("id", self.id, TaskId::parse),
                problems.id("sessionId", self.session_id, ContextId::parse),
            ),
            Reading::Complete | Reading::Lenient => {
                let tasks =
                    [("id", self.id), ("taskId", self.task_id), ("task_id", self.snake_task_id), ("name", self.name)];
                let contexts = [
                    ("sessionId", self.session_id),
                    ("session_id", self.snake_session_id),
                    ("contextId", self.context_id),
                    ("context_id", self.snake_context_id),
                ];
                (any_task_id(tasks, &mut problems), any_context_id(contexts, &mut problems))
            }
        };
        let message = problems.required("message", self.message);
        let message = message.and_then(|message| problems.keep("message", read_message(message)));
        let message = message.map(|message| place(message, task, context, &mut problems));
        let push = self.push_notification.and_then(|config| problems.keep("pushNotification", config.try_into()));
        let history = problems.count("historyLength", self.history_length);
        let metadata = problems.object("metadata", self.metadata);
        let delivery = if operation == Operation::Stream { Delivery::Stream } else { Delivery::WhenSettled };
        let accepted_output = self.accepted_output_modes.into_read();
        problems.or(message.map(|message| {
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

/// A message as later versions have it may name its place itself; then it must be the same.
fn place(
    mut message: IncomingMessage,
    task: Option<TaskId>,
    context: Option<ContextId>,
    problems: &mut Problems,
) -> IncomingMessage {
    if matches!((&message.task, &task), (Some(inner), Some(outer)) if inner != outer) {
        problems.add("id", "differs from message.taskId");
    }
    if matches!((&message.context, &context), (Some(inner), Some(outer)) if inner != outer) {
        problems.add("sessionId", "differs from message.contextId");
    }
    message.task = task;
    message.context = context.or(message.context.take());
    message
}
