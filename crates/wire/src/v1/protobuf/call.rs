//! The messages of requests: each becomes the params of the JSON dialect, which checks them and makes the call.
//!
//! Protobuf does not tell an empty text from a missing one, and for the params the two are the same.

use sabir_model::{Call, Error, OnFinishedSubscribe};
use sabir_proto::prost_types::Struct;
use sabir_proto::v1 as proto;

use super::message::{read_message, texts};
use super::names::number;
use super::push::config_params;
use crate::protobuf::{self, read_struct, read_time};
use crate::task_request::TaskRequest;
use crate::v1::list::ListParams;
use crate::v1::push::PushParams;
use crate::v1::send::{Configuration, SendParams};
use crate::v1::task_id::{ExtendedCardParams, TaskParams};
use crate::wire_types::{Int32, RawJson, Rfc3339, Violations};
use crate::{Operation, Strictness};

pub(super) fn read_call(operation: Operation, message: &[u8]) -> Result<Call, Error> {
    Ok(match operation {
        Operation::Send | Operation::Stream => {
            let params = send_params(protobuf::read_message(message)?)?;
            params.into_call(operation, Strictness::Strict, |message| read_message(message).map(Into::into))?
        }
        Operation::Get => task_request(get_params(protobuf::read_message(message)?))?.get(),
        Operation::List => Call::List(list_params(protobuf::read_message(message)?).try_into()?),
        Operation::Cancel => task_request(cancel_params(protobuf::read_message(message)?)?)?.cancel(),
        Operation::Subscribe => {
            let request = task_request(subscribe_params(protobuf::read_message(message)?))?;
            request.subscribe(OnFinishedSubscribe::Refuse)
        }
        Operation::PushSet => Call::Push(config_params(protobuf::read_message(message)?).into_call()?),
        Operation::PushGet => Call::Push(push_get_params(protobuf::read_message(message)?).into_get()?),
        Operation::PushList => Call::Push(push_list_params(protobuf::read_message(message)?).into_list()?),
        Operation::PushDelete => Call::Push(push_delete_params(protobuf::read_message(message)?).into_delete()?),
        Operation::ExtendedCard => {
            let request: proto::GetExtendedAgentCardRequest = protobuf::read_message(message)?;
            ExtendedCardParams { tenant: Some(request.tenant.into()) }.try_into()?
        }
    })
}

fn send_params(request: proto::SendMessageRequest) -> Result<SendParams<'static, proto::Message>, Violations> {
    Ok(SendParams {
        tenant: Some(request.tenant.into()),
        message: request.message,
        configuration: request.configuration.map(|configuration| Configuration {
            accepted_output_modes: texts(configuration.accepted_output_modes),
            task_push_notification_config: configuration.task_push_notification_config.map(config_params),
            history_length: configuration.history_length.map(Int32),
            return_immediately: Some(configuration.return_immediately),
            blocking: None,
        }),
        metadata: metadata(request.metadata)?,
    })
}

fn task_request(params: TaskParams<'_>) -> Result<TaskRequest, Violations> {
    params.try_into()
}

fn get_params(request: proto::GetTaskRequest) -> TaskParams<'static> {
    TaskParams {
        tenant: Some(request.tenant.into()),
        id: Some(request.id.into()),
        history_length: request.history_length.map(Int32),
        ..TaskParams::default()
    }
}

fn cancel_params(request: proto::CancelTaskRequest) -> Result<TaskParams<'static>, Violations> {
    Ok(TaskParams {
        tenant: Some(request.tenant.into()),
        id: Some(request.id.into()),
        metadata: metadata(request.metadata)?,
        ..TaskParams::default()
    })
}

fn subscribe_params(request: proto::SubscribeToTaskRequest) -> TaskParams<'static> {
    TaskParams { tenant: Some(request.tenant.into()), id: Some(request.id.into()), ..TaskParams::default() }
}

fn list_params(request: proto::ListTasksRequest) -> ListParams<'static> {
    ListParams {
        tenant: Some(request.tenant.into()),
        context_id: Some(request.context_id.into()),
        status: Some(number(request.status)),
        page_size: request.page_size.map(Int32),
        page_token: Some(request.page_token.into()),
        history_length: request.history_length.map(Int32),
        status_timestamp_after: request.status_timestamp_after.map(|time| Rfc3339(read_time(time))),
        include_artifacts: request.include_artifacts,
    }
}

fn push_get_params(request: proto::GetTaskPushNotificationConfigRequest) -> PushParams<'static> {
    one_config(request.tenant, request.task_id, request.id)
}

fn push_delete_params(request: proto::DeleteTaskPushNotificationConfigRequest) -> PushParams<'static> {
    one_config(request.tenant, request.task_id, request.id)
}

fn one_config(tenant: String, task: String, id: String) -> PushParams<'static> {
    PushParams { tenant: Some(tenant.into()), task_id: Some(task.into()), id: Some(id.into()), ..PushParams::default() }
}

fn push_list_params(request: proto::ListTaskPushNotificationConfigsRequest) -> PushParams<'static> {
    PushParams {
        tenant: Some(request.tenant.into()),
        task_id: Some(request.task_id.into()),
        page_size: Some(Int32(request.page_size)),
        page_token: Some(request.page_token.into()),
        ..PushParams::default()
    }
}

/// A number that JSON does not have is a violation, and the only one that is reported.
fn metadata(object: Option<Struct>) -> Result<Option<RawJson<'static>>, Violations> {
    let mut violations = Violations::default();
    let Some(object) = object else { return Ok(None) };
    let metadata = violations.check("metadata", read_struct(object));
    violations.finish(metadata.map(|json| Some(json.into())))
}
