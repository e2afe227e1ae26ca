//! Tells agents which tasks are over or deleted, so that they can remove files of these tasks.
//!
//! An agent that runs a task hears of its end from its turn (`Turn::task_end`). But a task can also end without a turn:
//! it is canceled in the queue or while it waits for an answer, it expires, or recovery settles it after a crash. And
//! retention deletes tasks long after they have ended. So agents that keep files look their tasks up here, each time
//! that a signal says there may be something to remove.

use std::sync::Arc;

use sabir_store::{Store, TaskNo};
use tokio::sync::Notify;

use crate::AgentError;
use crate::engine::Engine;

/// Looks up tasks by their numbers in this server's store (`Turn::number`).
#[derive(Clone)]
pub struct TaskLookup {
    pub(crate) store: Arc<dyn Store>,
}

impl TaskLookup {
    /// Whether the task has ended or is deleted.
    pub async fn is_over(&self, number: u64) -> Result<bool, AgentError> {
        let task = self.store.load(TaskNo(number)).await?;
        Ok(task.is_none_or(|task| task.status.state.is_terminal()))
    }

    /// Whether the task existed and is deleted. A task that is newer than a database restored from a backup does not
    /// count as deleted.
    pub async fn is_deleted(&self, number: u64) -> Result<bool, AgentError> {
        let was_there = TaskNo(number) <= self.store.highest_no();
        Ok(was_there && self.store.load(TaskNo(number)).await?.is_none())
    }
}

/// Each signal is kept until somebody waits for it.
#[derive(Default)]
pub(crate) struct EndSignals {
    pub(crate) without_turn: Notify,
    pub(crate) deletions: Notify,
}

impl Engine {
    /// Says what became of tasks, by their numbers.
    pub fn task_lookup(&self) -> TaskLookup {
        TaskLookup { store: self.core.store.clone() }
    }

    /// Resolves when a task has ended without a turn since the last call of this function.
    pub async fn until_end_without_turn(&self) {
        self.core.end_signals.without_turn.notified().await;
    }

    /// Resolves when retention has deleted tasks since the last call of this function.
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
