//! The messages of calls. Their fields are checked by the structs that the ProtoJSON of 0.3 is read with.

use sabir_model as model;
use sabir_model::{Call, Error, OnFinishedSubscribe};
use sabir_proto::v03;

use super::super::dialect::no_list;
use super::super::proto::{CreateParams, PushParams, TaskParams, limit};
use super::super::send::{Configuration, MissingBlocking, SendParams};
use super::fields::{present, read_metadata, texts};
use super::message;
use crate::protobuf::read_message;
use crate::task_request::TaskRequest;
use crate::wire_types::{Int32, Violations, raw_json};
use crate::{Operation, Strictness};

pub(super) fn read_call(operation: Operation, message: &[u8]) -> Result<Call, Error> {
    Ok(match operation {
        Operation::Send | Operation::Stream => Call::Send(read_send(operation, read_message(message)?)?),
        Operation::Get => {
            let request: v03::GetTaskRequest = read_message(message)?;
            read_task_request(request.name, request.history_length)?.get()
        }
        Operation::List => return Err(no_list()),
        Operation::Cancel => {
            let request: v03::CancelTaskRequest = read_message(message)?;
            read_task_request(request.name, 0)?.cancel()
        }
        Operation::Subscribe => {
            let request: v03::TaskSubscriptionRequest = read_message(message)?;
            read_task_request(request.name, 0)?.subscribe(OnFinishedSubscribe::ShowEnd)
        }
        Operation::PushSet => {
            let request: v03::CreateTaskPushNotificationConfigRequest = read_message(message)?;
            Call::Push(CreateParams::from(request).into_call()?)
        }
        Operation::PushGet => {
            let request: v03::GetTaskPushNotificationConfigRequest = read_message(message)?;
            Call::Push(named(request.name).into_get()?)
        }
        Operation::PushList => {
            let request: v03::ListTaskPushNotificationConfigRequest = read_message(message)?;
            Call::Push(PushParams::from(request).into_list()?)
        }
        Operation::PushDelete => {
            let request: v03::DeleteTaskPushNotificationConfigRequest = read_message(message)?;
            Call::Push(named(request.name).into_delete()?)
        }
        Operation::ExtendedCard => {
            read_message::<v03::GetAgentCardRequest>(message)?;
            Call::ExtendedCard { agent: None }
        }
    })
}

fn read_send(operation: Operation, request: v03::SendMessageRequest) -> Result<Box<model::Send>, Violations> {
    let mut violations = Violations::default();
    let metadata = read_metadata(request.metadata, &mut violations);
    let params = SendParams {
        message: request.request,
        request: None,
        configuration: request.configuration.map(Into::into),
        metadata: raw_json(&metadata),
    };
    let read_message = |message| message::read_message(message).map(Into::into);
    let send = params.into_send(operation, MissingBlocking::MeansFalse, Strictness::Strict, read_message);
    let send = violations.check("", send);
    violations.finish(send.map(|send| Box::new(model::Send { history: limit(send.history), ..*send })))
}

fn read_task_request(name: String, history_length: i32) -> Result<TaskRequest, Violations> {
    let params = TaskParams { name: present(name), id: None, history_length: Some(Int32(history_length)) };
    let request: TaskRequest = params.try_into()?;
    Ok(TaskRequest { history: limit(request.history), ..request })
}

/// The params of a get and of a delete.
fn named(name: String) -> PushParams<'static> {
    PushParams { name: present(name), parent: None, page_size: None, page_token: None }
}

/// A flag of protobuf is never missing, so only a missing configuration leaves the wait to the server.
impl From<v03::SendMessageConfiguration> for Configuration<'static> {
    fn from(configuration: v03::SendMessageConfiguration) -> Self {
        Configuration {
            accepted_output_modes: texts(configuration.accepted_output_modes),
            push_notification_config: configuration.push_notification.map(Into::into),
            history_length: Some(Int32(configuration.history_length)),
            blocking: Some(configuration.blocking),
            return_immediately: None,
        }
    }
}

impl From<v03::CreateTaskPushNotificationConfigRequest> for CreateParams<'static> {
    fn from(request: v03::CreateTaskPushNotificationConfigRequest) -> Self {
        CreateParams {
            parent: present(request.parent),
            config_id: present(request.config_id),
            config: request.config.map(Into::into),
            name: None,
            push_notification_config: None,
        }
    }
}

impl From<v03::ListTaskPushNotificationConfigRequest> for PushParams<'static> {
    fn from(request: v03::ListTaskPushNotificationConfigRequest) -> Self {
        PushParams {
            name: None,
            parent: present(request.parent),
            page_size: Some(Int32(request.page_size)),
            page_token: present(request.page_token),
        }
    }
}
