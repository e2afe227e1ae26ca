//! The params of requests to other servers, as 0.1 spells them: the caller names the task, outside of the message.

use sabir_model as model;
use sabir_model::{Call, Error, PushCall};
use serde::Serialize;

use super::dialect::method_not_found;
use super::message::Message;
use crate::peer::PeerCall;
use crate::v03::OutgoingPushConfig;
use crate::wire_types::{RawJson, raw_json};
use crate::{Operation, json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SendRequest<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    message: Message<'a>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    accepted_output_modes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification: Option<OutgoingPushConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskRequest<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PushSet<'a> {
    id: &'a str,
    push_notification_config: OutgoingPushConfig<'a>,
}

/// Appends the params of a call. A message must name its task: in 0.1 that is the caller's to choose.
pub(crate) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let task_request = |task: &'_ model::TaskId, out: &mut Vec<u8>, history_length, metadata: Option<RawJson<'_>>| {
        json::write(&TaskRequest { id: task.as_str(), history_length, metadata }, out);
    };
    match peer.call {
        Call::Send(send) => {
            let Some(task) = &send.message.task else {
                return Err(Error::invalid("message.taskId", "is required: callers of 0.1 name their tasks"));
            };
            let request = SendRequest {
                id: task.as_str(),
                session_id: send.message.context.as_ref().map(model::ContextId::as_str),
                message: Message::from(&send.message),
                accepted_output_modes: &send.accepted_output,
                push_notification: send.push.as_ref().map(without_id),
                history_length: send.history,
                metadata: raw_json(&send.metadata),
            };
            json::write(&request, out);
        }
        Call::Get(get) => task_request(&get.task, out, get.history, None),
        Call::Cancel(cancel) => task_request(&cancel.task, out, None, raw_json(&cancel.metadata)),
        Call::Subscribe(subscribe) => task_request(&subscribe.task, out, None, None),
        Call::Push(PushCall::Set { config, .. }) => {
            let id = config.task.as_ref().map(model::TaskId::as_str).unwrap_or_default();
            json::write(&PushSet { id, push_notification_config: without_id(config) }, out);
        }
        Call::Push(PushCall::Get { task, .. }) => task_request(task, out, None, None),
        Call::List(_) => return Err(method_not_found(Operation::List)),
        Call::Push(PushCall::List { .. }) => return Err(method_not_found(Operation::PushList)),
        Call::Push(PushCall::Delete { .. }) => return Err(method_not_found(Operation::PushDelete)),
        Call::ExtendedCard { .. } => return Err(method_not_found(Operation::ExtendedCard)),
    }
    Ok(())
}

/// A task of 0.1 has one webhook, without an id.
fn without_id(config: &model::PushConfig) -> OutgoingPushConfig<'_> {
    OutgoingPushConfig::of(config).without_id()
}
