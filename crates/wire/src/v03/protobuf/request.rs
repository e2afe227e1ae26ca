//! The messages of calls to other servers.

use sabir_model as model;
use sabir_model::{Call, Delivery, Error, PushCall, PushConfigId, TaskId};
use sabir_proto::v03;

use super::super::dialect::no_list;
use super::super::proto::config_name;
use super::fields::write_metadata;
use super::message::write_message;
use super::push::write_with_secrets;
use crate::peer::PeerCall;
use crate::protobuf::write_message as write;

/// Appends the message of a call.
pub(super) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match peer.call {
        Call::Send(send) => write(&write_send(send), out),
        Call::Get(get) => {
            write(&v03::GetTaskRequest { name: task_name(&get.task), history_length: int32(get.history) }, out)
        }
        Call::List(_) => return Err(no_list()),
        Call::Cancel(cancel) => write(&v03::CancelTaskRequest { name: task_name(&cancel.task) }, out),
        Call::Subscribe(subscribe) => write(&v03::TaskSubscriptionRequest { name: task_name(&subscribe.task) }, out),
        Call::Push(PushCall::Set { config, .. }) => write(&write_set(config), out),
        Call::Push(PushCall::Get { task, config, .. }) => {
            write(&v03::GetTaskPushNotificationConfigRequest { name: one_config(task, config) }, out)
        }
        Call::Push(PushCall::List { task, page_size, page_token, .. }) => {
            let request = v03::ListTaskPushNotificationConfigRequest {
                parent: task_name(task),
                page_size: int32(*page_size),
                page_token: page_token.clone().unwrap_or_default(),
            };
            write(&request, out);
        }
        Call::Push(PushCall::Delete { task, config, .. }) => {
            write(&v03::DeleteTaskPushNotificationConfigRequest { name: one_config(task, config) }, out)
        }
        Call::ExtendedCard { .. } => write(&v03::GetAgentCardRequest {}, out),
    }
    Ok(())
}

fn write_send(send: &model::Send) -> v03::SendMessageRequest {
    v03::SendMessageRequest {
        request: Some(write_message(send.message.id.as_ref(), &send.message)),
        configuration: Some(v03::SendMessageConfiguration {
            accepted_output_modes: send.accepted_output.clone(),
            push_notification: send.push.as_ref().map(write_with_secrets),
            history_length: int32(send.history),
            blocking: send.delivery != Delivery::Immediately,
        }),
        metadata: write_metadata(&send.metadata),
    }
}

fn write_set(config: &model::PushConfig) -> v03::CreateTaskPushNotificationConfigRequest {
    let task = config.task.as_ref().map(TaskId::as_str).unwrap_or_default();
    let id = config.id.as_ref().map(PushConfigId::as_str);
    v03::CreateTaskPushNotificationConfigRequest {
        parent: format!("tasks/{task}"),
        config_id: id.unwrap_or_default().to_owned(),
        config: Some(v03::TaskPushNotificationConfig {
            name: id.map(|id| config_name(task, id)).unwrap_or_default(),
            push_notification_config: Some(write_with_secrets(config)),
        }),
    }
}

fn task_name(task: &TaskId) -> String {
    format!("tasks/{task}")
}

/// Where nobody chose an id, it is the task's.
fn one_config(task: &TaskId, config: &Option<PushConfigId>) -> String {
    config_name(task.as_str(), config.as_ref().map_or(task.as_str(), PushConfigId::as_str))
}

/// 0 is how protobuf leaves a number out, so it cannot ask for a history without messages.
fn int32(number: Option<u32>) -> i32 {
    i32::try_from(number.unwrap_or_default()).unwrap_or(i32::MAX)
}
