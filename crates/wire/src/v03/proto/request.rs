//! The bodies of requests to other servers, as 0.3 spells them over HTTP: a send, a cancel and a webhook have one.

use sabir_model as model;
use sabir_model::{Call, Error, PushCall};
use serde::Serialize;

use super::super::dialect::no_list;
use super::super::request::{Configuration, PushConfig, SendRequest};
use super::message::Message;
use super::push::config_name;
use crate::json;
use crate::peer::PeerCall;
use crate::wire_types::raw_json;

/// Servers refuse members that they do not know, so the body of a cancel repeats no id.
#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PushSet<'a> {
    parent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_id: Option<&'a str>,
    config: TaskPushConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskPushConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    push_notification_config: PushConfig<'a>,
}

/// Appends the body of a call. Calls whose path says all have none.
pub(crate) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match peer.call {
        Call::Send(send) => {
            // The members of ProtoJSON are never null, and an empty list is left out.
            let modes = (!send.accepted_output.is_empty()).then_some(send.accepted_output.as_slice());
            let request = SendRequest {
                message: Message::with_id(send.message.id.as_ref(), &send.message),
                configuration: Configuration {
                    accepted_output_modes: modes,
                    push_notification: send.push.as_ref().map(PushConfig::of),
                    ..Configuration::of(send)
                },
                metadata: raw_json(&send.metadata),
            };
            json::write(&request, out);
        }
        Call::Cancel(_) => json::write(&Empty {}, out),
        Call::Push(PushCall::Set { config, .. }) => {
            let task = config.task.as_ref().map(model::TaskId::as_str).unwrap_or_default();
            let id = config.id.as_ref().map(model::PushConfigId::as_str);
            let request = PushSet {
                parent: format!("tasks/{task}"),
                config_id: id,
                config: TaskPushConfig {
                    name: id.map(|id| config_name(task, id)),
                    push_notification_config: PushConfig::of(config),
                },
            };
            json::write(&request, out);
        }
        Call::List(_) => return Err(no_list()),
        Call::Get(_) | Call::Subscribe(_) | Call::Push(_) | Call::ExtendedCard { .. } => {}
    }
    Ok(())
}
