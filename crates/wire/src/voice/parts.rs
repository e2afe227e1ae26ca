//! Replies and frames that hold a whole task, in parts: the envelope, which is each caller's own, and the task, whose
//! bytes all callers with the same spelling can share. A large task is then spelled once, however many ask for it.

use sabir_model::{Answer, Seq, Task};

use super::frame::{EVENT_STREAM, one_line};
use super::{Manner, Voice};
use crate::{Dialect, Operation, Shown};

/// What stands around the bytes that callers share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// How a task is spelled, whoever asked. Equal spellings of the same task are the same bytes.
#[derive(Clone, Copy)]
pub struct Spelling {
    dialect: &'static dyn Dialect,
    form: TaskForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskForm {
    /// The result of get and cancel.
    Got,
    /// The result of a send.
    Sent,
    /// The first frame of a stream.
    Snapshot,
}

impl Spelling {
    /// What tells spellings apart.
    pub fn key(&self) -> (usize, TaskForm) {
        (self.dialect.slot(), self.form)
    }

    pub fn spell(&self, task: &Task) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        match self.form {
            TaskForm::Got => self.dialect.encode(Shown::Task(task), &mut out),
            TaskForm::Sent => self.dialect.encode(Shown::Sent(task), &mut out),
            TaskForm::Snapshot => {
                self.dialect.encode(Shown::Snapshot(task), &mut out);
                one_line(&mut out, 0);
            }
        }
        out
    }
}

/// An answer that is a task, without the task.
pub struct TaskReply {
    pub content_type: &'static str,
    pub envelope: Envelope,
    pub spelling: Spelling,
}

impl Voice<'_> {
    /// The parts of what `answer` gives with status 200. `None`: the answer is no task, or is not made of one spelling.
    pub fn task_parts<S>(&self, answer: &Answer<S>) -> Option<TaskReply> {
        let Answer::Task(task) = answer else { return None };
        if matches!(self.manner, Manner::Gateway(_)) {
            return None;
        }
        if self.operation.is_some_and(Operation::is_streaming) {
            let (envelope, spelling) = self.snapshot_parts(task);
            return Some(TaskReply { content_type: EVENT_STREAM, envelope, spelling });
        }
        let (dialect, form) = match self.operation {
            Some(Operation::Send) => (self.dialect, TaskForm::Sent),
            _ => (self.spelling(task), TaskForm::Got),
        };
        let mut envelope = Envelope { before: Vec::new(), after: Vec::new() };
        self.open(&mut envelope.before);
        self.close(&mut envelope.after);
        let content_type = self.fine(Vec::new()).content_type;
        Some(TaskReply { content_type, envelope, spelling: Spelling { dialect, form } })
    }

    /// The parts of the frame that `snapshot` writes.
    pub fn snapshot_parts(&self, task: &Task) -> (Envelope, Spelling) {
        let spelling = Spelling { dialect: self.spelling(task), form: TaskForm::Snapshot };
        (self.frame_envelope(Some(task.seq)), spelling)
    }

    /// What `frame` writes around a payload.
    pub fn frame_envelope(&self, seq: Option<Seq>) -> Envelope {
        let mut envelope = Envelope { before: Vec::new(), after: Vec::new() };
        self.open_frame(seq, &mut envelope.before);
        self.close_frame(&mut envelope.after);
        envelope
    }
}
