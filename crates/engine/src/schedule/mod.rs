//! The schedule: decides which run may work now, for all agents of the server.
//!
//! A run acquires three things, always in this order. A run that waits for one of them never holds a later one, so the
//! holder of a slot always makes progress, and there is no deadlock:
//!
//! | acquired          | how many                                  | while the run is parked (waits for an answer)    |
//! |-------------------|-------------------------------------------|--------------------------------------------------|
//! | 1. the context    | one run of a conversation with one agent  | kept                                             |
//! | 2. the working folder (`working_folders.rs`), if it needs one for itself | one run of the server | released, and acquired again before the answer is given to the agent |
//! | 3. a slot, unless the task is delegated | `Limits::concurrent` of the agent that executes it | released, and acquired again last |
//!
//! The context belongs to the agent that the task is addressed to, and the slot to the agent that executes it; mostly
//! these are the same. A task whose context is busy waits in the queue of the context. The first task of a free context
//! waits in the queue of its agent, where owners take turns (`fair_queue.rs`). All tasks that wait for an agent count
//! against its `Limits::queue`; a full queue still has one place for an owner that has nothing in it.
//!
//! | file        | its idea                                                                         |
//! |-------------|----------------------------------------------------------------------------------|
//! | `slots.rs`  | the slots of one agent: who holds one, who is parked, who waits                  |
//! | `queue.rs`  | a queue entry, its handle, and the queue of a context                            |
//! | `fair_queue.rs` | the queue of an agent: owners take turns                                     |
//! | `owner_counts.rs` | how many of something each owner has                                       |
//! | `load.rs`   | what operators see of it                                                         |
//! | `permit.rs` | the right to run: parking, releasing the slot and reacquiring one                |
//! | here        | the whole: tasks enter, and admitted runs start                                  |
//!
//! A task that leaves its queue (canceled, or the server stops) no longer counts from that moment; its entry is removed
//! later.

mod fair_queue;
mod load;
mod owner_counts;
mod permit;
mod queue;
mod slots;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use sabir_model::{ContextId, Delegated, Owner, TaskId};
use tokio::sync::oneshot;

pub use load::QueueLoad;
pub(crate) use permit::{Permit, Reacquired};
pub(crate) use queue::Queued;
use queue::{ContextQueue, QueueEntry, QueueStage, WaitState, Wants};
use slots::{AgentSlots, Holding};

use crate::Limits;
use crate::sharded::lock;
use crate::wait_reason::WaitReason;

/// An agent of the server, by its index in the list of limits that the schedule was made with.
pub(crate) type AgentNo = usize;

/// A conversation with an agent. It has at most one run at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ContextKey {
    /// The agent that its tasks are addressed to.
    pub(crate) agent: AgentNo,
    pub(crate) owner: Owner,
    pub(crate) context: ContextId,
}

/// A request for a permit to run.
pub(crate) struct SlotRequest {
    pub(crate) context: ContextKey,
    pub(crate) task: TaskId,
    /// The agent that executes it.
    pub(crate) executor: AgentNo,
    pub(crate) slot_use: SlotUse,
}

/// Whether a run needs a slot of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotUse {
    Counted,
    /// A program has delegated the task. The tasks that it comes from hold slots and wait for it, so it must not wait for theirs:
    /// two agents that ask each other's agents would wait for ever. Depth and number of such tasks are limited instead.
    Delegated,
}

impl SlotUse {
    pub(crate) fn of(delegated: Option<&Arc<Delegated>>) -> Self {
        if delegated.is_some() { SlotUse::Delegated } else { SlotUse::Counted }
    }
}

/// The answer to a request.
pub(crate) enum Scheduled {
    Now(Permit),
    Later(Queued<Permit>),
    QueueFull,
}

pub(crate) struct Schedule {
    state: Mutex<ScheduleState>,
}

struct ScheduleState {
    agents: Vec<AgentSlots>,
    contexts: HashMap<ContextKey, ContextQueue>,
    /// Queue entries whose owners wait.
    queued: usize,
    /// Queue entries whose owners have left.
    abandoned: usize,
}

/// Fewer abandoned entries are not worth a search.
const MANY_ABANDONED: usize = 64;

