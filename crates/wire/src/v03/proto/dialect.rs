//! The dialect of 0.3 over HTTP: ProtoJSON.

use sabir_model as model;
use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::super::dialect::{BIRTH, no_list};
use super::super::send::{MissingBlocking, read_send};
use super::message::Message;
use super::part::Part;
use super::push::{CreateParams, PushConfigs, PushParams, TaskPushConfig};
use super::state::ProtoState;
use super::task_id::TaskParams;
use crate::card::{CardFormat, read_card, write_card};
use crate::lenient::{self, DataEncoding};
use crate::peer_response::{PeerResponse, push_configs};
use crate::task_request::TaskRequest;
use crate::v1::{self, FinalFlag};
use crate::wire_types::WireList;
use crate::{Dialect, JsonDialect, Operation, Payload, PushMembers, Strictness, json};

pub struct V03Proto;

type Task<'a> = v1::Task<'a, ProtoState<'a>, Message<'a>, Part<'a>>;
type Frame<'a> = v1::Frame<'a, ProtoState<'a>, Message<'a>, Part<'a>>;

impl Dialect for V03Proto {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        PushMembers { send: "configuration.pushNotification.", set: "pushNotificationConfig." }
    }

    fn slot(&self) -> usize {
        2
    }

    /// The card has no ProtoJSON format: the SDKs of 0.3 answer with the card of kind-JSON.
    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) => json::write(&Task::from(task), out),
            Payload::SendResult(task) | Payload::Snapshot(task) => json::write(&Frame::task(task), out),
            Payload::Message(message) => json::write(&Frame::message(message), out),
            Payload::Page(page) => json::write(&WireList::<Task, _>::Model(&page.tasks), out),
            Payload::Event { task, context, event } => {
                json::write(&Frame::event(task, context, event, FinalFlag::WhenTrue), out)
            }
            Payload::FinalEvent { task, event } => {
                json::write(&Frame::event(&task.id, &task.context, event, FinalFlag::WhenTrue), out)
            }
            Payload::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Payload::PushConfigs(configs) => json::write(&PushConfigs { configs: WireList::Model(configs) }, out),
            Payload::Card(card) => write_card(card, CardFormat::V0_3HttpJson, out),
        }
    }
}

impl JsonDialect for V03Proto {
    fn decode(&self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => {
                let missing_blocking = MissingBlocking::MeansFalse;
                let send = read_send::<Message>(operation, params, strictness, missing_blocking, DataEncoding::Nested)?;
                Call::Send(Box::new(model::Send { history: limit(send.history), ..*send }))
            }
            Operation::Get => read_task_request(params, strictness)?.get(),
            Operation::List => return Err(no_list()),
            Operation::Cancel => read_task_request(params, strictness)?.cancel(),
            Operation::Subscribe => read_task_request(params, strictness)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<CreateParams>(params)?.into_call()?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get()?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list()?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete()?),
            Operation::ExtendedCard => Call::ExtendedCard { agent: None },
        })
    }
}

impl V03Proto {
    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => {
                json::read::<Frame>(result)?.read(BIRTH, FinalFlag::WhenTrue)?
            }
            Operation::Get | Operation::Cancel => {
                PeerResponse::Task(Box::new(json::read::<Task>(result)?.read(BIRTH)?))
            }
            Operation::List => return Err(no_list()),
            Operation::PushSet | Operation::PushGet => {
                PeerResponse::PushConfig(Some(Box::new(json::read::<TaskPushConfig>(result)?.try_into()?)))
            }
            Operation::PushList => push_configs(json::read::<PushConfigs>(result)?.configs, "configs")?,
            Operation::PushDelete => PeerResponse::Empty,
            Operation::ExtendedCard => PeerResponse::Card(Box::new(read_card(result)?)),
        })
    }
}

fn read_task_request(params: &str, strictness: Strictness) -> Result<TaskRequest, Error> {
    let request: TaskRequest = match strictness {
        Strictness::Strict => json::read::<TaskParams>(params)?.try_into()?,
        Strictness::Complete | Strictness::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(TaskRequest { agent: None, history: limit(request.history), ..request })
}

/// In proto3 a number cannot be missing, so 0 means that there is no limit.
pub(crate) fn limit(history: Option<u32>) -> Option<u32> {
    history.filter(|length| *length != 0)
}
