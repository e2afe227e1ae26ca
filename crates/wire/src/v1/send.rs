//! The params of a send, with either reading of its message.

use sabir_model as model;
use sabir_model::{AgentId, Call, Delivery, IncomingMessage};
use serde::Deserialize;

use super::push::PushConfig;
use crate::spelling::{Carried, Int, Problems, Several, Text, object};
use crate::{Operation, Reading};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SendParams<'a, M> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    message: Option<M>,
    configuration: Option<Configuration<'a>>,
    metadata: Option<Carried<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Configuration<'a> {
    #[serde(borrow, default, alias = "accepted_output_modes")]
    accepted_output_modes: Several<'a, Text<'a>, String>,
    #[serde(alias = "task_push_notification_config")]
    task_push_notification_config: Option<PushConfig<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    #[serde(alias = "return_immediately")]
    return_immediately: Option<bool>,
    /// How 0.3 says the opposite; a strict reading does not look at it.
    blocking: Option<bool>,
}

object! { read SendParams<'a, M>; read Configuration<'a> }

impl<M> SendParams<'_, M> {
    pub(super) fn into_call(
        self,
        operation: Operation,
        reading: Reading,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Problems>,
    ) -> Result<Call, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", self.tenant, AgentId::parse);
        let message = problems.required("message", self.message);
        let message = message.and_then(|message| problems.keep("message", read_message(message)));
        let configuration = self.configuration.unwrap_or_default();
        let push = configuration
            .task_push_notification_config
            .and_then(|config| problems.keep("configuration.taskPushNotificationConfig", config.try_into()));
        let history = problems.count("configuration.historyLength", configuration.history_length);
        let metadata = problems.object("metadata", self.metadata);
        let blocking = configuration.blocking.filter(|_| reading != Reading::Strict);
        let returns = configuration.return_immediately.or(blocking.map(|blocking| !blocking));
        let delivery = match (operation, returns) {
            (Operation::Stream, _) => Delivery::Stream,
            (_, Some(true)) => Delivery::Immediately,
            (_, Some(false) | None) => Delivery::WhenSettled,
        };
        let accepted_output = configuration.accepted_output_modes.into_read();
        problems.or(message.map(|message| {
            Call::Send(Box::new(model::Send {
                agent,
                metadata,
                delivery,
                history,
                accepted_output: accepted_output.into_iter().map(Text::into_string).collect(),
                push,
                ..model::Send::new(message, super::dialect::BIRTH)
            }))
        }))
    }
}
