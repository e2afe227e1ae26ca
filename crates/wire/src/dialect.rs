//! What a dialect is: it decodes calls and encodes answers, in the format of one version of the protocol.
//!
//! A dialect holds wire structs and conversions, no policy. It sees the message of one operation, whatever the binding;
//! headers, paths and envelopes belong to the bindings. Most dialects are JSON; those of gRPC are protobuf, and the gRPC
//! binding, the only one that has them, decodes with them directly.

use sabir_model::{Birth, Call, Card, ContextId, Error, Event, Message, Page, PushConfig, Task, TaskId};

pub trait Dialect: Sync {
    /// The dialect as a task stores it that is created in it.
    fn birth(&self) -> Birth;

    /// The place of this dialect in the list of an event's encodings: an event is encoded once per dialect and shared.
    fn slot(&self) -> usize;

    /// The names by which errors call the members of a webhook's config.
    fn push_members(&self) -> PushMembers;

    /// Whether the last event of a task is encoded with the whole task.
    fn final_event_needs_task(&self) -> bool {
        false
    }

    /// Writes one JSON value, or one protobuf message. What the format cannot hold is marked.
    fn encode(&self, payload: Payload<'_>, out: &mut Vec<u8>);

    /// Whether the payload is one line of text, as server-sent events want it. Protobuf is not text.
    fn is_text(&self) -> bool {
        true
    }

    /// What `encode` would have to mark in a task: the name of the member, and why. JSON holds everything.
    fn unrepresentable(&self, _task: &Task) -> Option<String> {
        None
    }
}

/// A dialect whose messages are JSON.
pub trait JsonDialect: Dialect {
    /// Reads the params of an operation: one JSON object, which is `{}` where the operation needs none. What is
    /// outside the JSON (agent of the mount, headers, behaviour by mount) keeps its default, and the binding sets it.
    fn decode(&self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error>;
}

/// What stands before the names of the members of a webhook's config, `configuration.pushNotificationConfig.`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushMembers {
    /// In those of a send.
    pub send: &'static str,
    /// In those of a set.
    pub set: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    PushSet,
    PushGet,
    PushList,
    PushDelete,
    ExtendedCard,
}

impl Operation {
    /// Each of them.
    pub const ALL: [Operation; 11] = [
        Operation::Send,
        Operation::Stream,
        Operation::Get,
        Operation::List,
        Operation::Cancel,
        Operation::Subscribe,
        Operation::PushSet,
        Operation::PushGet,
        Operation::PushList,
        Operation::PushDelete,
        Operation::ExtendedCard,
    ];

    /// As 1.0 names it.
    pub fn name(self) -> &'static str {
        crate::jsonrpc::method_name(crate::ProtocolVersion::V1_0, self).expect("1.0 has a name for every operation")
    }

    pub fn is_streaming(self) -> bool {
        matches!(self, Operation::Stream | Operation::Subscribe)
    }
}

/// How strictly a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Exactly as the dialect spells it.
    Strict,
    /// Any known spelling of ids, parts and roles, but a message must have an id and a role.
    Complete,
    /// Any known spelling; a missing message id is made by the engine, a missing role is `user`.
    Lenient,
}

/// What a dialect encodes: an answer or a frame.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The result of get and cancel.
    Task(&'a Task),
    /// The result of a send.
    SendResult(&'a Task),
    /// The result of a send that made no task, and the one frame of its stream.
    Message(&'a Message),
    Page(&'a Page),
    /// A frame of a stream: the task as it is now.
    Snapshot(&'a Task),
    /// A frame of a stream.
    Event {
        task: &'a TaskId,
        context: &'a ContextId,
        event: &'a Event,
    },
    /// The last frame of a stream; 0.1 shows the artifacts of the task in it.
    FinalEvent {
        task: &'a Task,
        event: &'a Event,
    },
    PushConfig(&'a PushConfig),
    PushConfigs(&'a [PushConfig]),
    Card(&'a Card),
}
