//! The params of a send in 0.3. `M` is the message as strict or as lenient reading has it.

use sabir_model as model;
use sabir_model::{ContextAlone, Delivery, Error, IncomingMessage};
use serde::Deserialize;

use super::push::PushConfig;
use crate::lenient::{self, DataEncoding};
use crate::wire_types::{Int32, RawJson, Text, Violations, WireList, object};
use crate::{Operation, Strictness, json};

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SendParams<'a, M> {
    pub(super) message: Option<M>,
    /// The protobuf name of `message`, in ProtoJSON.
    pub(super) request: Option<M>,
    #[serde(borrow)]
    pub(super) configuration: Option<Configuration<'a>>,
    pub(super) metadata: Option<RawJson<'a>>,
}

/// ProtoJSON calls the webhook `pushNotification`.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Configuration<'a> {
    #[serde(borrow, default, alias = "accepted_output_modes")]
    pub(super) accepted_output_modes: WireList<'a, Text<'a>, String>,
    #[serde(alias = "pushNotification", alias = "push_notification")]
    pub(super) push_notification_config: Option<PushConfig<'a>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int32>,
    pub(super) blocking: Option<bool>,
    /// The opposite in 1.0; strict reading ignores it.
    #[serde(alias = "return_immediately")]
    pub(super) return_immediately: Option<bool>,
}

object! { read SendParams<'a, M>; read Configuration<'a> }

/// What a configuration without `blocking` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingBlocking {
    /// The server decides, and this one waits.
    ServerDecides,
    /// False: ProtoJSON leaves out what is false, and so do all clients that write it.
    MeansFalse,
}

impl<M> SendParams<'_, M> {
    pub(super) fn into_send(
        self,
        operation: Operation,
        missing_blocking: MissingBlocking,
        strictness: Strictness,
        read_message: impl FnOnce(M) -> Result<IncomingMessage, Violations>,
    ) -> Result<Box<model::Send>, Violations> {
        let mut violations = Violations::default();
        let request = self
            .request
            .filter(|_| missing_blocking == MissingBlocking::MeansFalse || strictness != Strictness::Strict);
        if self.message.is_some() && request.is_some() {
            violations.add("request", "is another name of message; give one of them");
        }
        let message = violations.required("message", self.message.or(request));
        let message = message.and_then(|message| violations.check("message", read_message(message)));
        let is_configured = self.configuration.is_some();
        let configuration = self.configuration.unwrap_or_default();
        let push = configuration
            .push_notification_config
            .and_then(|config| violations.check("configuration.pushNotificationConfig", config.try_into()));
        let history = violations.count("configuration.historyLength", configuration.history_length);
        let metadata = violations.object("metadata", self.metadata);
        let returns = configuration.return_immediately.filter(|_| strictness != Strictness::Strict);
        let delivery = match (operation, configuration.blocking.or(returns.map(|returns| !returns))) {
            (Operation::Stream, _) => Delivery::Stream,
            (_, Some(false)) => Delivery::Immediately,
            (_, None) if is_configured && missing_blocking == MissingBlocking::MeansFalse => Delivery::Immediately,
            (_, Some(true) | None) => Delivery::WhenSettled,
        };
        let accepted_output = configuration.accepted_output_modes.into_wire();
        violations.finish(message.map(|message| {
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

/// Reads the params of a send; `M` is the message as strict reading has it.
pub(super) fn read_send<'a, M>(
    operation: Operation,
    params: &'a str,
    strictness: Strictness,
    missing_blocking: MissingBlocking,
    data: DataEncoding,
) -> Result<Box<model::Send>, Error>
where
    M: Deserialize<'a> + TryInto<model::Message, Error = Violations>,
{
    let send =
        match strictness {
            Strictness::Strict => {
                json::read::<SendParams<M>>(params)?
                    .into_send(operation, missing_blocking, strictness, |message| message.try_into().map(Into::into))
            }
            Strictness::Complete | Strictness::Lenient => json::read::<SendParams<lenient::Message>>(params)?
                .into_send(operation, missing_blocking, strictness, |message| message.read(data, strictness)),
        };
    Ok(send?)
}
