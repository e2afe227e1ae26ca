//! What operators see of the schedule: how busy each agent is.

use std::time::Duration;

use super::Schedule;
use crate::sharded::lock;

/// The runs and the queue of one agent on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLoad {
    /// Runs that work.
    pub running: usize,
    /// Runs that wait for an answer and have given their slot back.
    pub parked: usize,
    /// Tasks that wait for their first slot, and runs that wait for their working folder.
    pub queued: usize,
    /// How many runs may work at once.
    pub limit: usize,
    /// How many tasks may be queued.
    pub queue_limit: usize,
    /// How long the longest has waited in the queue.
    pub oldest_queued: Option<Duration>,
}

impl Schedule {
    /// Of all agents, by their numbers. Looks at every entry of every queue.
    pub(crate) fn loads(&self) -> Vec<QueueLoad> {
        let state = lock(&self.state);
        let mut loads: Vec<QueueLoad> = state
            .agents
            .iter()
            .map(|slots| QueueLoad {
                running: slots.running,
                parked: slots.parked,
                queued: slots.waiting.total() + slots.waiting_for_folders.total(),
                limit: slots.limit,
                queue_limit: slots.queue,
                oldest_queued: None,
            })
            .collect();
        let in_contexts = state.contexts.values().flat_map(|queue| &queue.waiters);
        let in_agents = state.agents.iter().flat_map(|slots| slots.wanting.entries());
        for entry in in_contexts.chain(in_agents).filter(|entry| !entry.wait.is_abandoned()) {
            let oldest = &mut loads[entry.executor].oldest_queued;
            *oldest = (*oldest).max(Some(entry.wait.since.elapsed()));
        }
        loads
    }
}
