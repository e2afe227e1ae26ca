//! The dialect of 0.3 over gRPC: protobuf.

use sabir_model::{Birth, Call, Error, Task};
use sabir_proto::v03;
use sabir_proto::v03::stream_response::Payload as Frame;

use super::super::dialect::{BIRTH, no_list};
use super::super::proto::{TaskPushConfig, V03Proto};
use super::call::read_call;
use super::card::{read_card, write_card};
use super::frame::{read_frame, write_event};
use super::message::write_message;
use super::push::write_task_config;
use super::request::write_call;
use super::task::{read_task, write_task};
use super::unrepresentable::unrepresentable;
use crate::peer::PeerCall;
use crate::peer_response::{PeerResponse, push_configs};
use crate::protobuf::{read_message, write_message as write};
use crate::wire_types::WireList;
use crate::{Dialect, Operation, Payload, PushMembers};

pub struct V03Protobuf;

impl Dialect for V03Protobuf {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        V03Proto.push_members()
    }

    fn slot(&self) -> usize {
        5
    }

    /// The result of a send is a `SendMessageResponse`, a frame of a stream a `StreamResponse`. A task has the number 1 and
    /// a message the number 2 in both, so a frame serves as either.
    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) => write(&write_task(task), out),
            Payload::SendResult(task) | Payload::Snapshot(task) => write_frame(Frame::Task(write_task(task)), out),
            Payload::Message(message) => write_frame(Frame::Msg(write_message(Some(&message.id), message)), out),
            // 0.3 has no message for a list of tasks, and nobody can ask for one: `decode` refuses it.
            Payload::Page(_) => {}
            Payload::Event { task, context, event } => write_frame(write_event(task, context, event), out),
            Payload::FinalEvent { task, event } => write_frame(write_event(&task.id, &task.context, event), out),
            Payload::PushConfig(config) => write(&write_task_config(config), out),
            Payload::PushConfigs(configs) => {
                let configs = configs.iter().map(write_task_config).collect();
                write(&v03::ListTaskPushNotificationConfigResponse { configs, next_page_token: String::new() }, out);
            }
            Payload::Card(card) => write(&write_card(card), out),
        }
    }

    fn is_text(&self) -> bool {
        false
    }

    fn unrepresentable(&self, task: &Task) -> Option<String> {
        unrepresentable(task)
    }
}

impl V03Protobuf {
    /// Reads the message of a call.
    pub fn decode(&self, operation: Operation, message: &[u8]) -> Result<Call, Error> {
        read_call(operation, message)
    }

    /// Writes the message of a call to another server. An error says what this version has no words for.
    pub(crate) fn write_call(&self, peer: &PeerCall<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        write_call(peer, out)
    }

    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, message: &[u8]) -> Result<PeerResponse, Error> {
        Ok(match operation {
            // The result of a send is one of the frames.
            Operation::Send | Operation::Stream | Operation::Subscribe => read_frame(read_message(message)?)?,
            Operation::Get | Operation::Cancel => PeerResponse::Task(Box::new(read_task(read_message(message)?)?)),
            Operation::List => return Err(no_list()),
            Operation::PushSet | Operation::PushGet => {
                let config: TaskPushConfig = read_message::<v03::TaskPushNotificationConfig>(message)?.into();
                PeerResponse::PushConfig(Some(Box::new(config.try_into()?)))
            }
            Operation::PushList => {
                let list: v03::ListTaskPushNotificationConfigResponse = read_message(message)?;
                let configs = list.configs.into_iter().map(TaskPushConfig::from).collect();
                push_configs(WireList::<_, ()>::Wire(configs), "configs")?
            }
            Operation::PushDelete => {
                read_message::<()>(message)?;
                PeerResponse::Empty
            }
            Operation::ExtendedCard => PeerResponse::Card(Box::new(read_card(read_message(message)?)?)),
        })
    }
}

fn write_frame(payload: Frame, out: &mut Vec<u8>) {
    write(&v03::StreamResponse { payload: Some(payload) }, out);
}
