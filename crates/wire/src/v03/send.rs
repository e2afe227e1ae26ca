//! The params of a send in 0.3, with either reading of its message.

use sabir_model as model;
use sabir_model::{ContextAlone, Delivery, IncomingMessage};
use serde::Deserialize;

use super::push::PushConfig;
use crate::spelling::{Carried, Int, Problems, Several, Text, object};
use crate::{Operation, Reading};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SendParams<'a, M> {
    message: Option<M>,
    /// What ProtoJSON calls it by its protobuf name.
    request: Option<M>,
    #[serde(borrow)]
    configuration: Option<Configuration<'a>>,
    metadata: Option<Carried<'a>>,
}

/// ProtoJSON calls the webhook `pushNotification`.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct Configuration<'a> {
    #[serde(borrow, default, alias = "accepted_output_modes")]
    accepted_output_modes: Several<'a, Text<'a>, String>,
    #[serde(alias = "pushNotification", alias = "push_notification")]
    push_notification_config: Option<PushConfig<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    blocking: Option<bool>,
    /// How 1.0 says the opposite; a strict reading does not look at it.
    #[serde(alias = "return_immediately")]
    return_immediately: Option<bool>,
}

object! { read SendParams<'a, M>; read Configuration<'a> }

/// What a configuration means that says nothing of `blocking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// The server's choice, and ours is to wait.
    IsOpen,
    /// ProtoJSON leaves out what is false, and so do all clients that write it.
    MeansFalse,
}

impl<M> SendParams<'_, M> {
    pub(super) fn into_send(
        self,
        operation: Operation,
        unsaid: Unsaid,
        reading: Reading,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Problems>,
    ) -> Result<Box<model::Send>, Problems> {
        let mut problems = Problems::default();
        let request = self.request.filter(|_| unsaid == Unsaid::MeansFalse || reading != Reading::Strict);
        if self.message.is_some() && request.is_some() {
            problems.add("request", "is another name of message; give one of them");
        }
        let message = problems.required("message", self.message.or(request));
        let message = message.and_then(|message| problems.keep("message", read_message(message)));
        let is_configured = self.configuration.is_some();
        let configuration = self.configuration.unwrap_or_default();
        let push = configuration
            .push_notification_config
            .and_then(|config| problems.keep("configuration.pushNotificationConfig", config.try_into()));
        let history = problems.count("configuration.historyLength", configuration.history_length);
        let metadata = problems.object("metadata", self.metadata);
        let returns = configuration.return_immediately.filter(|_| reading != Reading::Strict);
        let delivery = match (operation, configuration.blocking.or(returns.map(|returns| !returns))) {
            (Operation::Stream, _) => Delivery::Stream,
            (_, Some(false)) => Delivery::Immediately,
            (_, None) if is_configured && unsaid == Unsaid::MeansFalse => Delivery::Immediately,
            (_, Some(true) | None) => Delivery::WhenSettled,
        };
        let accepted_output = configuration.accepted_output_modes.into_read();
        problems.or(message.map(|message| {
            Box::new(model::Send {
                metadata,
                delivery,
                history,
                accepted_output: accepted_output.into_iter().map(Text::into_string).collect(),
                push,
                context_alone: ContextAlone::AnswersWaiting,
                ..model::Send::new(message, super::dialect::BIRTH)
            })
        }))
    }
}
