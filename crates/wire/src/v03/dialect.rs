//! The dialect of 0.3 over JSON-RPC: JSON objects with a `kind`.

use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::frame::{read_frame, write_event};
use super::message::Message;
use super::push::{PushParams, TaskPushConfig};
use super::send::{MissingBlocking, read_send};
use super::task::Task;
use crate::card::{CardFormat, read_card, write_card};
use crate::lenient::{self, DataEncoding};
use crate::peer_response::{PeerResponse, push_configs};
use crate::task_request::TaskRequest;
use crate::wire_types::WireList;
use crate::{Dialect, JsonDialect, Operation, Payload, PushMembers, Strictness, json, v1};

pub struct V03;

pub(crate) const BIRTH: Birth = Birth(3);

impl Dialect for V03 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        PushMembers { send: "configuration.pushNotificationConfig.", set: "pushNotificationConfig." }
    }

    fn slot(&self) -> usize {
        1
    }

    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) | Payload::SendResult(task) | Payload::Snapshot(task) => {
                json::write(&Task::from(task), out)
            }
            Payload::Message(message) => json::write(&Message::from(message), out),
            Payload::Page(page) => json::write(&WireList::<Task, _>::Model(&page.tasks), out),
            Payload::Event { task, context, event } => write_event(task, context, event, out),
            Payload::FinalEvent { task, event } => write_event(&task.id, &task.context, event, out),
            Payload::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Payload::PushConfigs(configs) => json::write(&WireList::<TaskPushConfig, _>::Model(configs), out),
            Payload::Card(card) => write_card(card, CardFormat::V0_3, out),
        }
    }
}

impl JsonDialect for V03 {
    fn decode(&self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => {
                let missing_blocking = MissingBlocking::ServerDecides;
                Call::Send(read_send::<Message>(operation, params, strictness, missing_blocking, DataEncoding::Object)?)
            }
            Operation::Get => read_task_request(params, strictness)?.get(),
            Operation::List => return Err(no_list()),
            Operation::Cancel => read_task_request(params, strictness)?.cancel(),
            Operation::Subscribe => read_task_request(params, strictness)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<PushParams>(params)?.into_set(strictness)?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get(strictness)?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list(strictness)?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete(strictness)?),
            Operation::ExtendedCard => Call::ExtendedCard { agent: None },
        })
    }
}

impl V03 {
    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => read_frame(result)?,
            Operation::Get | Operation::Cancel => PeerResponse::Task(Box::new(json::read::<Task>(result)?.try_into()?)),
            Operation::List => return Err(no_list()),
            Operation::PushSet | Operation::PushGet => {
                let config = json::read::<Option<TaskPushConfig>>(result)?.map(TryInto::try_into).transpose()?;
                PeerResponse::PushConfig(config.map(Box::new))
            }
            Operation::PushList => push_configs(json::read::<WireList<TaskPushConfig, ()>>(result)?, "")?,
            Operation::PushDelete => PeerResponse::Empty,
            Operation::ExtendedCard => PeerResponse::Card(Box::new(read_card(result)?)),
        })
    }
}

/// 0.3 has no tenants, so a member of that name is ignored.
fn read_task_request(params: &str, strictness: Strictness) -> Result<TaskRequest, Error> {
    let request: TaskRequest = match strictness {
        Strictness::Strict => json::read::<v1::TaskParams>(params)?.try_into()?,
        Strictness::Complete | Strictness::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(TaskRequest { agent: None, ..request })
}

/// No binding of 0.3 that is in use can list tasks.
pub(super) fn no_list() -> Error {
    Error::MethodNotFound("tasks/list".to_owned())
}
