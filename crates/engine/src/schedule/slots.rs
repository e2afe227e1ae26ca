//! The slots of one agent, which bound how many of its runs work at the same time.
//!
//! The `Holding` of a run says what it has of them. Every change goes through `exchange`, which keeps the counters:
//!
//! | holding          | counter               | when                                                                |
//! |------------------|-----------------------|---------------------------------------------------------------------|
//! | `Slot`           | `running`             | the run works                                                       |
//! | `SlotWhileAsking`| `running`             | it asks its caller, but `max_parked` runs are parked already        |
//! | `Parked`         | `parked`              | it asks its caller                                                  |
//! | `WaitsForFolder` | `waiting_for_folders` | its working folder is in use                                        |
//! | `WaitsForSlot`   | none                  | it was answered or got its folder, and all slots are in use         |
//! | `NeedsNone`      | none                  | its task is delegated, whatever it does until it is over            |
//! | `Nothing`        | none                  | it is over                                                          |
//!
//! At most `Limits::max_parked` runs of an agent release their slots. A further run asks its caller too, but keeps its
//! slot: nothing is lost, and the agent runs one task fewer until one of them is answered.
//!
//! Who gets a slot next is said by `fair_queue.rs`: owners take turns. Of one owner, runs that return for a slot go before
//! runs that have not begun: they keep a program alive, and there is only a limited number of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use sabir_model::Owner;

use super::fair_queue::FairQueue;
use super::owner_counts::OwnerCounts;
use crate::Limits;

pub(super) struct AgentSlots {
    pub(super) limit: usize,
    pub(super) queue: usize,
    pub(super) max_parked: usize,
    pub(super) running: usize,
    pub(super) parked: usize,
    /// Tasks in the queue for their first slot.
    pub(super) waiting: OwnerCounts,
    /// Runs that released their slot to wait for their working folder.
    pub(super) waiting_for_folders: OwnerCounts,
    /// Runs that ask their callers and keep their slots, since too many are parked.
    asking_with_slot: VecDeque<Arc<HoldingCell>>,
    /// Runs that want a slot: tasks that have their context and have not begun, and runs that had a slot before.
    pub(super) wanting: FairQueue,
}

/// What a run has of its agent's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Holding {
    Slot,
    SlotWhileAsking,
    Parked,
    WaitsForFolder,
    WaitsForSlot,
    NeedsNone,
    Nothing,
}

impl Holding {
    const ALL: [Holding; 7] = [
        Holding::Slot,
        Holding::SlotWhileAsking,
        Holding::Parked,
        Holding::WaitsForFolder,
        Holding::WaitsForSlot,
        Holding::NeedsNone,
        Holding::Nothing,
    ];

    pub(super) fn has_slot(self) -> bool {
        matches!(self, Holding::Slot | Holding::SlotWhileAsking | Holding::NeedsNone)
    }
}

/// The holding of one run. Changed only under the lock of the schedule; read at any time.
pub(super) struct HoldingCell {
    holding: AtomicU8,
    pub(super) owner: Owner,
}

impl HoldingCell {
    pub(super) fn new(holding: Holding, owner: Owner) -> Self {
        Self { holding: AtomicU8::new(holding as u8), owner }
    }

    pub(super) fn get(&self) -> Holding {
        Holding::ALL[usize::from(self.holding.load(Ordering::Acquire))]
    }

    fn replace(&self, holding: Holding) -> Holding {
        Holding::ALL[usize::from(self.holding.swap(holding as u8, Ordering::AcqRel))]
    }
}

impl AgentSlots {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.concurrent.max(1),
            queue: limits.queue,
            max_parked: limits.max_parked,
            running: 0,
            parked: 0,
            waiting: OwnerCounts::default(),
            waiting_for_folders: OwnerCounts::default(),
            asking_with_slot: VecDeque::new(),
            wanting: FairQueue::default(),
        }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.running < self.limit && !self.wanting.has_returning()
    }

    /// Whether the queue has a place for a further task of this owner. In a full queue, an owner that has nothing waiting
    /// gets one place, so that nobody can fill it for all others; beyond twice the bound nobody does.
    pub(super) fn has_place_in_queue(&self, owner: &Owner, bound: usize) -> bool {
        // A run with a slot may still have to wait for its folder, so runs that wait for folders count as queued.
        let queued = self.waiting.total() + self.waiting_for_folders.total();
        let has_none = || self.waiting.of(owner) + self.waiting_for_folders.of(owner) == 0;
        queued < bound || (queued < bound.saturating_mul(2) && has_none())
    }

    /// Replaces the holding of a run and updates the counters.
    pub(super) fn exchange(&mut self, cell: &Arc<HoldingCell>, instead: Holding) {
        if cell.get() == Holding::NeedsNone && instead != Holding::Nothing {
            return;
        }
        match cell.replace(instead) {
            Holding::Slot => self.running -= 1,
            Holding::SlotWhileAsking => {
                self.running -= 1;
                self.asking_with_slot.retain(|asking| !Arc::ptr_eq(asking, cell));
            }
            Holding::Parked => self.unpark_one(),
            Holding::WaitsForFolder => self.waiting_for_folders.remove(&cell.owner),
            Holding::WaitsForSlot | Holding::NeedsNone | Holding::Nothing => {}
        }
        match instead {
            Holding::Slot => self.running += 1,
            Holding::SlotWhileAsking => {
                self.running += 1;
                self.asking_with_slot.push_back(cell.clone());
            }
            Holding::Parked => self.parked += 1,
            Holding::WaitsForFolder => self.waiting_for_folders.add(&cell.owner),
            Holding::WaitsForSlot | Holding::NeedsNone | Holding::Nothing => {}
        }
    }

    /// One run fewer is parked, so a run that asks with its slot can be parked instead.
    fn unpark_one(&mut self) {
        self.parked -= 1;
        while self.parked < self.max_parked
            && let Some(asking) = self.asking_with_slot.pop_front()
        {
            asking.replace(Holding::Parked);
            self.running -= 1;
            self.parked += 1;
        }
    }
}
