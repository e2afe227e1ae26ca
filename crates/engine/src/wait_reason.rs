//! What a queued task waits for, and how it tells its caller in words.
//!
//! Only tasks of the same caller are named; another caller's task is just another task.

use std::sync::Mutex;
use std::task::Context;

use futures_util::task::AtomicWaker;
use sabir_model::{Part, TaskId};

use crate::sharded::lock;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Another task of its context. Kept up to date for the next in the queue; those behind it keep what they were told.
    Task { task: TaskId, needs_answer: bool },
    /// A run in the same folder; `None`: it is not to be named.
    Folder { task: Option<TaskId> },
    /// All slots of its agent are taken.
    Slots { limit: usize },
}

impl WaitReason {
    pub(crate) fn note(&self) -> Part {
        Part::text(match self {
            WaitReason::Task { task, needs_answer: true } => {
                format!("waiting for task {task} of this context, which needs an answer")
            }
            WaitReason::Task { task, needs_answer: false } => format!("waiting for task {task} of this context"),
            WaitReason::Folder { task: Some(task) } => {
                format!("waiting for task {task}, which works in the same folder")
            }
            WaitReason::Folder { task: None } => "waiting for another task, which works in the same folder".to_owned(),
            WaitReason::Slots { limit: 1 } => "waiting for the agent, which runs one task at a time".to_owned(),
            WaitReason::Slots { limit } => format!("waiting for the agent, which runs {limit} tasks at a time"),
        })
    }
}

/// The reason as it is now, for one who waits. A change wakes it.
pub(crate) struct WaitReasonCell {
    reason: Mutex<WaitReason>,
    changed: AtomicWaker,
}

impl WaitReasonCell {
    pub(crate) fn new(reason: WaitReason) -> Self {
        Self { reason: Mutex::new(reason), changed: AtomicWaker::new() }
    }

    pub(crate) fn get(&self) -> WaitReason {
        lock(&self.reason).clone()
    }

    pub(crate) fn set(&self, reason: WaitReason) {
        *lock(&self.reason) = reason;
        self.changed.wake();
    }

    /// Wakes this task at the next change.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.changed.register(cx.waker());
    }
}
