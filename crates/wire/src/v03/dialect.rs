//! 0.3's kind-JSON as one of the dialects.

use sabir_model as model;
use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::frame::{read_frame, write_event};
use super::message::Message;
use super::push::{PushParams, TaskPushConfig};
use super::send::{SendParams, Unsaid};
use super::task::Task;
use crate::asked::Asked;
use crate::card::{CardFormat, read_card, write_card};
use crate::heard::Heard;
use crate::lenient::{self, DataForm};
use crate::spelling::{Problems, Several};
use crate::{Dialect, Operation, Reading, Shown, json, v1};

pub struct V03;

pub(super) const BIRTH: Birth = Birth(3);

impl Dialect for V03 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn slot(&self) -> usize {
        1
    }

    fn decode(&self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, reading)?,
            Operation::Get => read_asked(params, reading)?.get(),
            Operation::List => return Err(no_list()),
            Operation::Cancel => read_asked(params, reading)?.cancel(),
            Operation::Subscribe => read_asked(params, reading)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<PushParams>(params)?.into_set(reading)?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get(reading)?),
            Operation::PushList => Call::Push(json::read::<PushParams>(params)?.into_list(reading)?),
            Operation::PushDelete => Call::Push(json::read::<PushParams>(params)?.into_delete(reading)?),
            Operation::ExtendedCard => Call::ExtendedCard { agent: None },
        })
    }

    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match shown {
            Shown::Task(task) | Shown::Sent(task) | Shown::Snapshot(task) => json::write(&Task::from(task), out),
            Shown::Reply(message) => json::write(&Message::from(message), out),
            Shown::Page(page) => json::write(&Several::<Task, _>::Ours(&page.tasks), out),
            Shown::Event { task, context, event } => write_event(task, context, event, out),
            Shown::End { task, event } => write_event(&task.id, &task.context, event, out),
            Shown::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Shown::PushConfigs(configs) => json::write(&Several::<TaskPushConfig, _>::Ours(configs), out),
            Shown::Card(card) => write_card(card, CardFormat::V0_3, out),
        }
    }
}

impl V03 {
    /// Reads what a peer answered to an operation, or one frame of its stream.
    pub fn hear(&self, operation: Operation, result: &str) -> Result<Heard, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => read_frame(result)?,
            Operation::Get | Operation::Cancel => Heard::Task(Box::new(json::read::<Task>(result)?.try_into()?)),
            Operation::List => return Err(no_list()),
            Operation::PushSet | Operation::PushGet => {
                let config = json::read::<Option<TaskPushConfig>>(result)?.map(TryInto::try_into).transpose()?;
                Heard::PushConfig(config.map(Box::new))
            }
            Operation::PushList => {
                let mut problems = Problems::default();
                let configs = json::read::<Several<TaskPushConfig, ()>>(result)?;
                let configs = configs.read_each("", &mut problems, TryInto::try_into);
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
            json::read::<SendParams<Message>>(params)?.into_send(operation, Unsaid::IsOpen, reading, |message| {
                model::Message::try_from(message).map(Into::into)
            })
        }
        Reading::Complete | Reading::Lenient => json::read::<SendParams<lenient::Message>>(params)?.into_send(
            operation,
            Unsaid::IsOpen,
            reading,
            |message| message.read(DataForm::Object, reading),
        ),
    };
    Ok(Call::Send(send?))
}

/// 0.3 has no tenants, so a member of that name means nothing.
fn read_asked(params: &str, reading: Reading) -> Result<Asked, Error> {
    let asked: Asked = match reading {
        Reading::Strict => json::read::<v1::TaskParams>(params)?.try_into()?,
        Reading::Complete | Reading::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(Asked { agent: None, ..asked })
}

/// 0.3 lists tasks in no binding that anybody serves.
pub(super) fn no_list() -> Error {
    Error::MethodNotFound("tasks/list".to_owned())
}
