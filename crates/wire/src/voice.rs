//! How one request is answered: in which dialect, in which envelope, to which id.
//!
//! A voice is chosen while the request is read and gets more exact as more of it is known, so that there is
//! one for every refusal on the way. It writes envelope and payload into one buffer; nothing is copied twice.

mod frame;
mod parts;

use std::borrow::Cow;

use sabir_model::{Answer, Birth, Error, Task};

pub(crate) use frame::Frames;
pub use frame::{EVENT_STREAM, KEEP_ALIVE};
pub use parts::{Envelope, Spelling, TaskForm, TaskReply};

use crate::errors::{self, GatewayError, RpcError};
use crate::gateway;
use crate::http_json::EndpointGroup;
use crate::version::Requested;
use crate::{Dialect, Operation, ProtocolVersion, Shown, json, v01::V01, v1::V1};

/// What the server sends when there is no more to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// `Allow`, for a verb that the path does not take.
    pub allow: Option<&'static str>,
    pub body: Vec<u8>,
}

#[derive(Clone)]
pub struct Voice<'a> {
    dialect: &'static dyn Dialect,
    choice: Choice,
    manner: Manner<'a>,
    operation: Option<Operation>,
}

/// Who says in which dialect a task is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// The caller, by what it calls or by the version it names.
    Caller,
    /// Nobody has: a task that was born in 0.1 is answered there.
    Birth,
}

#[derive(Clone)]
enum Manner<'a> {
    /// `id` is JSON, as the caller wrote it.
    JsonRpc {
        id: Cow<'a, str>,
        version: ProtocolVersion,
        frames: Frames,
    },
    HttpJson(EndpointGroup),
    Gateway(gateway::Asked),
}

impl<'a> Voice<'a> {
    /// Before anything of the body is known.
    pub(crate) fn json_rpc(version: ProtocolVersion, frames: Frames) -> Self {
        let manner = Manner::JsonRpc { id: Cow::Borrowed("null"), version, frames };
        Self { dialect: version.json_rpc_dialect(), choice: Choice::Caller, manner, operation: None }
    }

    pub(crate) fn http_json(group: EndpointGroup, operation: Option<Operation>) -> Self {
        Self { dialect: group.dialect(), choice: Choice::Caller, manner: Manner::HttpJson(group), operation }
    }

    pub(crate) fn gateway(asked: gateway::Asked) -> Self {
        let operation = match asked {
            gateway::Asked::Send | gateway::Asked::Decide(_) => Operation::Send,
            gateway::Asked::Task(_) => Operation::Get,
            gateway::Asked::Cancel(_) => Operation::Cancel,
        };
        let manner = Manner::Gateway(asked);
        Self { dialect: &V1, choice: Choice::Caller, manner, operation: Some(operation) }
    }

    /// To this request.
    pub(crate) fn answering(&mut self, request: &'a str) {
        if let Manner::JsonRpc { id, .. } = &mut self.manner {
            *id = Cow::Borrowed(request);
        }
    }

    /// About this operation.
    pub(crate) fn about(&mut self, named: ProtocolVersion, about: Operation) {
        self.operation = Some(about);
        if let Manner::JsonRpc { version, .. } = &mut self.manner {
            *version = named;
        }
    }

    pub(crate) fn speaking(&mut self, spoken: ProtocolVersion) {
        self.dialect = spoken.json_rpc_dialect();
        if let Manner::JsonRpc { version, .. } = &mut self.manner {
            *version = spoken;
        }
    }

    /// About something that 0.1, 0.2 and 0.3 ask for alike.
    pub(crate) fn sharing(&mut self, asked: Requested) {
        match asked {
            Requested::Nothing => self.choice = Choice::Birth,
            Requested::Version(ProtocolVersion::V0_1) => self.speaking(ProtocolVersion::V0_1),
            Requested::Version(_) | Requested::Unsupported => {}
        }
    }

    /// About a task that was born there.
    pub fn settle(&mut self, born: Birth) {
        if self.choice == Choice::Birth && born == V01.birth() {
            self.speaking(ProtocolVersion::V0_1);
        }
        self.choice = Choice::Caller;
    }

