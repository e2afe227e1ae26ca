//! The params of requests to other servers, as 0.3 and 0.2 spell them over JSON-RPC.

use sabir_model as model;
use sabir_model::{Call, Delivery, Error, PushCall};
use serde::Serialize;

use super::dialect::no_list;
use super::message::Message;
use crate::json;
use crate::peer::PeerCall;
use crate::wire_types::{RawJson, raw_json};

/// `M` is the message as the binding spells it.
#[derive(Serialize)]
pub(super) struct SendRequest<'a, M> {
    pub(super) message: M,
    pub(super) configuration: Configuration<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration<'a> {
    /// Servers of 0.2 refuse a configuration without it. An empty list means that anything is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted_output_modes: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) push_notification_config: Option<PushConfig<'a>>,
    /// What ProtoJSON calls the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) push_notification: Option<PushConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) history_length: Option<u32>,
    /// Always written: some servers take a configuration without it for `false`.
    pub(super) blocking: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskRequest<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PushSet<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    push_notification_config: PushConfig<'a>,
}

/// A webhook with its secrets, which no answer of ours has.
#[derive(Serialize)]
pub(crate) struct PushConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication<'a>>,
}

#[derive(Serialize)]
struct Authentication<'a> {
    schemes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
}

#[derive(Serialize)]
struct NoParams {}

/// Appends the params of a call.
pub(crate) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match peer.call {
        Call::Send(send) => {
            let request = SendRequest {
                message: Message::with_id(send.message.id.as_ref(), &send.message),
                configuration: Configuration {
                    accepted_output_modes: Some(&send.accepted_output),
                    push_notification_config: send.push.as_ref().map(PushConfig::of),
                    ..Configuration::of(send)
                },
                metadata: raw_json(&send.metadata),
            };
            json::write(&request, out);
        }
        Call::Get(get) => {
            let request = TaskRequest { history_length: get.history, ..TaskRequest::of(&get.task) };
            json::write(&request, out);
        }
        Call::Cancel(cancel) => {
            let request = TaskRequest { metadata: raw_json(&cancel.metadata), ..TaskRequest::of(&cancel.task) };
            json::write(&request, out);
        }
        Call::Subscribe(subscribe) => json::write(&TaskRequest::of(&subscribe.task), out),
        Call::List(_) => return Err(no_list()),
        Call::Push(PushCall::Set { config, .. }) => {
            let task_id = config.task.as_ref().map(model::TaskId::as_str);
            json::write(&PushSet { task_id, push_notification_config: PushConfig::of(config) }, out);
        }
        Call::Push(PushCall::Get { task, config, .. } | PushCall::Delete { task, config, .. }) => {
            let push_notification_config_id = config.as_ref().map(model::PushConfigId::as_str);
            json::write(&TaskRequest { push_notification_config_id, ..TaskRequest::of(task) }, out);
        }
        Call::Push(PushCall::List { task, .. }) => json::write(&TaskRequest::of(task), out),
        Call::ExtendedCard { .. } => json::write(&NoParams {}, out),
    }
    Ok(())
}

impl<'a> Configuration<'a> {
    /// Without modes and webhook, which differ by version and binding.
    pub(super) fn of(send: &'a model::Send) -> Self {
        Configuration {
            accepted_output_modes: None,
            push_notification_config: None,
            push_notification: None,
            history_length: send.history,
            blocking: send.delivery != Delivery::Immediately,
        }
    }
}

impl<'a> TaskRequest<'a> {
    fn of(task: &'a model::TaskId) -> Self {
        TaskRequest { id: task.as_str(), history_length: None, push_notification_config_id: None, metadata: None }
    }
}

impl<'a> PushConfig<'a> {
    /// The config as 0.1 writes it.
    pub(crate) fn without_id(self) -> Self {
        Self { id: None, ..self }
    }

    pub(crate) fn of(config: &'a model::PushConfig) -> Self {
        PushConfig {
            id: config.id.as_ref().map(model::PushConfigId::as_str),
            url: &config.url,
            token: config.token.as_deref(),
            authentication: config.authentication.as_ref().map(|authentication| Authentication {
                schemes: &authentication.schemes,
                credentials: authentication.credentials.as_deref(),
            }),
        }
    }
}
