//! The dialect of 1.0.

use sabir_model as model;
use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::frame::{self, FinalFlag};
use super::list::{ListParams, Page};
use super::message::Message;
use super::names::State1_0;
use super::part::Part;
use super::push::{PushConfig, PushConfigs, PushParams};
use super::send::SendParams;
use super::task;
use super::task_id::{ExtendedCardParams, TaskParams};
use crate::card::{CardFormat, read_card, write_card};
use crate::lenient::{self, DataEncoding};
use crate::peer_response::{PeerResponse, push_configs};
use crate::task_request::TaskRequest;
use crate::wire_types::WireList;
use crate::{Dialect, JsonDialect, Operation, Payload, PushMembers, Strictness, json};

pub struct V1;

pub(super) type Task<'a> = task::Task<'a, State1_0<'a>, Message<'a>, Part<'a>>;
type Frame<'a> = frame::Frame<'a, State1_0<'a>, Message<'a>, Part<'a>>;

pub(crate) const BIRTH: Birth = Birth(10);

impl Dialect for V1 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        PushMembers { send: "configuration.taskPushNotificationConfig.", set: "" }
    }

    fn slot(&self) -> usize {
        0
    }

    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) => json::write(&Task::from(task), out),
            Payload::SendResult(task) | Payload::Snapshot(task) => json::write(&Frame::task(task), out),
            Payload::Message(message) => json::write(&Frame::message(message), out),
            Payload::Page(page) => json::write(&Page::from(page), out),
            Payload::Event { task, context, event } => {
                json::write(&Frame::event(task, context, event, FinalFlag::None), out)
            }
            Payload::FinalEvent { task, event } => {
                json::write(&Frame::event(&task.id, &task.context, event, FinalFlag::None), out)
            }
            Payload::PushConfig(config) => json::write(&PushConfig::from(config), out),
            Payload::PushConfigs(configs) => json::write(&PushConfigs { configs: WireList::Model(configs) }, out),
            Payload::Card(card) => write_card(card, CardFormat::V1, out),
        }
    }
}

impl JsonDialect for V1 {
    fn decode(&self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, strictness)?,
            Operation::Get => read_task_request(params, strictness)?.get(),
            Operation::List => Call::List(json::read::<ListParams>(params)?.try_into()?),
            Operation::Cancel => read_task_request(params, strictness)?.cancel(),
            Operation::Subscribe => read_task_request(params, strictness)?.subscribe(OnFinishedSubscribe::Refuse),
            Operation::PushSet => Call::Push(json::read::<PushConfig>(params)?.into_call()?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get()?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list()?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete()?),
            Operation::ExtendedCard => json::read::<ExtendedCardParams>(params)?.try_into()?,
        })
    }
}

impl V1 {
    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => {
                json::read::<Frame>(result)?.read(BIRTH, FinalFlag::None)?
            }
            Operation::Get | Operation::Cancel => {
                PeerResponse::Task(Box::new(json::read::<Task>(result)?.read(BIRTH)?))
            }
            Operation::List => json::read::<Page>(result)?.try_into()?,
            Operation::PushSet | Operation::PushGet => {
                PeerResponse::PushConfig(Some(Box::new(json::read::<PushConfig>(result)?.try_into()?)))
            }
            Operation::PushList => push_configs(json::read::<PushConfigs>(result)?.configs, "configs")?,
            Operation::PushDelete => PeerResponse::Empty,
            Operation::ExtendedCard => PeerResponse::Card(Box::new(read_card(result)?)),
        })
    }
}

fn read_send(operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
    let call = match strictness {
        Strictness::Strict => json::read::<SendParams<Message>>(params)?
            .into_call(operation, strictness, |message| model::Message::try_from(message).map(Into::into)),
        Strictness::Complete | Strictness::Lenient => {
            json::read::<SendParams<lenient::Message>>(params)?
                .into_call(operation, strictness, |message| message.read(DataEncoding::Any, strictness))
        }
    };
    Ok(call?)
}

fn read_task_request(params: &str, strictness: Strictness) -> Result<TaskRequest, Error> {
    Ok(match strictness {
        Strictness::Strict => json::read::<TaskParams>(params)?.try_into()?,
        Strictness::Complete | Strictness::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    })
}
