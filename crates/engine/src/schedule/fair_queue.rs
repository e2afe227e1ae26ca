//! The queue of one agent: owners take turns, so an owner with many waiting runs does not delay the first run of another.
//!
//! Each owner that has something waiting has a lane. Lanes are served one entry at a time in a circle; the owner that was
//! served last goes after all others. Within a lane, runs that return for a slot go first, then tasks that have not begun,
//! each in order of arrival. With one owner that is the order of arrival, and nothing is hashed or allocated for it.
//!
//! ```text
//! front                         back
//! [bob: 1 2] [carol: 7] [alice: 3 4 5 6]     next: bob 1, carol 7, alice 3, bob 2, alice 4, ...
//! ```
//!
//! The position of a lane is its number minus that of the front lane, so a lane that moves from the front to the back
//! costs one update of the index, however many owners wait.

use std::collections::{HashMap, VecDeque};

use sabir_model::Owner;

use super::queue::{QueueEntry, Wants};

#[derive(Default)]
pub(super) struct FairQueue {
    lanes: VecDeque<Lane>,
    /// The number of the front lane.
    front: u64,
    /// The number of each lane; empty while there is only one.
    numbers: HashMap<Owner, u64>,
    last_served: Option<Owner>,
    /// Entries of runs that return for a slot, abandoned or not.
    returning: usize,
    /// All entries, abandoned or not.
    entries: usize,
}

struct Lane {
    owner: Owner,
    /// Runs that were answered or have got their folder, and want a slot again.
    returning: VecDeque<QueueEntry>,
    /// Tasks that have their context and have not begun.
    ready: VecDeque<QueueEntry>,
}

impl Lane {
    fn new(owner: &Owner) -> Self {
        Self { owner: owner.clone(), returning: VecDeque::new(), ready: VecDeque::new() }
    }

    fn is_empty(&self) -> bool {
        self.returning.is_empty() && self.ready.is_empty()
    }
}

impl FairQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(super) fn has_returning(&self) -> bool {
        self.returning > 0
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    #[cfg(test)]
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// All entries, abandoned or not, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &QueueEntry> {
        self.lanes.iter().flat_map(|lane| lane.returning.iter().chain(&lane.ready))
    }

    /// An owner got a slot without waiting.
    pub(super) fn note_served(&mut self, owner: &Owner) {
        if self.last_served.as_ref() != Some(owner) {
            self.last_served = Some(owner.clone());
        }
    }

    pub(super) fn push(&mut self, owner: &Owner, entry: QueueEntry) {
        self.entries += 1;
        let is_returning = matches!(entry.wants, Wants::Slot { .. });
        self.returning += usize::from(is_returning);
        let lane = self.lane(owner);
        if is_returning { &mut lane.returning } else { &mut lane.ready }.push_back(entry);
    }

    /// Takes the next entry. Adds the abandoned entries that it skips to `skipped`.
    pub(super) fn pop(&mut self, skipped: &mut usize) -> Option<QueueEntry> {
        if self.lanes.len() > 1 && self.lanes.front().map(|lane| &lane.owner) == self.last_served.as_ref() {
            self.rotate();
        }
        while self.entries > 0 {
            let lane = self.lanes.front_mut()?;
            while let Some(entry) = lane.returning.pop_front().or_else(|| lane.ready.pop_front()) {
                self.entries -= 1;
                self.returning -= usize::from(matches!(entry.wants, Wants::Slot { .. }));
                if entry.wait.is_abandoned() {
                    *skipped += 1;
                    continue;
                }
                self.serve_front();
                return Some(entry);
            }
            self.drop_empty_front();
        }
        None
    }

    pub(super) fn remove_abandoned(&mut self) {
        for lane in &mut self.lanes {
            lane.returning.retain(|entry| !entry.wait.is_abandoned());
            lane.ready.retain(|entry| !entry.wait.is_abandoned());
        }
        // The lanes that are empty now go when their turn comes, like others.
        self.returning = self.lanes.iter().map(|lane| lane.returning.len()).sum();
        self.entries = self.returning + self.lanes.iter().map(|lane| lane.ready.len()).sum::<usize>();
        if self.entries == 0 {
            self.lanes.truncate(1);
            self.numbers.clear();
        }
    }

    fn lane(&mut self, owner: &Owner) -> &mut Lane {
        if self.lanes.is_empty() {
            self.lanes.push_back(Lane::new(owner));
        }
        let place = match &mut self.lanes[0] {
            only if self.numbers.is_empty() && only.owner == *owner => 0,
            // The memory of the lane is used again.
            only if self.numbers.is_empty() && only.is_empty() => {
                only.owner = owner.clone();
                0
            }
            _ => self.place_among_many(owner),
        };
        &mut self.lanes[place]
    }

    fn place_among_many(&mut self, owner: &Owner) -> usize {
        if self.numbers.is_empty() {
            self.numbers.insert(self.lanes[0].owner.clone(), self.front);
        }
        let next = self.front + self.lanes.len() as u64;
        let number = *self.numbers.entry(owner.clone()).or_insert(next);
        if number == next {
            self.lanes.push_back(Lane::new(owner));
        }
        (number - self.front) as usize
    }

    /// The front lane was served: it goes to the back, or leaves if it is empty.
    fn serve_front(&mut self) {
        let Some(lane) = self.lanes.front() else { return };
        if self.last_served.as_ref() != Some(&lane.owner) {
            self.last_served = Some(lane.owner.clone());
        }
        match lane.is_empty() {
            true => self.drop_empty_front(),
            false => self.rotate(),
        }
    }

    fn rotate(&mut self) {
        if self.lanes.len() < 2 {
            return;
        }
        let Some(lane) = self.lanes.pop_front() else { return };
        self.front += 1;
        if let Some(number) = self.numbers.get_mut(&lane.owner) {
            *number = self.front + self.lanes.len() as u64;
        }
        self.lanes.push_back(lane);
    }

    /// The last lane stays, for the next entry.
    fn drop_empty_front(&mut self) {
        if self.lanes.len() < 2 {
            return;
        }
        if let Some(lane) = self.lanes.pop_front() {
            self.front += 1;
            self.numbers.remove(&lane.owner);
        }
        if self.lanes.len() == 1 {
            self.numbers.clear();
        }
    }
}
