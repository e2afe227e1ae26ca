//! How one request is answered: in which dialect, and in which envelope.
//!
//! Every request gets a responder, also one that is refused early: it is built from what is known of the request at
//! that point. A responder writes envelope and payload into one buffer, so nothing is copied twice.

mod envelope;
mod frame;
mod origin;
mod shared;

use sabir_model::{Answer, Birth, Error, Task, Violation};

pub(crate) use envelope::{Envelope, FrameFormat, JsonRpcEnvelope};
pub use frame::EVENT_STREAM;
pub use shared::{SplitTaskReply, TaskEncoder, TaskShape, Wrapper};

use crate::errors;
use crate::gateway::{self, GatewayOperation};
use crate::grpc::{self, GrpcStatus};
use crate::http_json::EndpointGroup;
use crate::jsonrpc::method_name;
use crate::{Dialect, Operation, Payload, ProtocolVersion, v01::V01, v1::V1};

/// How the engine begins the names of members of a webhook's config.
const CONFIG_OF_ENGINE: &str = "pushNotificationConfig.";

/// A complete HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// `Allow`, for a verb that the path does not take.
    pub allow: Option<&'static str>,
    /// What gRPC has behind the body.
    pub grpc_status: Option<GrpcStatus>,
    pub body: Vec<u8>,
}

#[derive(Clone)]
pub struct Responder<'a> {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) task_dialect: TaskDialect,
    pub(crate) envelope: Envelope<'a>,
    /// `None`: not known, or not an operation at all.
    pub(crate) operation: Option<Operation>,
}

/// Which dialect an answer about a task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskDialect {
    /// The dialect of the request.
    OfRequest,
    /// The request is the same in 0.1, 0.2 and 0.3, and names no version: a task that was created in 0.1 is answered
    /// in 0.1, any other task in the dialect of the request.
    OfBirth,
}

impl<'a> Responder<'a> {
    pub(crate) fn json_rpc(
        envelope: JsonRpcEnvelope<'a>,
        operation: Option<Operation>,
        task_dialect: TaskDialect,
    ) -> Self {
        let dialect = envelope.version.json_rpc_dialect();
        Self { dialect, task_dialect, envelope: Envelope::JsonRpc(envelope), operation }
    }

    pub(crate) fn http_json(group: EndpointGroup, operation: Option<Operation>) -> Self {
        let envelope = Envelope::HttpJson(group);
        Self { dialect: group.dialect(), task_dialect: TaskDialect::OfRequest, envelope, operation }
    }

    pub(crate) fn grpc(version: ProtocolVersion, operation: Option<Operation>) -> Self {
        let envelope = Envelope::Grpc(version);
        Self { dialect: grpc::dialect(version), task_dialect: TaskDialect::OfRequest, envelope, operation }
    }

    pub(crate) fn gateway(gateway_operation: GatewayOperation) -> Self {
        let operation = match gateway_operation {
            GatewayOperation::Send | GatewayOperation::Decide(_) => Operation::Send,
            GatewayOperation::Get(_) => Operation::Get,
            GatewayOperation::Cancel(_) => Operation::Cancel,
        };
        let envelope = Envelope::Gateway(gateway_operation);
        Self { dialect: &V1, task_dialect: TaskDialect::OfRequest, envelope, operation: Some(operation) }
    }

    /// The responder for a stream about a task that was created in this dialect.
    pub fn for_birth(self, born: Birth) -> Self {
        let is_0_1 = self.task_dialect == TaskDialect::OfBirth && born == V01.birth();
        let responder = Self { task_dialect: TaskDialect::OfRequest, ..self };
        match responder.envelope {
            Envelope::JsonRpc(envelope) if is_0_1 => Self {
                dialect: &V01,
                envelope: Envelope::JsonRpc(JsonRpcEnvelope { version: ProtocolVersion::V0_1, ..envelope }),
                ..responder
            },
            _ if is_0_1 => Self { dialect: &V01, ..responder },
            _ => responder,
        }
    }

