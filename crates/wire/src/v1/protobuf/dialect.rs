//! The dialect of 1.0 over gRPC.

use sabir_model::{Birth, Call, Error, Task};

use super::call::read_call;
use super::card::{read_card, write_card};
use super::frame::{read_frame, write_event, write_message_frame, write_task_frame};
use super::list::{read_page, write_page};
use super::push::{read_config, read_configs, write_config, write_configs};
use super::request::write_call;
use super::task::{read_task, write_task};
use super::unrepresentable::first_in_task;
use crate::peer::PeerCall;
use crate::peer_response::PeerResponse;
use crate::protobuf::{read_message, write_message};
use crate::v1::{BIRTH, V1};
use crate::{Dialect, Operation, Payload, PushMembers};

pub struct V1Protobuf;

impl Dialect for V1Protobuf {
    fn birth(&self) -> Birth {
        BIRTH
    }

    fn push_members(&self) -> PushMembers {
        V1.push_members()
    }

    fn slot(&self) -> usize {
        4
    }

    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>) {
        match payload {
            Payload::Task(task) => write_message(&write_task(task), out),
            Payload::SendResult(task) | Payload::Snapshot(task) => write_message(&write_task_frame(task), out),
            Payload::Message(message) => write_message(&write_message_frame(message), out),
            Payload::Page(page) => write_page(page, out),
            Payload::Event { task, context, event } => write_message(&write_event(task, context, event), out),
            Payload::FinalEvent { task, event } => write_message(&write_event(&task.id, &task.context, event), out),
            Payload::PushConfig(config) => write_message(&write_config(config), out),
            Payload::PushConfigs(configs) => write_message(&write_configs(configs), out),
            Payload::Card(card) => write_message(&write_card(card), out),
        }
    }

    fn is_text(&self) -> bool {
        false
    }

    fn unrepresentable(&self, task: &Task) -> Option<String> {
        first_in_task(task)
    }
}

impl V1Protobuf {
    /// Reads the message of a call. What is outside the message (headers, behaviour by mount) keeps its default, and the
    /// binding sets it.
    pub fn decode(&self, operation: Operation, message: &[u8]) -> Result<Call, Error> {
        read_call(operation, message)
    }

    /// Appends the message of a call to another server.
    pub(crate) fn write_call(&self, peer: &PeerCall<'_>, out: &mut Vec<u8>) {
        write_call(peer, out);
    }

    /// Reads a peer's answer to an operation, or one frame of its stream.
    pub fn decode_response(&self, operation: Operation, message: &[u8]) -> Result<PeerResponse, Error> {
        Ok(match operation {
            Operation::Send | Operation::Stream | Operation::Subscribe => read_frame(read_message(message)?)?,
            Operation::Get | Operation::Cancel => PeerResponse::Task(Box::new(read_task(read_message(message)?)?)),
            Operation::List => read_page(read_message(message)?)?,
            Operation::PushSet | Operation::PushGet => {
                PeerResponse::PushConfig(Some(Box::new(read_config(read_message(message)?)?)))
            }
            Operation::PushList => read_configs(read_message(message)?)?,
            Operation::PushDelete => PeerResponse::Empty,
            Operation::ExtendedCard => PeerResponse::Card(Box::new(read_card(read_message(message)?)?)),
        })
    }
}
