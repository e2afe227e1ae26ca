//! The params of requests to other servers, as 1.0 spells them: what `decode` reads, written.

use sabir_model as model;
use sabir_model::{Call, Delivery, PushCall, Wanted};
use serde::Serialize;

use super::message::Message;
use super::names::state_name;
use crate::json;
use crate::peer::PeerCall;
use crate::wire_types::{RawJson, Rfc3339, raw_json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SendRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    message: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Configuration<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    accepted_output_modes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    task_push_notification_config: Option<PushRequest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_immediately: Option<bool>,
}

/// Get, cancel and subscribe.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    page_size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_timestamp_after: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_artifacts: Option<bool>,
}

/// A webhook with its secrets, which no answer of ours has.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PushRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<&'a str>,
}

#[derive(Serialize)]
struct Authentication<'a> {
    scheme: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
}

#[derive(Serialize)]
struct ExtendedCardRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
}

/// Appends the params of a call.
pub(crate) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) {
    let tenant = peer.call.agent().map(model::AgentId::as_str);
    match peer.call {
        Call::Send(send) => json::write(&send_request(send, tenant), out),
        Call::Get(get) => {
            let request =
                TaskRequest { tenant, id: get.task.as_str(), history_length: get.history, ..TaskRequest::default() };
            json::write(&request, out);
        }
        Call::Cancel(cancel) => {
            let metadata = raw_json(&cancel.metadata);
            json::write(&TaskRequest { tenant, id: cancel.task.as_str(), metadata, ..TaskRequest::default() }, out);
        }
        Call::Subscribe(subscribe) => {
            json::write(&TaskRequest { tenant, id: subscribe.task.as_str(), ..TaskRequest::default() }, out);
        }
        Call::List(list) => {
            let request = ListRequest {
                tenant,
                context_id: list.context.as_ref().map(model::ContextId::as_str),
                status: list.state.map(state_name),
                page_size: list.page_size,
                page_token: peer.page_token,
                history_length: list.history,
                status_timestamp_after: list.since.map(Rfc3339),
                include_artifacts: (list.artifacts == Wanted::Yes).then_some(true),
            };
            json::write(&request, out);
        }
        Call::Push(PushCall::Set { config, .. }) => json::write(&PushRequest { tenant, ..push(config) }, out),
        Call::Push(PushCall::Get { task, config, .. } | PushCall::Delete { task, config, .. }) => {
            let id = config.as_ref().map(model::PushConfigId::as_str);
            json::write(&PushRequest { tenant, id, task_id: Some(task.as_str()), ..PushRequest::default() }, out);
        }
        Call::Push(PushCall::List { task, page_size, page_token, .. }) => {
            let (page_size, page_token) = (*page_size, page_token.as_deref());
            let task_id = Some(task.as_str());
            json::write(&PushRequest { tenant, task_id, page_size, page_token, ..PushRequest::default() }, out);
        }
        Call::ExtendedCard { .. } => json::write(&ExtendedCardRequest { tenant }, out),
    }
}

fn send_request<'a>(send: &'a model::Send, tenant: Option<&'a str>) -> SendRequest<'a> {
    let configuration = Configuration {
        accepted_output_modes: &send.accepted_output,
        task_push_notification_config: send.push.as_ref().map(push),
        history_length: send.history,
        return_immediately: (send.delivery == Delivery::Immediately).then_some(true),
    };
    let is_needed = !configuration.accepted_output_modes.is_empty()
        || configuration.task_push_notification_config.is_some()
        || configuration.history_length.is_some()
        || configuration.return_immediately.is_some();
    SendRequest {
        tenant,
        message: Message::with_id(send.message.id.as_ref(), &send.message),
        configuration: is_needed.then_some(configuration),
        metadata: raw_json(&send.metadata),
    }
}

fn push(config: &model::PushConfig) -> PushRequest<'_> {
    let authentication = config.authentication.as_ref().and_then(|authentication| {
        let scheme = authentication.schemes.first()?;
        Some(Authentication { scheme, credentials: authentication.credentials.as_deref() })
    });
    PushRequest {
        id: config.id.as_ref().map(model::PushConfigId::as_str),
        task_id: config.task.as_ref().map(model::TaskId::as_str),
        url: Some(&config.url),
        token: config.token.as_deref(),
        authentication,
        ..PushRequest::default()
    }
}
