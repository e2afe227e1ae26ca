//! 0.1 as one of the dialects.

use sabir_model::{Birth, Call, Error, OnFinishedSubscribe};

use super::frame::Frame;
use super::message::Message;
use super::push::{PushParams, TaskPushConfig};
use super::send::SendParams;
use super::task::Task;
use crate::asked::Asked;
use crate::card::{CardFormat, write_card};
use crate::heard::Heard;
use crate::lenient::{self, DataForm};
use crate::spelling::Several;
use crate::{Dialect, Operation, Reading, Shown, json, v1};

pub struct V01;

pub(super) const BIRTH: Birth = Birth(1);

impl Dialect for V01 {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn slot(&self) -> usize {
        3
    }

    fn decode(&self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream => read_send(operation, params, reading)?,
            Operation::Get => read_asked(params, reading)?.get(),
            Operation::Cancel => read_asked(params, reading)?.cancel(),
            Operation::Subscribe => read_asked(params, reading)?.subscribe(OnFinishedSubscribe::ShowEnd),
            Operation::PushSet => Call::Push(json::read::<PushParams>(params)?.into_set(reading)?),
            Operation::PushGet => Call::Push(json::read::<PushParams>(params)?.into_get(reading)?),
            Operation::List | Operation::PushList | Operation::PushDelete | Operation::ExtendedCard => {
                return Err(unknown(operation));
            }
        })
    }

    fn ends_with_task(&self) -> bool {
        true
    }

    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match shown {
            Shown::Task(task) | Shown::Sent(task) => json::write(&Task::from(task), out),
            // Agents are asked for tasks here, so that there is none.
            Shown::Reply(message) => json::write(&Message::from(message), out),
            Shown::Page(page) => json::write(&Several::<Task, _>::Ours(&page.tasks), out),
            Shown::Snapshot(task) => json::write(&Frame::snapshot(task), out),
            Shown::Event { task, event, .. } => json::write(&Frame::event(task, event), out),
            Shown::End { task, event } => json::write(&Frame::end(task, event), out),
            Shown::PushConfig(config) => json::write(&TaskPushConfig::from(config), out),
            Shown::PushConfigs(configs) => json::write(&Several::<TaskPushConfig, _>::Ours(configs), out),
            Shown::Card(card) => write_card(card, CardFormat::V0_1, out),
        }
    }
}

impl V01 {
    /// Reads what a peer answered to an operation, or one frame of its stream.
    pub fn hear(&self, operation: Operation, result: &str) -> Result<Heard, Error> {
        Ok(match operation {
            Operation::Send | Operation::Get | Operation::Cancel => {
                Heard::Task(Box::new(json::read::<Task>(result)?.try_into()?))
            }
            Operation::Stream | Operation::Subscribe => json::read::<Frame>(result)?.try_into()?,
            Operation::PushSet | Operation::PushGet => {
                let config = json::read::<Option<TaskPushConfig>>(result)?;
                let config = config.map(TaskPushConfig::into_config).transpose()?.flatten();
                Heard::PushConfig(config.map(Box::new))
            }
            Operation::List | Operation::PushList | Operation::PushDelete | Operation::ExtendedCard => {
                return Err(unknown(operation));
            }
        })
    }
}

fn read_send(operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
    let send = match reading {
        Reading::Strict => json::read::<SendParams<Message>>(params)?.into_send(operation, reading, TryInto::try_into),
        // Messages have no ids in 0.1, so that none can be missing.
        Reading::Complete | Reading::Lenient => {
            json::read::<SendParams<lenient::Message>>(params)?
                .into_send(operation, reading, |message| message.read(DataForm::Object, Reading::Lenient))
        }
    };
    Ok(Call::Send(send?))
}

/// 0.1 has no tenants, so a member of that name means nothing.
fn read_asked(params: &str, reading: Reading) -> Result<Asked, Error> {
    let asked: Asked = match reading {
        Reading::Strict => json::read::<v1::TaskParams>(params)?.try_into()?,
        Reading::Complete | Reading::Lenient => json::read::<lenient::TaskParams>(params)?.try_into()?,
    };
    Ok(Asked { agent: None, ..asked })
}

/// What came with later versions.
fn unknown(operation: Operation) -> Error {
    let method = match operation {
        Operation::PushList => "tasks/pushNotification/list",
        Operation::PushDelete => "tasks/pushNotification/delete",
        Operation::ExtendedCard => "agent/getAuthenticatedExtendedCard",
        _ => "tasks/list",
    };
    Error::MethodNotFound(method.to_owned())
}
