//! The right to run in a context, and a slot for it most of the time.
//!
//! A run keeps its permit from its first turn until it is at rest. It gives the slot back while it waits for its caller or
//! for its working folder, and takes one again before it gets on.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::queue::{QueueEntry, QueueStage, Queued, WaitState, Wants};
use super::slots::{AgentSlots, Holding, HoldingCell};
use super::{AgentNo, ContextKey, Schedule};
use crate::sharded::lock;
use crate::wait_reason::WaitReason;

/// Dropping it lets the next ones in.
pub(crate) struct Permit {
    schedule: Arc<Schedule>,
    pub(super) executor: AgentNo,
    /// `None` once it has been given back.
    pub(super) context: Option<ContextKey>,
    pub(super) holding: Arc<HoldingCell>,
}

/// Whether a run that gave its slot back has one again.
pub(crate) enum Reacquired {
    Now,
    Later(Queued<()>),
}

impl Permit {
    /// Its context and one slot are counted as taken already.
    pub(super) fn new(schedule: Arc<Schedule>, executor: AgentNo, context: ContextKey) -> Self {
        let holding = Arc::new(HoldingCell::new(Holding::Slot));
        Self { schedule, executor, context: Some(context), holding }
    }

    /// Whether the run has a slot, and may work.
    pub(crate) fn has_slot(&self) -> bool {
        self.holding.get().has_slot()
    }

    /// The run waits for its caller's answer and gives its slot back, if not too many have done so.
    pub(crate) fn park(&self) {
        self.change(|slots| {
            if self.holding.get() == Holding::Slot {
                let is_full = slots.parked >= slots.max_parked;
                slots.exchange(&self.holding, if is_full { Holding::SlotWhileAsking } else { Holding::Parked });
            }
        });
        self.set_needs_answer(true);
    }

    /// The run has been answered, or needs no answer any more.
    pub(crate) fn unpark(&self) {
        self.set_needs_answer(false);
    }

    /// Gives the slot back while the run waits for its working folder. A parked run has given it back already.
    pub(crate) fn release_slot(&self) {
        self.change(|slots| {
            if self.has_slot() {
                slots.exchange(&self.holding, Holding::WaitsForFolder);
            }
        });
    }

    /// Takes a slot again.
    pub(crate) fn reacquire_slot(&self) -> Reacquired {
        let mut state = lock(&self.schedule.state);
        let slots = &mut state.agents[self.executor];
        if self.has_slot() {
            slots.exchange(&self.holding, Holding::Slot);
            return Reacquired::Now;
        }
        let reacquired = if slots.has_free_slot() {
            slots.exchange(&self.holding, Holding::Slot);
            Reacquired::Now
        } else {
            // It is parked no more, so one that asks with its slot may be parked instead. Else this one would wait for
            // the answer to the other.
            slots.exchange(&self.holding, Holding::WaitsForSlot);
            let (start, granted) = oneshot::channel();
            let reason = WaitReason::Slots { limit: slots.limit };
            let wait = Arc::new(WaitState::new(QueueStage::WaitsForSlot, reason));
            let wants = Wants::Slot { holding: self.holding.clone(), start };
            slots.returning.push_back(QueueEntry { executor: self.executor, wait: wait.clone(), wants });
            state.queued += 1;
            let (schedule, executor) = (self.schedule.clone(), self.executor);
            Reacquired::Later(Queued { schedule, executor, granted, wait, context: None })
        };
        let admitted = state.admit(self.executor);
        drop(state);
        self.schedule.start(admitted);
        reacquired
    }

    /// The same for a run that nobody can hold back: its program has taken its question back and works already. It
    /// counts, so nobody else is let in before the agent is below its limit again.
    pub(crate) fn reacquire_slot_at_once(&self) {
        self.change(|slots| slots.exchange(&self.holding, Holding::Slot));
    }

    /// Changes what this permit has, and lets those in who find a slot then.
    fn change(&self, change: impl FnOnce(&mut AgentSlots)) {
        let mut state = lock(&self.schedule.state);
        change(&mut state.agents[self.executor]);
        let admitted = state.admit(self.executor);
        drop(state);
        self.schedule.start(admitted);
    }

    /// Tells the next in the queue of the context whether it waits for an answer.
    fn set_needs_answer(&self, needs_answer: bool) {
        let Some(context) = &self.context else { return };
        let mut state = lock(&self.schedule.state);
        if let Some(queue) = state.contexts.get_mut(context)
            && queue.needs_answer != needs_answer
        {
            queue.needs_answer = needs_answer;
            queue.tell_next();
        }
    }

    /// Gives everything back, once. Returns the runs that were admitted.
    #[must_use]
    pub(super) fn give_back(&mut self) -> Vec<QueueEntry> {
        let Some(context) = self.context.take() else { return Vec::new() };
        let mut state = lock(&self.schedule.state);
        state.agents[self.executor].exchange(&self.holding, Holding::Nothing);
        let next = state.advance(&context).filter(|next| *next != self.executor);
        let mut admitted = state.admit(self.executor);
        // The next task of the context may be one that another agent executes.
        if let Some(next) = next {
            admitted.extend(state.admit(next));
        }
        admitted
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let admitted = self.give_back();
        let schedule = self.schedule.clone();
        schedule.start(admitted);
    }
}
