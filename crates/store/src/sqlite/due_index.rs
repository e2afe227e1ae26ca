//! What is due at which receiver, and when, in memory.
//!
//! The rows in the file say when each delivery is due, and this is their index. In the file it would cost every send with a
//! webhook another page, and every look of the dispatcher a read. It is filled when the file is opened and changed after
//! each commit, so it shows nothing that is not stored.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_model::Timestamp;
use tokio::sync::Notify;

use crate::{DeliveryKind, TaskNo};

#[derive(Default)]
pub(super) struct DueIndex {
    entries: Mutex<Entries>,
    /// Notified after a commit that made something due.
    pub signal: Arc<Notify>,
}

#[derive(Default)]
struct Entries {
    pending: BTreeMap<u64, DueEntry>,
    given_up: BTreeMap<u64, DueEntry>,
    receivers: BTreeMap<Arc<str>, BTreeSet<Position>>,
    /// See `Outbox::ignore`.
    ignored: HashSet<String>,
}

/// The order of deliveries to one receiver: time, kind, number.
pub(super) type Position = (Timestamp, DeliveryKind, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueEntry {
    pub task: TaskNo,
    pub receiver: Arc<str>,
    pub due: Timestamp,
}

/// What a committed transaction changes: without an entry, the delivery is not due any more.
pub(super) struct DueChange {
    pub kind: DeliveryKind,
    pub number: u64,
    pub entry: Option<DueEntry>,
}

impl DueIndex {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether something is due at a receiver that is not ignored.
    pub fn apply(&self, changes: impl IntoIterator<Item = DueChange>) -> bool {
        let mut entries = self.lock();
        let mut is_due = false;
        for change in changes {
            let receiver = change.entry.as_ref().map(|entry| &*entry.receiver);
            is_due |= receiver.is_some_and(|receiver| !entries.ignored.contains(receiver));
            entries.apply(change);
        }
        is_due
    }

    pub fn ignore(&self, receivers: HashSet<String>) {
        self.lock().ignored = receivers;
    }

    pub fn find(&self, kind: DeliveryKind, number: u64) -> Option<DueEntry> {
        self.lock().of_kind(kind).get(&number).cloned()
    }

    /// How many webhooks have something to send.
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// Every receiver that something is due at, with the earliest time.
    pub fn receivers(&self) -> Vec<(String, Timestamp)> {
        let entries = self.lock();
        let first = |(name, due): (&Arc<str>, &BTreeSet<Position>)| Some((name.to_string(), due.first()?.0));
        entries.receivers.iter().filter_map(first).collect()
    }

    /// What is due at a receiver until a time and behind a position, in order, with the tasks.
    pub fn due(
        &self,
        receiver: &str,
        until: Timestamp,
        after: Option<Position>,
        limit: usize,
    ) -> Vec<(Position, TaskNo)> {
        let mut entries = self.lock();
        let Entries { pending, given_up, receivers, .. } = &mut *entries;
        let Some(due) = receivers.get(receiver) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let due = due.range((from, Bound::Unbounded)).take_while(|(time, ..)| *time <= until);
        let with_task = due.filter_map(|position| {
            let (_, kind, number) = position;
            let of_kind = if *kind == DeliveryKind::Pending { &*pending } else { &*given_up };
            Some((*position, of_kind.get(number)?.task))
        });
        with_task.take(limit).collect()
    }

    /// Deliveries of a kind in order of their numbers, which are above `after`.
    pub fn numbers(&self, kind: DeliveryKind, after: u64, limit: usize) -> Vec<(u64, TaskNo)> {
        let mut entries = self.lock();
        let later = entries.of_kind(kind).range((Bound::Excluded(after), Bound::Unbounded));
        later.take(limit).map(|(number, entry)| (*number, entry.task)).collect()
    }

    /// Everything that is due after a time.
    pub fn later_than(&self, time: Timestamp) -> Vec<(Position, DueEntry)> {
        let mut entries = self.lock();
        let mut later = Vec::new();
        for kind in [DeliveryKind::Pending, DeliveryKind::GivenUp] {
            let of_kind = entries.of_kind(kind).iter().filter(|(_, entry)| entry.due > time);
            later.extend(of_kind.map(|(number, entry)| ((entry.due, kind, *number), entry.clone())));
        }
        later
    }
}

impl Entries {
    fn of_kind(&mut self, kind: DeliveryKind) -> &mut BTreeMap<u64, DueEntry> {
        match kind {
            DeliveryKind::Pending => &mut self.pending,
            DeliveryKind::GivenUp => &mut self.given_up,
        }
    }

    fn apply(&mut self, DueChange { kind, number, mut entry }: DueChange) {
        // One name for all entries of a receiver.
        if let Some(entry) = &mut entry
            && let Some((receiver, _)) = self.receivers.get_key_value(&entry.receiver)
        {
            entry.receiver = receiver.clone();
        }
        let before = match &entry {
            Some(entry) => self.of_kind(kind).insert(number, entry.clone()),
            None => self.of_kind(kind).remove(&number),
        };
        if let Some(DueEntry { receiver, due, .. }) = before
            && let Some(positions) = self.receivers.get_mut(&receiver)
        {
            positions.remove(&(due, kind, number));
            if positions.is_empty() {
                self.receivers.remove(&receiver);
            }
        }
        if let Some(DueEntry { receiver, due, .. }) = entry {
            self.receivers.entry(receiver).or_default().insert((due, kind, number));
        }
    }
}