impl Schedule {
    /// Makes a schedule for agents with these limits; the number of an agent is its index.
    pub(crate) fn new<'a>(limits: impl IntoIterator<Item = &'a Limits>) -> Arc<Self> {
        let agents = limits.into_iter().map(AgentSlots::new).collect();
        let state = ScheduleState { agents, contexts: HashMap::new(), queued: 0, abandoned: 0 };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn enter(self: &Arc<Self>, request: SlotRequest) -> Scheduled {
        self.enter_within(request, usize::MIN)
    }

    /// For tasks that were accepted before: the bound of the queue is for new tasks only.
    pub(crate) fn enter_recovered(self: &Arc<Self>, request: SlotRequest) -> Scheduled {
        self.enter_within(request, usize::MAX)
    }

    /// `least_queue` raises the bound of the queue.
    fn enter_within(self: &Arc<Self>, request: SlotRequest, least_queue: usize) -> Scheduled {
        let mut state = lock(&self.state);
        let executor = request.executor;
        let is_busy = state.contexts.contains_key(&request.context);
        let slots = &mut state.agents[executor];
        let owner = &request.context.owner;
        let has_place = slots.has_place_in_queue(owner, slots.queue.max(least_queue));
        let has_room = slots.waiting_for_folders.total() == 0 || has_place;
        if !is_busy && request.slot_use == SlotUse::Delegated {
            state.contexts.insert(request.context.clone(), ContextQueue::held_by(request.task));
            return Scheduled::Now(self.permit(executor, request.context, request.slot_use));
        }
        if !is_busy && slots.has_free_slot() && slots.wanting.is_empty() && has_room {
            slots.running += 1;
            slots.wanting.note_served(owner);
            state.contexts.insert(request.context.clone(), ContextQueue::held_by(request.task));
            return Scheduled::Now(self.permit(executor, request.context, request.slot_use));
        }
        if !has_place {
            return Scheduled::QueueFull;
        }
        slots.waiting.add(owner);
        let for_slot = WaitReason::Slots { limit: slots.limit };
        state.queued += 1;
        let (start, granted) = oneshot::channel();
        let reason = state.contexts.get(&request.context).map_or(for_slot, ContextQueue::wait_reason);
        let (context, task) = (request.context.clone(), request.task.clone());
        let stage = if is_busy { QueueStage::WaitsForContext } else { QueueStage::WaitsForSlot };
        let wait = Arc::new(WaitState::new(stage, reason));
        let queued =
            Queued { schedule: self.clone(), executor, granted, wait: wait.clone(), context: Some(context.clone()) };
        let waiter = QueueEntry { executor, wait, wants: Wants::Permit { request, start } };
        match state.contexts.get_mut(&context) {
            Some(queue) => queue.waiters.push_back(waiter),
            None => {
                state.agents[executor].wanting.push(&context.owner, waiter);
                state.contexts.insert(context, ContextQueue::held_by(task));
            }
        }
        Scheduled::Later(queued)
    }

    /// How many more runs of this agent could begin now.
    pub(crate) fn free_slots(&self, agent: AgentNo) -> usize {
        let state = lock(&self.state);
        let slots = &state.agents[agent];
        slots.limit.saturating_sub(slots.running + slots.waiting.total())
    }

    fn permit(self: &Arc<Self>, executor: AgentNo, context: ContextKey, slot_use: SlotUse) -> Permit {
        Permit::new(self.clone(), executor, context, slot_use)
    }

    /// Starts the admitted runs.
    fn start(self: &Arc<Self>, admitted: Vec<QueueEntry>) {
        let mut admitted = VecDeque::from(admitted);
        // A run that left after it was admitted releases its slot at once; that may happen thousands of times in a row.
        while let Some(waiter) = admitted.pop_front() {
            match waiter.wants {
                Wants::Permit { request, start } => {
                    if let Err(mut permit) = start.send(self.permit(waiter.executor, request.context, request.slot_use))
                    {
                        admitted.extend(permit.give_back());
                    }
                }
                // The permit has the slot already, even if the receiver is gone.
                Wants::Slot { start, .. } => drop(start.send(())),
            }
        }
    }
}

impl ScheduleState {
    /// Takes the runs that may work now out of the queue of an agent.
    #[must_use]
    fn admit(&mut self, agent: AgentNo) -> Vec<QueueEntry> {
        let mut admitted = Vec::new();
        loop {
            let slots = &mut self.agents[agent];
            if slots.running >= slots.limit {
                return admitted;
            }
            let mut skipped = 0;
            let next = slots.wanting.pop(&mut skipped);
            self.abandoned -= skipped;
            let Some(waiter) = next else { return admitted };
            waiter.wait.set_stage(QueueStage::Admitted);
            self.queued -= 1;
            match &waiter.wants {
                Wants::Permit { request, .. } => {
                    slots.waiting.remove(&request.context.owner);
                    slots.running += 1;
                }
                // The permit was dropped before this entry.
                Wants::Slot { holding, .. } if holding.get() == Holding::Nothing => continue,
                Wants::Slot { holding, .. } => slots.exchange(holding, Holding::Slot),
            }
            admitted.push(waiter);
        }
    }

    /// Moves the next task of a free context into the queue of its agent. Returns this agent. A task that needs no slot is admitted
    /// at once.
    fn advance(&mut self, context: &ContextKey, admitted: &mut Vec<QueueEntry>) -> Option<AgentNo> {
        let queue = self.contexts.get_mut(context)?;
        while let Some(next) = queue.waiters.pop_front() {
            if next.wait.is_abandoned() {
                self.abandoned -= 1;
                continue;
            }
            if let Wants::Permit { request, .. } = &next.wants {
                queue.holder = request.task.clone();
            }
            // The run that asked is over, even if it crashed.
            queue.needs_answer = false;
            queue.tell_next();
            let executor = next.executor;
            let slots = &mut self.agents[executor];
            if matches!(&next.wants, Wants::Permit { request, .. } if request.slot_use == SlotUse::Delegated) {
                next.wait.set_stage(QueueStage::Admitted);
                self.queued -= 1;
                slots.waiting.remove(&context.owner);
                admitted.push(next);
                return None;
            }
            next.wait.set_stage(QueueStage::WaitsForSlot);
            next.wait.reason.set(WaitReason::Slots { limit: slots.limit });
            slots.wanting.push(&context.owner, next);
            return Some(executor);
        }
        self.contexts.remove(context);
        None
    }

    fn remove_abandoned_if_many(&mut self) {
        if self.abandoned <= MANY_ABANDONED || self.abandoned <= self.queued {
            return;
        }
        for queue in self.contexts.values_mut() {
            queue.waiters.retain(|waiter| !waiter.wait.is_abandoned());
        }
        for slots in &mut self.agents {
            slots.wanting.remove_abandoned();
        }
        self.abandoned = 0;
    }
}

#[cfg(test)]
mod tests;