    /// The name that 1.0 has for the operation, whatever the version of the request. `None`: it is not known, since the
    /// request could not be read so far.
    pub fn operation_name(&self) -> Option<&'static str> {
        method_name(ProtocolVersion::V1_0, self.operation?)
    }

    /// The version of the request. `None`: the gateway, which is no version of A2A.
    pub fn version(&self) -> Option<ProtocolVersion> {
        match &self.envelope {
            Envelope::JsonRpc(envelope) => Some(envelope.version),
            Envelope::HttpJson(group) => Some(group.version()),
            Envelope::Grpc(version) => Some(*version),
            Envelope::Gateway(_) => None,
        }
    }

    /// How the request came here, as cards name it; `GATEWAY` is ours.
    pub fn binding_name(&self) -> &'static str {
        match &self.envelope {
            Envelope::JsonRpc(_) => "JSONRPC",
            Envelope::HttpJson(_) => "HTTP+JSON",
            Envelope::Grpc(_) => "GRPC",
            Envelope::Gateway(_) => "GATEWAY",
        }
    }

    /// For a stream, which outlives the body of its request.
    pub fn into_owned(self) -> Responder<'static> {
        Responder {
            dialect: self.dialect,
            task_dialect: self.task_dialect,
            envelope: self.envelope.into_owned(),
            operation: self.operation,
        }
    }

    /// The reply with a complete answer. An operation that streams gets it as the only frame of its stream.
    pub fn reply<S>(&self, answer: &Answer<S>) -> Reply {
        if let Envelope::Gateway(operation) = &self.envelope {
            return self.gateway_reply(operation, answer);
        }
        let (dialect, payload) = match answer {
            Answer::Task(task) if self.is_streaming() => {
                return self.only_frame(|out| self.write_snapshot_frame(task, out));
            }
            Answer::Message(message) if self.is_streaming() => {
                return self.only_frame(|out| self.write_message_frame(message, out));
            }
            Answer::Task(task) if self.operation == Some(Operation::Send) => (self.dialect, Payload::SendResult(task)),
            Answer::Task(task) => (self.dialect_for(task), Payload::Task(task)),
            // Only the gateway asks for the conversation, or sends several answers.
            Answer::Conversation(task, _) | Answer::Answered(task, _) => (self.dialect_for(task), Payload::Task(task)),
            Answer::Message(message) => (self.dialect, Payload::Message(message)),
            Answer::Page(page) => (self.dialect, Payload::Page(page)),
            Answer::PushConfig(Some(config)) => (self.dialect, Payload::PushConfig(config)),
            Answer::PushConfigs(configs) => (self.dialect, Payload::PushConfigs(configs)),
            Answer::Card(card) => (self.dialect, Payload::Card(card)),
            Answer::PushConfig(None) | Answer::Done => return self.empty_reply(),
            Answer::Stream(_) => return self.error_reply(&Error::internal("a stream is answered with frames")),
        };
        let mut body = Vec::with_capacity(512);
        self.envelope.write_start(&mut body);
        dialect.encode(payload, &mut body);
        self.envelope.write_end(0, &mut body);
        self.ok(body)
    }

    /// Whether the answer fits into this binding. What has been done is shown as far as it fits; who only asks for a task is
    /// told that some of it does not.
    pub fn check_fit<S>(&self, answer: &Answer<S>) -> Result<(), Error> {
        let (Answer::Task(task), Some(Operation::Get)) = (answer, self.operation) else { return Ok(()) };
        match self.dialect_for(task).unrepresentable(task) {
            Some(what) => {
                let why = format!("gRPC has no form for {what}; JSON-RPC and HTTP+JSON show the whole task");
                Err(Error::Unrepresentable(why))
            }
            None => Ok(()),
        }
    }

    /// What stands behind the last message of a stream. `None`: the binding has nothing there.
    pub fn end_status(&self, error: Option<&Error>) -> Option<GrpcStatus> {
        self.envelope.end_status(error, self.operation)
    }

    fn gateway_reply<S>(&self, operation: &GatewayOperation, answer: &Answer<S>) -> Reply {
        let mut body = Vec::with_capacity(512);
        match gateway::write_answer(operation, answer, &mut body) {
            Ok(status) => Reply { status, ..self.ok(body) },
            Err(error) => self.error_reply(&error),
        }
    }

    /// The reply with an error. Clients of streaming methods in 0.x can read nothing but a stream.
    pub fn error_reply(&self, error: &Error) -> Reply {
        let renamed = self.with_names_of_dialect(error);
        let error = renamed.as_ref().unwrap_or(error);
        let mut body = Vec::with_capacity(256);
        let (status, content_type) = match &self.envelope {
            Envelope::JsonRpc(envelope) if envelope.version.is_0_x() && self.is_streaming() => {
                self.write_error_frame(error, &mut body);
                (errors::rpc_status(error), EVENT_STREAM)
            }
            envelope => {
                envelope.write_error(error, self.operation, FrameFormat::Enveloped, &mut body);
                (envelope.error_status(error), envelope.error_content_type())
            }
        };
        let grpc_status = self.end_status(Some(error));
        Reply { status, content_type, retry_after: errors::retry_after(error), allow: None, grpc_status, body }
    }

    /// The same error, if the engine refuses members of a webhook's config: it does not know what they are called here.
    fn with_names_of_dialect(&self, error: &Error) -> Option<Error> {
        let members = self.dialect.push_members();
        let prefix = match self.operation? {
            Operation::Send | Operation::Stream => members.send,
            Operation::PushSet => members.set,
            _ => return None,
        };
        let Error::Invalid(violations) = error else { return None };
        let rename = |violation: &Violation| match violation.field.strip_prefix(CONFIG_OF_ENGINE) {
            Some(member) => Violation { field: format!("{prefix}{member}"), ..violation.clone() },
            None => violation.clone(),
        };
        Some(Error::Invalid(violations.iter().map(rename).collect()))
    }

    /// The reply where the operation is done and there is nothing to show.
    fn empty_reply(&self) -> Reply {
        let body = match &self.envelope {
            Envelope::JsonRpc(_) => {
                let mut body = Vec::with_capacity(64);
                self.envelope.write_start(&mut body);
                body.extend_from_slice(b"null");
                self.envelope.write_end(0, &mut body);
                body
            }
            Envelope::Grpc(_) => self.envelope.wrapper(0).before,
            // Some clients decode every answer as JSON, and an empty body would break them.
            Envelope::HttpJson(_) | Envelope::Gateway(_) => b"{}".to_vec(),
        };
        self.ok(body)
    }

    fn ok(&self, body: Vec<u8>) -> Reply {
        let (content_type, grpc_status) = (self.envelope.content_type(), self.end_status(None));
        Reply { status: 200, content_type, retry_after: None, allow: None, grpc_status, body }
    }

    fn is_streaming(&self) -> bool {
        self.operation.is_some_and(Operation::is_streaming)
    }

    /// The dialect of an answer about this task.
    fn dialect_for(&self, task: &Task) -> &'static dyn Dialect {
        match self.task_dialect {
            TaskDialect::OfBirth if task.born == V01.birth() => &V01,
            TaskDialect::OfBirth | TaskDialect::OfRequest => self.dialect,
        }
    }
}

#[cfg(test)]
mod tests;
