//! 0.3's ProtoJSON as one of the dialects.

use sabir_model as model;
use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::super::dialect::no_list;
use super::super::send::{SendParams, Unsaid};
use super::message::Message;
use super::part::Part;
use super::push::{CreateParams, PushConfigs, PushParams, TaskPushConfig};
use super::state::ProtoState;
use super::task_id::TaskParams;
use crate::asked::Asked;
use crate::card::{CardFormat, read_card, write_card};
use crate::heard::Heard;
use crate::lenient::{self, DataForm};
use crate::spelling::{Problems, Several};
use crate::v1::{self, FinalFlag};
use crate::{Dialect, Operation, Reading, Shown, json};

pub struct V03Proto;

type Task<'a> = v1::Task<'a, ProtoState<'a>, Message<'a>, Part<'a>>;
type Frame<'a> = v1::Frame<'a, ProtoState<'a>, Message<'a>, Part<'a>>;

use super::super::dialect::BIRTH;

impl Dialect for V03Proto {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn slot(&self) -> usize {
        2
    }

    fn decode(&self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, reading)?,
            Operation::Get => read_asked(params, reading)?.get(),
            Operation::List => return Err(no_list()),
            Operation::Cancel => read_asked(params, reading)?.cancel(),
            Operation::Subscribe => read_asked(params, reading)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<CreateParams>(params)?.into_call()?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get()?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list()?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete()?),
            Operation::ExtendedCard => Call::ExtendedCard { agent: None },
        })
    }

    /// The card has no ProtoJSON of its own: the SDKs of this line answer it with the kind-JSON one.
    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match shown {
            Shown::Task(task) => json::write(&Task::from(task), out),
            Shown::Sent(task) | Shown::Snapshot(task) => json::write(&Frame::task(task), out),
            Shown::Reply(message) => json::write(&Frame::message(message), out),
            Shown::Page(page) => json::write(&Several::<Task, _>::Ours(&page.tasks), out),
            Shown::Event { task, context, event } => {
                json::write(&Frame::event(task, context, event, FinalFlag::WhenTrue), out)
            }
            Shown::End { task, event } => {
                json::write(&Frame::event(&task.id, &task.context, event, FinalFlag::WhenTrue), out)
            }
            Shown::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Shown::PushConfigs(configs) => json::write(&PushConfigs { configs: Several::Ours(configs) }, out),
            Shown::Card(card) => write_card(card, CardFormat::V0_3, out),
        }
    }
}

impl V03Proto {
    /// Reads what a peer answered to an operation, or one frame of its stream.
    pub fn hear(&self, operation: Operation, result: &str) -> Result<Heard, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => {
                json::read::<Frame>(result)?.read(BIRTH, FinalFlag::WhenTrue)?
            }
            Operation::Get | Operation::Cancel => Heard::Task(Box::new(json::read::<Task>(result)?.read(BIRTH)?)),
            Operation::List => return Err(no_list()),
            Operation::PushSet | Operation::PushGet => {
                Heard::PushConfig(Some(Box::new(json::read::<TaskPushConfig>(result)?.try_into()?)))
            }
            Operation::PushList => {
                let mut problems = Problems::default();
                let configs = json::read::<PushConfigs>(result)?.configs;
                let configs = configs.read_each("configs", &mut problems, TryInto::try_into);
                Heard::PushConfigs(problems.or(Some(configs))?)
            }
            Operation::PushDelete => Heard::Nothing,
            Operation::ExtendedCard => Heard::Card(Box::new(read_card(result)?)),
        })
    }
}

fn read_send(operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
    let send = match reading {
        Reading::Strict => {
            json::read::<SendParams<Message>>(params)?.into_send(operation, Unsaid::MeansFalse, reading, |message| {
                model::Message::try_from(message).map(Into::into)
            })
        }
        Reading::Complete | Reading::Lenient => json::read::<SendParams<lenient::Message>>(params)?.into_send(
            operation,
            Unsaid::MeansFalse,
            reading,
            |message| message.read(DataForm::Nested, reading),
        ),
    };
    let mut send = send?;
    send.history = limit(send.history);
    Ok(Call::Send(send))
}

fn read_asked(params: &str, reading: Reading) -> Result<Asked, Error> {
    let asked: Asked = match reading {
        Reading::Strict => json::read::<TaskParams>(params)?.try_into()?,
        Reading::Complete | Reading::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(Asked { agent: None, history: limit(asked.history), ..asked })
}

/// A number in proto3 cannot be unset, so 0 is.
fn limit(history: Option<u32>) -> Option<u32> {
    history.filter(|length| *length != 0)
}
