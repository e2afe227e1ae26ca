//! Topics of tasks that wait for their next message, kept for a while although nobody works on them or watches them.
//!
//! With its topic in memory a turn costs the same however many came before it; without, the whole task is read first.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::feed::{Feed, Lease};
use crate::sharded::lock;

const MAX_TOPICS: usize = 1024;
const MAX_WEIGHT: usize = 32 << 20;

#[derive(Default)]
pub(crate) struct WarmTopics {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The oldest first.
    leases: VecDeque<Lease>,
    weight: usize,
}

impl WarmTopics {
    /// Keeps the topic if its task waits for a message, and lets it go when the task has ended; the oldest go when there
    /// are too many or too much.
    pub(crate) fn keep(&self, feed: &Arc<Feed>, topic: &Lease) {
        if !topic.is_waiting() {
            return drop(self.forget(topic));
        }
        let weight = topic.weight().max(1);
        let mut cold = Vec::new();
        {
            let mut kept = lock(&self.kept);
            let before = topic.warm_weight.swap(weight, Ordering::Relaxed);
            kept.weight = kept.weight + weight - before;
            if before == 0 {
                kept.leases.push_back(feed.open(topic.key.clone()));
            }
            while kept.leases.len() > MAX_TOPICS || kept.weight > MAX_WEIGHT {
                let Some(lease) = kept.leases.pop_front() else { break };
                kept.weight -= lease.warm_weight.swap(0, Ordering::Relaxed);
                cold.push(lease);
            }
        }
        // Dropped without the lock: a lease takes that of its shard.
        drop(cold);
    }

    /// A task that has ended is read from the store, where retention may delete it.
    fn forget(&self, topic: &Lease) -> Option<Lease> {
        if topic.warm_weight.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut kept = lock(&self.kept);
        let place = kept.leases.iter().position(|lease| lease.is_of(topic))?;
        kept.weight -= topic.warm_weight.swap(0, Ordering::Relaxed);
        kept.leases.remove(place)
    }
}
