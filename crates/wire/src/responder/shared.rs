//! Replies and frames that hold a whole task, split into the wrapper, which each caller has for itself, and the encoded
//! task, whose bytes callers share. A large task is then encoded once, however many callers ask for it.

use sabir_model::{Answer, Seq, Task};

use super::frame::encode_frame;
use super::{Envelope, Responder};
use crate::{Dialect, Operation, Payload};

/// The bytes around a shared payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// How a task is encoded, without anything of the caller. Encoders with equal keys write the same bytes.
#[derive(Clone, Copy)]
pub struct TaskEncoder {
    dialect: &'static dyn Dialect,
    shape: TaskShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskShape {
    /// The result of get and cancel.
    Result,
    /// The result of a send.
    SendResult,
    /// The first frame of a stream.
    Snapshot,
}

impl TaskEncoder {
    pub fn key(&self) -> (usize, TaskShape) {
        (self.dialect.slot(), self.shape)
    }

    /// Whether it writes text, which takes no memory beside itself.
    pub fn is_text(&self) -> bool {
        self.dialect.is_text()
    }

    pub fn encode(&self, task: &Task) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        match self.shape {
            TaskShape::Result => self.dialect.encode(Payload::Task(task), &mut out),
            TaskShape::SendResult => self.dialect.encode(Payload::SendResult(task), &mut out),
            TaskShape::Snapshot => encode_frame(self.dialect, Payload::Snapshot(task), &mut out),
        }
        out
    }
}

/// A reply with a task in it, without the encoded task.
pub struct SplitTaskReply {
    pub content_type: &'static str,
    /// The number of the frame that it is, if it is one.
    seq: Option<Seq>,
    pub encoder: TaskEncoder,
}

impl Responder<'_> {
    /// The parts of what `reply` gives with status 200. `None`: the answer is no task, or its body is not one encoded
    /// task in a wrapper.
    pub fn split_task_reply<S>(&self, answer: &Answer<S>) -> Option<SplitTaskReply> {
        let Answer::Task(task) = answer else { return None };
        if matches!(self.envelope, Envelope::Gateway(_)) {
            return None;
        }
        if self.is_streaming() {
            let (seq, encoder) = (Some(task.seq), self.snapshot_encoder(task));
            return Some(SplitTaskReply { content_type: self.stream_content_type(), seq, encoder });
        }
        let (dialect, shape) = match self.operation {
            Some(Operation::Send) => (self.dialect, TaskShape::SendResult),
            _ => (self.dialect_for(task), TaskShape::Result),
        };
        let content_type = self.envelope.content_type();
        Some(SplitTaskReply { content_type, seq: None, encoder: TaskEncoder { dialect, shape } })
    }

    /// What stands around the encoded task of a split reply, whose encoding has this length.
    pub fn reply_wrapper(&self, split: &SplitTaskReply, length: usize) -> Wrapper {
        match split.seq {
            Some(seq) => self.frame_wrapper(Some(seq), length),
            None => self.envelope.wrapper(length),
        }
    }

    /// How the task is encoded in what `write_snapshot_frame` writes.
    pub fn snapshot_encoder(&self, task: &Task) -> TaskEncoder {
        TaskEncoder { dialect: self.dialect_for(task), shape: TaskShape::Snapshot }
    }

    /// What `write_frame` writes around a payload of this length.
    pub fn frame_wrapper(&self, seq: Option<Seq>, length: usize) -> Wrapper {
        if let Envelope::Grpc(_) = self.envelope {
            return self.envelope.wrapper(length);
        }
        let mut wrapper = Wrapper { before: Vec::new(), after: Vec::new() };
        self.write_frame_start(seq, &mut wrapper.before);
        self.write_frame_end(0, &mut wrapper.after);
        wrapper
    }
}
