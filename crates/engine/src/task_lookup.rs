//! Ends of tasks, for those who remove what agents have left behind.
//!
//! An agent that works on a task learns of its end from its turn (`Turn::task_end`). But a task can end without its agent:
//! it is canceled while it waits for an answer or in the queue, it expires, or recovery settles it after a crash. And
//! retention deletes tasks long after their ends. Whoever has files of tasks asks here which of these tasks still matter,
//! and waits here until it is worth asking again.

use std::sync::Arc;

use sabir_store::{Store, TaskNo};
use tokio::sync::Notify;

use crate::AgentError;
use crate::engine::Engine;

/// Says what became of tasks, by their numbers in this server's store (`Turn::number`).
#[derive(Clone)]
pub struct TaskLookup {
    pub(crate) store: Arc<dyn Store>,
}

impl TaskLookup {
    /// Whether the task is over, or deleted.
    pub async fn is_over(&self, number: u64) -> Result<bool, AgentError> {
        let task = self.store.load(TaskNo(number)).await?;
        Ok(task.is_none_or(|task| task.status.state.is_terminal()))
    }

    /// Whether the task was there and is deleted. A database that was put back from a backup knows nothing of later tasks, and
    /// has deleted none of them.
    pub async fn is_deleted(&self, number: u64) -> Result<bool, AgentError> {
        let was_there = TaskNo(number) <= self.store.highest_no();
        Ok(was_there && self.store.load(TaskNo(number)).await?.is_none())
    }
}

/// Signals that wait until somebody listens.
#[derive(Default)]
pub(crate) struct EndSignals {
    pub(crate) without_turn: Notify,
    pub(crate) deletions: Notify,
}

impl Engine {
    pub fn task_lookup(&self) -> TaskLookup {
        TaskLookup { store: self.core.store.clone() }
    }

    /// Resolves when a task has ended without a turn of its agent since this was called last.
    pub async fn until_end_without_turn(&self) {
        self.core.end_signals.without_turn.notified().await;
    }

    /// Resolves when retention has deleted tasks since this was called last.
    pub async fn until_deletion(&self) {
        self.core.end_signals.deletions.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use sabir_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_task_that_was_never_there_is_not_deleted() {
        let tasks = TaskLookup { store: Arc::new(MemoryStore::new()) };
        assert!(!tasks.is_deleted(1).await.unwrap());
    }
}