    /// A stream outlives the body that its request came in.
    pub fn into_owned(self) -> Voice<'static> {
        let manner = match self.manner {
            Manner::JsonRpc { id, version, frames } => {
                Manner::JsonRpc { id: Cow::Owned(id.into_owned()), version, frames }
            }
            Manner::HttpJson(group) => Manner::HttpJson(group),
            Manner::Gateway(asked) => Manner::Gateway(asked),
        };
        Voice { dialect: self.dialect, choice: self.choice, manner, operation: self.operation }
    }

    /// An answer that is complete. A method that streams gives it as the one frame of its stream.
    pub fn answer<S>(&self, answer: &Answer<S>) -> Reply {
        if let Manner::Gateway(asked) = &self.manner {
            return self.gateway_answer(asked, answer);
        }
        let streams = self.operation.is_some_and(Operation::is_streaming);
        let (dialect, shown) = match answer {
            Answer::Task(task) if streams => return self.only_frame(|out| self.snapshot(task, out)),
            Answer::Message(message) if streams => return self.only_frame(|out| self.reply_frame(message, out)),
            Answer::Task(task) if self.operation == Some(Operation::Send) => (self.dialect, Shown::Sent(task)),
            Answer::Task(task) => (self.spelling(task), Shown::Task(task)),
            // Only the gateway asks for the conversation, or sends several answers.
            Answer::Conversation(task, _) | Answer::Answered(task, _) => (self.spelling(task), Shown::Task(task)),
            Answer::Message(message) => (self.dialect, Shown::Reply(message)),
            Answer::Page(page) => (self.dialect, Shown::Page(page)),
            Answer::PushConfig(Some(config)) => (self.dialect, Shown::PushConfig(config)),
            Answer::PushConfigs(configs) => (self.dialect, Shown::PushConfigs(configs)),
            Answer::PushConfig(None) | Answer::Done => return self.nothing(),
            Answer::Stream(_) => return self.error(&Error::internal("a stream is answered with frames")),
        };
        let mut body = Vec::with_capacity(512);
        self.open(&mut body);
        dialect.encode(shown, &mut body);
        self.close(&mut body);
        self.fine(body)
    }

    fn gateway_answer<S>(&self, asked: &gateway::Asked, answer: &Answer<S>) -> Reply {
        let mut body = Vec::with_capacity(512);
        match gateway::write_answer(asked, answer, &mut body) {
            Ok(status) => Reply { status, ..self.fine(body) },
            Err(error) => self.error(&error),
        }
    }

    /// An error instead of an answer. In 0.x the clients of streaming methods can read nothing but a stream.
    pub fn error(&self, error: &Error) -> Reply {
        let mut body = Vec::with_capacity(256);
        let (status, content_type) = match &self.manner {
            Manner::JsonRpc { version, .. }
                if version.is_0_x() && self.operation.is_some_and(Operation::is_streaming) =>
            {
                self.error_frame(error, &mut body);
                (errors::rpc_status(error), EVENT_STREAM)
            }
            Manner::JsonRpc { .. } => {
                self.error_body(error, Frames::Enveloped, &mut body);
                (errors::rpc_status(error), "application/json")
            }
            Manner::HttpJson(group) => {
                self.error_body(error, Frames::Enveloped, &mut body);
                (group.error_status(error), group.error_content_type())
            }
            Manner::Gateway(_) => {
                self.error_body(error, Frames::Enveloped, &mut body);
                (errors::gateway_status(error), "application/json")
            }
        };
        Reply { status, content_type, retry_after: errors::retry_after(error), allow: None, body }
    }

    /// The dialect of an answer about a task.
    fn spelling(&self, task: &Task) -> &'static dyn Dialect {
        match self.choice {
            Choice::Birth if task.born == V01.birth() => &V01,
            Choice::Birth | Choice::Caller => self.dialect,
        }
    }

    /// Done, and there is nothing to show.
    fn nothing(&self) -> Reply {
        let body = match &self.manner {
            Manner::JsonRpc { .. } => {
                let mut body = Vec::with_capacity(64);
                self.open(&mut body);
                body.extend_from_slice(b"null");
                self.close(&mut body);
                body
            }
            // An empty body would break clients that decode every answer.
            Manner::HttpJson(_) | Manner::Gateway(_) => b"{}".to_vec(),
        };
        self.fine(body)
    }

    fn fine(&self, body: Vec<u8>) -> Reply {
        let content_type = match &self.manner {
            Manner::JsonRpc { .. } | Manner::Gateway(_) => "application/json",
            Manner::HttpJson(group) => group.content_type(),
        };
        Reply { status: 200, content_type, retry_after: None, allow: None, body }
    }

    fn error_body(&self, error: &Error, frames: Frames, out: &mut Vec<u8>) {
        match &self.manner {
            Manner::JsonRpc { id, version, .. } => {
                match frames {
                    Frames::Enveloped => {
                        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                        out.extend_from_slice(id.as_bytes());
                        out.extend_from_slice(b",\"error\":");
                    }
                    Frames::Bare => out.extend_from_slice(b"{\"error\":"),
                }
                json::write(&RpcError { error, version: *version, operation: self.operation }, out);
                out.push(b'}');
            }
            Manner::HttpJson(group) => group.write_error(error, self.operation, out),
            Manner::Gateway(_) => json::write(&GatewayError(error), out),
        }
    }

    fn open(&self, out: &mut Vec<u8>) {
        if let Manner::JsonRpc { id, .. } = &self.manner {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(b",\"result\":");
        }
    }

    fn close(&self, out: &mut Vec<u8>) {
        if let Manner::JsonRpc { .. } = &self.manner {
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests;
