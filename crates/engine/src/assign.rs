//! Gives the tasks of one owner to another: tasks from before credentials were configured, or of somebody who has left.
//!
//! Only tasks without a run are moved. Each is claimed meanwhile like by a driver, so that no message reaches it in between,
//! and its topic is taken out of the feed: whoever still has it finds that nothing comes any more, and a retry finds no task.

use sabir_model::{Caller, Error, Owner, RunState};
use sabir_store::TaskRow;
use tokio::sync::mpsc;

use crate::drive::Control;
use crate::engine::Engine;
use crate::feed::Lease;
use crate::topic::TopicKey;

/// How many tasks are moved at once.
const SLICE: usize = 100;

/// What became of the tasks of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assigned {
    /// They belong to the other owner now.
    pub moved: u64,
    /// They stay: a run works on them or waits for an answer, or the other owner has a task of the same id at that agent.
    pub left: u64,
}

impl Engine {
    /// Gives all tasks of an owner that are at rest to another. Calling it again moves what was left, once that is at rest.
    ///
    /// # Errors
    /// The store cannot be read or written. What was moved stays moved.
    pub async fn assign(&self, caller: &Caller, from: &Owner, to: &Owner) -> Result<Assigned, Error> {
        if from == to {
            return Err(Error::invalid("to", "is the owner already"));
        }
        let mut result = Assigned::default();
        let assigned = self.assign_all(from, to, &mut result).await;
        // Also what was moved before a failure.
        self.record_assignment(caller, from, to, result.moved).await?;
        if result.moved > 0
            && let Some(stored) = &self.core.stored_bytes
        {
            // At once: the new owner has more than is known, and only an owner at the limit has the store counted.
            stored.set_stale();
            self.count_stored_bytes().await?;
        }
        assigned.map(|()| result)
    }

    async fn assign_all(&self, from: &Owner, to: &Owner, result: &mut Assigned) -> Result<(), Error> {
        let mut after = None;
        loop {
            let rows = self.core.store.tasks_of(from, after, SLICE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some((last.task.clone(), last.agent.clone()));
            let found = rows.len() as u64;
            let moved = self.assign_slice(rows, from, to).await?;
            result.moved += moved;
            result.left += found - moved;
        }
    }

    async fn assign_slice(&self, rows: Vec<TaskRow>, from: &Owner, to: &Owner) -> Result<u64, Error> {
        let claimed: Vec<Claimed> = rows.into_iter().filter_map(|row| self.claim_at_rest(row)).collect();
        let numbers = claimed.iter().map(|claimed| claimed.row.no).collect();
        let moved = self.core.store.assign(numbers, from, to).await;
        for Claimed { row, lease, control } in claimed {
            if moved.as_ref().is_ok_and(|moved| moved.contains(&row.no)) {
                self.core.topic_cache.forget(&lease);
                self.core.feed.detach(&lease);
                lease.abandon();
            } else {
                lease.release(None);
            }
            // Messages that came meanwhile are dropped; their senders notice and retry.
            drop(control);
        }
        Ok(moved?.len() as u64)
    }

    /// Claims a task that has no run; `None`: it has one.
    fn claim_at_rest(&self, row: TaskRow) -> Option<Claimed> {
        if RunState::of(row.state, row.turn_over) != RunState::None {
            return None;
        }
        let key = TopicKey { owner: row.owner.clone(), agent: row.agent.clone(), task: row.task.clone() };
        let lease = self.core.feed.open(key);
        let control = lease.claim().ok()?;
        Some(Claimed { row, lease, control })
    }
}

/// A task that nobody else can change.
struct Claimed {
    row: TaskRow,
    lease: Lease,
    control: mpsc::UnboundedReceiver<Control>,
}
