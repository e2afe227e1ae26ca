//! What a dialect is: a way to read a call and to spell what is answered.
//!
//! A dialect holds wire structs and conversions, no policy. It sees the JSON of one operation, whatever
//! binding carried it; headers, paths and envelopes are the business of the bindings.

use sabir_model::{Birth, Call, Card, ContextId, Error, Event, Message, Page, PushConfig, Task, TaskId};

pub trait Dialect: Sync {
    /// What a task remembers when it is born in this dialect.
    fn birth(&self) -> Birth;

    /// Events are spelled once per dialect and shared; this is the dialect's place among the spellings.
    fn slot(&self) -> usize;

    /// Reads the params of an operation: one JSON object, or nothing (`{}`) where the operation needs
    /// none. What the JSON cannot say (agent of the mount, headers, behaviour by mount) keeps its default
    /// and is filled in by the binding.
    fn decode(&self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error>;

    /// The last frame of a stream needs the whole task.
    fn ends_with_task(&self) -> bool {
        false
    }

    /// Writes one JSON value.
    fn encode(&self, shown: Shown<'_>, out: &mut Vec<u8>);
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
    pub fn is_streaming(self) -> bool {
        matches!(self, Operation::Stream | Operation::Subscribe)
    }
}

/// How the spelling of a body is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As the dialect says it.
    Strict,
    /// Any known spelling of ids, parts and roles, but a message must have its id and its role.
    Complete,
    /// Any known spelling; a missing messageId is minted, a missing role is user.
    Lenient,
}

/// What can be answered or streamed.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// The result of get and cancel.
    Task(&'a Task),
    /// The result of a send.
    Sent(&'a Task),
    /// The result of a send that made no task, and the one frame of its stream.
    Reply(&'a Message),
    Page(&'a Page),
    /// A frame of a stream: the task as it is now.
    Snapshot(&'a Task),
    /// A frame of a stream.
    Event {
        task: &'a TaskId,
        context: &'a ContextId,
        event: &'a Event,
    },
    /// The last frame of a stream, in a dialect that shows with it what the task has made.
    End {
        task: &'a Task,
        event: &'a Event,
    },
    PushConfig(&'a PushConfig),
    PushConfigs(&'a [PushConfig]),
    Card(&'a Card),
}
