//! A permit: the right to run in a context, most of the time with a slot.
//!
//! A run keeps its permit from its first turn until it is at rest. It releases the slot while it waits for its caller
//! or for its working folder, and reacquires one before it continues.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::queue::{QueueEntry, QueueStage, Queued, WaitState, Wants};
use super::slots::{AgentSlots, Holding, HoldingCell};
use super::{AgentNo, ContextKey, Schedule, SlotUse};
use crate::sharded::lock;
use crate::wait_reason::WaitReason;

/// Dropping it admits the next runs.
pub(crate) struct Permit {
    schedule: Arc<Schedule>,
    pub(super) executor: AgentNo,
    /// `None` after the release.
    pub(super) context: Option<ContextKey>,
    pub(super) holding: Arc<HoldingCell>,
}

/// Whether a run has its slot back.
pub(crate) enum Reacquired {
    Now,
    Later(Queued<()>),
}

impl Permit {
    /// The context is already counted for it, and one slot if it needs one.
    pub(super) fn new(schedule: Arc<Schedule>, executor: AgentNo, context: ContextKey, slot_use: SlotUse) -> Self {
        let holding = match slot_use {
            SlotUse::Counted => Holding::Slot,
            SlotUse::Delegated => Holding::NeedsNone,
        };
        let holding = Arc::new(HoldingCell::new(holding, context.owner.clone()));
        Self { schedule, executor, context: Some(context), holding }
    }

    /// Whether the run has a slot, and may work.
    pub(crate) fn has_slot(&self) -> bool {
        self.holding.get().has_slot()
    }

    /// The run waits for its caller's answer and releases its slot, unless too many runs are parked already.
    pub(crate) fn park(&self) {
        self.change(|slots| {
            if self.holding.get() == Holding::Slot {
                let is_full = slots.parked >= slots.max_parked;
                slots.exchange(&self.holding, if is_full { Holding::SlotWhileAsking } else { Holding::Parked });
            }
        });
        self.set_needs_answer(true);
    }

    /// The run is answered, or has withdrawn its question.
    pub(crate) fn unpark(&self) {
        self.set_needs_answer(false);
    }

    /// Releases the slot while the run waits for its working folder. A parked run has released it already.
    pub(crate) fn release_slot(&self) {
        self.change(|slots| {
            if self.has_slot() {
                slots.exchange(&self.holding, Holding::WaitsForFolder);
            }
        });
    }

    /// Reacquires a slot.
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
            // This run is no longer parked, so a run that asks with a slot can be parked instead. Otherwise this run
            // would wait for the answer to that one.
            slots.exchange(&self.holding, Holding::WaitsForSlot);
            let (start, granted) = oneshot::channel();
            let reason = WaitReason::Slots { limit: slots.limit };
            let wait = Arc::new(WaitState::new(QueueStage::WaitsForSlot, reason));
            let wants = Wants::Slot { holding: self.holding.clone(), start };
            let entry = QueueEntry { executor: self.executor, wait: wait.clone(), wants };
            slots.wanting.push(&self.holding.owner, entry);
            state.queued += 1;
            let (schedule, executor) = (self.schedule.clone(), self.executor);
            Reacquired::Later(Queued { schedule, executor, granted, wait, context: None })
        };
        let admitted = state.admit(self.executor);
        drop(state);
        self.schedule.start(admitted);
        reacquired
    }

    /// The same for a run that cannot be made to wait: its program has withdrawn its question and works already. The
    /// run counts, so no other run is admitted until the agent is below its limit again.
    pub(crate) fn reacquire_slot_at_once(&self) {
        self.change(|slots| slots.exchange(&self.holding, Holding::Slot));
    }

    /// Changes what this permit holds, and admits the runs that find a slot then.
    fn change(&self, change: impl FnOnce(&mut AgentSlots)) {
        let mut state = lock(&self.schedule.state);
        change(&mut state.agents[self.executor]);
        let admitted = state.admit(self.executor);
        drop(state);
        self.schedule.start(admitted);
    }

    /// Updates the wait reason of the next task in the queue of the context.
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

    /// Releases everything, once. Returns the admitted runs.
    #[must_use]
    pub(super) fn give_back(&mut self) -> Vec<QueueEntry> {
        let Some(context) = self.context.take() else { return Vec::new() };
        let mut state = lock(&self.schedule.state);
        state.agents[self.executor].exchange(&self.holding, Holding::Nothing);
        let mut admitted = Vec::new();
        let next = state.advance(&context, &mut admitted).filter(|next| *next != self.executor);
        admitted.extend(state.admit(self.executor));
        // The next task of the context may be executed by another agent.
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
