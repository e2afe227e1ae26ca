//! What a queued task waits for, and the text about it for its caller.
//!
//! The text names a task only if it belongs to the same caller.

use std::sync::{Arc, Mutex};
use std::task::Context;

use futures_util::task::AtomicWaker;
use sabir_model::{Part, TaskId};

use crate::sharded::lock;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Another task of its context. Only the next task in the queue gets updates; the others keep their first reason.
    Task { task: TaskId, needs_answer: bool },
    /// A run in the same folder; `None`: it belongs to another caller.
    Folder { task: Option<TaskId> },
    /// All slots of its agent are taken.
    Slots { limit: usize },
    /// The agent has as many runs as it may have on all nodes together.
    TotalRuns,
    /// The sessions of its context are on this node.
    Node(Arc<str>),
}

impl WaitReason {
    /// The task of the same context that it waits for.
    pub(crate) fn into_task(self) -> Option<TaskId> {
        match self {
            WaitReason::Task { task, .. } => Some(task),
            WaitReason::Folder { .. } | WaitReason::Slots { .. } | WaitReason::TotalRuns | WaitReason::Node(_) => None,
        }
    }

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
            WaitReason::TotalRuns => {
                "waiting for the agent, which runs as many tasks as it may on all nodes".to_owned()
            }
            WaitReason::Node(node) => format!("waiting for node {node}, where this context has its session"),
            WaitReason::Slots { limit: 1 } => "waiting for the agent, which runs one task at a time".to_owned(),
            WaitReason::Slots { limit } => format!("waiting for the agent, which runs {limit} tasks at a time"),
        })
    }
}

/// The current reason of one waiter. A change wakes the waiter.
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

    /// Registers the waker for the next change.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.changed.register(cx.waker());
    }
}
