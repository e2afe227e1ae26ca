//! The params of a send. `M` is the message as strict or as lenient reading has it.

use sabir_model as model;
use sabir_model::{AgentId, Call, Delivery, IncomingMessage};
use serde::Deserialize;

use super::push::PushConfig;
use crate::wire_types::{Int32, RawJson, Text, Violations, WireList, object};
use crate::{Operation, Strictness};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SendParams<'a, M> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    pub(super) message: Option<M>,
    pub(super) configuration: Option<Configuration<'a>>,
    pub(super) metadata: Option<RawJson<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Configuration<'a> {
    #[serde(borrow, default, alias = "accepted_output_modes")]
    pub(super) accepted_output_modes: WireList<'a, Text<'a>, String>,
    #[serde(alias = "task_push_notification_config")]
    pub(super) task_push_notification_config: Option<PushConfig<'a>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int32>,
    #[serde(alias = "return_immediately")]
    pub(super) return_immediately: Option<bool>,
    /// The opposite in 0.3; strict reading ignores it.
    pub(super) blocking: Option<bool>,
}

object! { read SendParams<'a, M>; read Configuration<'a> }

impl<M> SendParams<'_, M> {
    pub(super) fn into_call(
        self,
        operation: Operation,
        strictness: Strictness,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Violations>,
    ) -> Result<Call, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", self.tenant, AgentId::parse);
        let message = violations.required("message", self.message);
        let message = message.and_then(|message| violations.check("message", read_message(message)));
        let configuration = self.configuration.unwrap_or_default();
        let push = configuration
            .task_push_notification_config
            .and_then(|config| violations.check("configuration.taskPushNotificationConfig", config.try_into()));
        let history = violations.count("configuration.historyLength", configuration.history_length);
        let metadata = violations.object("metadata", self.metadata);
        let blocking = configuration.blocking.filter(|_| strictness != Strictness::Strict);
        let returns = configuration.return_immediately.or(blocking.map(|blocking| !blocking));
        let delivery = match (operation, returns) {
            (Operation::Stream, _) => Delivery::Stream,
            (_, Some(true)) => Delivery::Immediately,
            (_, Some(false) | None) => Delivery::WhenSettled,
        };
        let accepted_output = configuration.accepted_output_modes.into_wire();
        violations.finish(message.map(|message| {
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
