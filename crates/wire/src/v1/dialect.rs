//! 1.0 as one of the dialects.

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
use crate::asked::Asked;
use crate::card::{CardFormat, read_card, write_card};
use crate::heard::Heard;
use crate::lenient::{self, DataForm};
use crate::spelling::{Problems, Several};
use crate::{Dialect, Operation, Reading, Shown, json};

pub struct V1;

pub(super) type Task<'a> = task::Task<'a, State1_0<'a>, Message<'a>, Part<'a>>;
type Frame<'a> = frame::Frame<'a, State1_0<'a>, Message<'a>, Part<'a>>;

pub(super) const BIRTH: Birth = Birth(10);

impl Dialect for V1 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn slot(&self) -> usize {
        0
    }

    fn decode(&self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, reading)?,
            Operation::Get => read_asked(params, reading)?.get(),
            Operation::List => Call::List(json::read::<ListParams>(params)?.try_into()?),
            Operation::Cancel => read_asked(params, reading)?.cancel(),
            Operation::Subscribe => read_asked(params, reading)?.subscribe(OnFinishedSubscribe::Refuse),
            Operation::PushSet => Call::Push(json::read::<PushConfig>(params)?.into_call()?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get()?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list()?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete()?),
            Operation::ExtendedCard => json::read::<ExtendedCardParams>(params)?.try_into()?,
        })
    }

    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match shown {
            Shown::Task(task) => json::write(&Task::from(task), out),
            Shown::Sent(task) | Shown::Snapshot(task) => json::write(&Frame::task(task), out),
            Shown::Reply(message) => json::write(&Frame::message(message), out),
            Shown::Page(page) => json::write(&Page::from(page), out),
            Shown::Event { task, context, event } => {
                json::write(&Frame::event(task, context, event, FinalFlag::None), out)
            }
            Shown::End { task, event } => {
                json::write(&Frame::event(&task.id, &task.context, event, FinalFlag::None), out)
            }
            Shown::PushConfig(config) => json::write(&PushConfig::from(config), out),
            Shown::PushConfigs(configs) => json::write(&PushConfigs { configs: Several::Ours(configs) }, out),
            Shown::Card(card) => write_card(card, CardFormat::V1, out),
        }
    }
}

impl V1 {
    /// Reads what a peer answered to an operation, or one frame of its stream.
    pub fn hear(&self, operation: Operation, result: &str) -> Result<Heard, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => {
                json::read::<Frame>(result)?.read(BIRTH, FinalFlag::None)?
            }
            Operation::Get | Operation::Cancel => Heard::Task(Box::new(json::read::<Task>(result)?.read(BIRTH)?)),
            Operation::List => json::read::<Page>(result)?.try_into()?,
            Operation::PushSet | Operation::PushGet => {
                Heard::PushConfig(Some(Box::new(json::read::<PushConfig>(result)?.try_into()?)))
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
    let call = match reading {
        Reading::Strict => json::read::<SendParams<Message>>(params)?
            .into_call(operation, reading, |message| model::Message::try_from(message).map(Into::into)),
        Reading::Complete | Reading::Lenient => {
            json::read::<SendParams<lenient::Message>>(params)?
                .into_call(operation, reading, |message| message.read(DataForm::Any, reading))
        }
    };
    Ok(call?)
}

fn read_asked(params: &str, reading: Reading) -> Result<Asked, Error> {
    Ok(match reading {
        Reading::Strict => json::read::<TaskParams>(params)?.try_into()?,
        Reading::Complete | Reading::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    })
}
