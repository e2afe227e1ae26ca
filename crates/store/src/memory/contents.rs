//! What is in the store, for operators.

use std::collections::BTreeMap;

use super::{MemoryState, MemoryStore, answer};
use crate::{Measured, StoreContents, StoreFuture, StoreMetrics, TASK_ROW_BYTES};

impl Measured for MemoryStore {
    /// It commits nothing to a disk, so there is nothing to observe.
    fn observe_commits(&self, _metrics: StoreMetrics) {}

    fn measure(&self) -> StoreFuture<'_, StoreContents> {
        answer(Ok(self.lock().contents()))
    }
}

impl MemoryState {
    fn contents(&self) -> StoreContents {
        let mut tasks = BTreeMap::new();
        for row in self.tasks.values().map(|entry| &entry.row) {
            let counted = tasks.entry((row.agent.clone(), row.state as u8)).or_insert((row.state, 0));
            counted.1 += 1;
        }
        let (pending, pending_since) = self.webhooks.pending();
        StoreContents {
            tasks: tasks.into_iter().map(|((agent, _), (state, count))| (agent, state, count)).collect(),
            bytes: self.tasks.values().map(|entry| TASK_ROW_BYTES + entry.bytes() as u64).sum(),
            pending,
            pending_since,
            given_up: self.webhooks.given_up_count(),
        }
    }
}
