//! The messages of requests to other servers: what `call` reads, written.

use sabir_model as model;
use sabir_model::{Call, Delivery, PushCall, Wanted};
use sabir_proto::v1 as proto;

use super::message::write_message_with_id;
use super::names::write_state;
use super::push::write_config;
use crate::peer::PeerCall;
use crate::protobuf::{write_known_time, write_message, write_struct};

/// Appends the message of a call.
pub(super) fn write_call(peer: &PeerCall<'_>, out: &mut Vec<u8>) {
    let tenant = peer.call.agent().map(ToString::to_string).unwrap_or_default();
    match peer.call {
        Call::Send(send) => write_message(&send_request(send, tenant), out),
        Call::Get(get) => {
            let history_length = get.history.map(count);
            write_message(&proto::GetTaskRequest { tenant, id: get.task.to_string(), history_length }, out);
        }
        Call::Cancel(cancel) => {
            let metadata = cancel.metadata.as_ref().map(write_struct);
            write_message(&proto::CancelTaskRequest { tenant, id: cancel.task.to_string(), metadata }, out);
        }
        Call::Subscribe(subscribe) => {
            write_message(&proto::SubscribeToTaskRequest { tenant, id: subscribe.task.to_string() }, out);
        }
        Call::List(list) => {
            let request = proto::ListTasksRequest {
                tenant,
                context_id: list.context.as_ref().map(ToString::to_string).unwrap_or_default(),
                status: list.state.map(write_state).unwrap_or_default(),
                page_size: Some(count(list.page_size)),
                page_token: peer.page_token.unwrap_or_default().to_owned(),
                history_length: list.history.map(count),
                status_timestamp_after: list.since.map(write_known_time),
                include_artifacts: (list.artifacts == Wanted::Yes).then_some(true),
            };
            write_message(&request, out);
        }
        Call::Push(PushCall::Set { config, .. }) => {
            write_message(&proto::TaskPushNotificationConfig { tenant, ..config_with_secrets(config) }, out);
        }
        Call::Push(PushCall::Get { task, config, .. }) => {
            let id = config.as_ref().map(ToString::to_string).unwrap_or_default();
            let task_id = task.to_string();
            write_message(&proto::GetTaskPushNotificationConfigRequest { tenant, task_id, id }, out);
        }
        Call::Push(PushCall::Delete { task, config, .. }) => {
            let id = config.as_ref().map(ToString::to_string).unwrap_or_default();
            let task_id = task.to_string();
            write_message(&proto::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id }, out);
        }
        Call::Push(PushCall::List { task, page_size, page_token, .. }) => {
            let request = proto::ListTaskPushNotificationConfigsRequest {
                tenant,
                task_id: task.to_string(),
                page_size: page_size.map(count).unwrap_or_default(),
                page_token: page_token.clone().unwrap_or_default(),
            };
            write_message(&request, out);
        }
        Call::ExtendedCard { .. } => write_message(&proto::GetExtendedAgentCardRequest { tenant }, out),
    }
}

fn send_request(send: &model::Send, tenant: String) -> proto::SendMessageRequest {
    let configuration = proto::SendMessageConfiguration {
        accepted_output_modes: send.accepted_output.clone(),
        task_push_notification_config: send.push.as_ref().map(config_with_secrets),
        history_length: send.history.map(count),
        return_immediately: send.delivery == Delivery::Immediately,
    };
    let is_needed = configuration != proto::SendMessageConfiguration::default();
    proto::SendMessageRequest {
        tenant,
        message: Some(write_message_with_id(send.message.id.as_ref(), &send.message)),
        configuration: is_needed.then_some(configuration),
        metadata: send.metadata.as_ref().map(write_struct),
    }
}

/// A webhook with its secrets, which no answer of ours has.
fn config_with_secrets(config: &model::PushConfig) -> proto::TaskPushNotificationConfig {
    let mut written = write_config(config);
    written.token = config.token.clone().unwrap_or_default();
    let credentials = config.authentication.as_ref().and_then(|authentication| authentication.credentials.clone());
    if let Some(authentication) = &mut written.authentication {
        authentication.credentials = credentials.unwrap_or_default();
    }
    written
}

/// The protocol counts in int32; a larger number becomes the largest int32.
fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
