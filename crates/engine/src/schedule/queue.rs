//! Queue entries, the handles of their owners, and the queue of a context.
//!
//! The owner of an entry holds a `Queued`. Dropping it only marks the entry as abandoned, since a search would cost as
//! much as the queue is long. Abandoned entries are skipped when they come to the front, and removed when there are
//! many.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use sabir_model::TaskId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::permit::Permit;
use super::slots::HoldingCell;
use super::{AgentNo, ContextKey, Schedule, SlotRequest};
use crate::sharded::lock;
use crate::wait_reason::{WaitReason, WaitReasonCell};

/// A busy context.
pub(super) struct ContextQueue {
    /// The task that runs, or runs next.
    pub(super) holder: TaskId,
    /// The run waits for its caller's answer.
    pub(super) needs_answer: bool,
    pub(super) waiters: VecDeque<QueueEntry>,
}

/// An entry of a queue.
pub(super) struct QueueEntry {
    pub(super) executor: AgentNo,
    pub(super) wait: Arc<WaitState>,
    pub(super) wants: Wants,
}

pub(super) enum Wants {
    /// A task that has not begun wants a permit.
    Permit { request: SlotRequest, start: oneshot::Sender<Permit> },
    /// A run with a permit wants a slot again.
    Slot { holding: Arc<HoldingCell>, start: oneshot::Sender<()> },
}

/// The state that an entry shares with its owner.
pub(super) struct WaitState {
    /// Changed only under the lock of the schedule.
    stage: AtomicU8,
    /// When the entry was made.
    pub(super) since: Instant,
    pub(super) reason: WaitReasonCell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum QueueStage {
    /// In the queue of its context.
    WaitsForContext,
    /// In the queue of its agent; its context is free for it.
    WaitsForSlot,
    Admitted,
    /// The owner has left.
    Abandoned,
}

/// The handle of a queue entry. Dropping it leaves the queue.
pub(crate) struct Queued<T> {
    pub(super) schedule: Arc<Schedule>,
    pub(super) executor: AgentNo,
    pub(super) granted: oneshot::Receiver<T>,
    pub(super) wait: Arc<WaitState>,
    /// The context of a task that has not begun; such tasks count against the bound of the queue.
    pub(super) context: Option<ContextKey>,
}

impl ContextQueue {
    pub(super) fn held_by(holder: TaskId) -> Self {
        Self { holder, needs_answer: false, waiters: VecDeque::new() }
    }

    pub(super) fn wait_reason(&self) -> WaitReason {
        WaitReason::Task { task: self.holder.clone(), needs_answer: self.needs_answer }
    }

    /// Updates only the next task: updates for a queue of thousands would cost too much each time that one leaves.
    pub(super) fn tell_next(&self) {
        let next = self.waiters.iter().find(|waiter| !waiter.wait.is_abandoned());
        if let Some(next) = next {
            next.wait.reason.set(self.wait_reason());
        }
    }
}

impl WaitState {
    pub(super) fn new(stage: QueueStage, reason: WaitReason) -> Self {
        Self { stage: AtomicU8::new(stage as u8), since: Instant::now(), reason: WaitReasonCell::new(reason) }
    }

    pub(super) fn set_stage(&self, stage: QueueStage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    pub(super) fn is_in(&self, stage: QueueStage) -> bool {
        self.stage.load(Ordering::Relaxed) == stage as u8
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_in(QueueStage::Abandoned)
    }
}

impl<T> Queued<T> {
    /// Resolves when the entry is admitted. Wakes also when the wait reason changes.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.wait.reason.register(cx);
        Pin::new(&mut self.granted).poll(cx).map(Result::ok)
    }

    /// Whether another task of the context has the context.
    pub(crate) fn waits_for_context(&self) -> bool {
        self.wait.is_in(QueueStage::WaitsForContext)
    }

    pub(crate) fn wait_reason(&self) -> WaitReason {
        self.wait.reason.get()
    }
}

impl<T> Drop for Queued<T> {
    /// A permit that was sent in the meantime is dropped with the channel, which admits the next run.
    fn drop(&mut self) {
        let mut state = lock(&self.schedule.state);
        let waits_for_slot = self.wait.is_in(QueueStage::WaitsForSlot);
        if !waits_for_slot && !self.wait.is_in(QueueStage::WaitsForContext) {
            return;
        }
        self.wait.set_stage(QueueStage::Abandoned);
        state.queued -= 1;
        state.abandoned += 1;
        let mut admitted = Vec::new();
        if let Some(context) = &self.context {
            state.agents[self.executor].waiting.remove(&context.owner);
            // The context is free now, and its next task may be for an agent that has a slot.
            if waits_for_slot && let Some(next) = state.advance(context, &mut admitted) {
                admitted.extend(state.admit(next));
            }
        }
        state.remove_abandoned_if_many();
        drop(state);
        self.schedule.start(admitted);
    }
}
