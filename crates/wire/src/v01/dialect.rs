//! The dialect of 0.1.

use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::frame::Frame;
use super::message::Message;
use super::push::{PushParams, TaskPushConfig};
use super::send::SendParams;
use super::task::Task;
use crate::card::{CardFormat, write_card};
use crate::lenient::{self, DataEncoding};
use crate::peer_response::PeerResponse;
use crate::task_request::TaskRequest;
use crate::wire_types::WireList;
use crate::{Dialect, JsonDialect, Operation, Payload, PushMembers, Strictness, json, v1};

pub struct V01;

pub(crate) const BIRTH: Birth = Birth(1);

impl Dialect for V01 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        PushMembers { send: "pushNotification.", set: "pushNotificationConfig." }
    }

    fn slot(&self) -> usize {
        3
    }

    fn final_event_needs_task(&self) -> bool {
        true
    }

    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) | Payload::SendResult(task) => json::write(&Task::from(task), out),
            // The engine makes a task for every send of 0.1, so this is never needed.
            Payload::Message(message) => json::write(&Message::from(message), out),
            Payload::Page(page) => json::write(&WireList::<Task, _>::Model(&page.tasks), out),
            Payload::Snapshot(task) => json::write(&Frame::snapshot(task), out),
            Payload::Event { task, event, .. } => json::write(&Frame::event(task, event), out),
            Payload::FinalEvent { task, event } => json::write(&Frame::end(task, event), out),
            Payload::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Payload::PushConfigs(configs) => json::write(&WireList::<TaskPushConfig, _>::Model(configs), out),
            Payload::Card(card) => write_card(card, CardFormat::V0_1, out),
        }
    }
}

impl JsonDialect for V01 {
    fn decode(&self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, strictness)?,
            Operation::Get => read_task_request(params, strictness)?.get(),
            Operation::Cancel => read_task_request(params, strictness)?.cancel(),
            Operation::Subscribe => read_task_request(params, strictness)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<PushParams>(params)?.into_set(strictness)?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get(strictness)?),
            Operation::List | Operation::PushList | Operation::PushDelete | Operation::ExtendedCard => {
                return Err(method_not_found(operation));
            }
        })
    }
}

impl V01 {
    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        Ok(match operation {
            Operation::Send | Operation::Get | Operation::Cancel => {
                PeerResponse::Task(Box::new(json::read::<Task>(result)?.try_into()?))
            }
            Operation::Stream | Operation::Subscribe => json::read::<Frame>(result)?.try_into()?,
            Operation::PushSet | Operation::PushGet => {
                let config = json::read::<Option<TaskPushConfig>>(result)?;
                let config = config.map(TaskPushConfig::into_config).transpose()?.flatten();
                PeerResponse::PushConfig(config.map(Box::new))
            }
            Operation::List | Operation::PushList | Operation::PushDelete | Operation::ExtendedCard => {
                return Err(method_not_found(operation));
            }
        })
    }
}

fn read_send(operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
    let send =
        match strictness {
            Strictness::Strict => {
                json::read::<SendParams<Message>>(params)?.into_send(operation, strictness, TryInto::try_into)
            }
            // Messages have no ids in 0.1, so a missing id is never an error.
            Strictness::Complete | Strictness::Lenient => json::read::<SendParams<lenient::Message>>(params)?
                .into_send(operation, strictness, |message| message.read(DataEncoding::Object, Strictness::Lenient)),
        };
    Ok(Call::Send(send?))
}

/// 0.1 has no tenants, so a member of that name is ignored.
fn read_task_request(params: &str, strictness: Strictness) -> Result<TaskRequest, Error> {
    let request: TaskRequest = match strictness {
        Strictness::Strict => json::read::<v1::TaskParams>(params)?.try_into()?,
        Strictness::Complete | Strictness::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(TaskRequest { agent: None, ..request })
}

/// For operations that came with later versions.
pub(super) fn method_not_found(operation: Operation) -> Error {
    let method = match operation {
        Operation::PushList => "tasks/pushNotification/list",
        Operation::PushDelete => "tasks/pushNotification/delete",
        Operation::ExtendedCard => "agent/getAuthenticatedExtendedCard",
        _ => "tasks/list",
    };
    Error::MethodNotFound(method.to_owned())
}
