//! Caches the topics of tasks that wait for their next message, after their driver and their readers are gone.
//!
//! With a cached topic, the cost of a turn does not depend on the number of earlier turns. Without it, the whole task
//! is read first.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::feed::{Feed, Lease};
use crate::sharded::lock;

const MAX_TOPICS: usize = 1024;
const MAX_WEIGHT: usize = 32 << 20;

#[derive(Default)]
pub(crate) struct TopicCache {
    cached: Mutex<CachedTopics>,
}

#[derive(Default)]
struct CachedTopics {
    /// The oldest first.
    leases: VecDeque<Lease>,
    weight: usize,
}

impl TopicCache {
    /// Caches the topic if its task waits for a message, and removes it if the task has ended. Evicts the oldest topics
    /// beyond the limits of number and weight.
    pub(crate) fn keep(&self, feed: &Arc<Feed>, topic: &Lease) {
        if !topic.is_waiting() {
            return drop(self.remove(topic));
        }
        let weight = topic.weight().max(1);
        let mut evicted = Vec::new();
        {
            let mut cached = lock(&self.cached);
            let before = topic.cached_weight.swap(weight, Ordering::Relaxed);
            cached.weight = cached.weight + weight - before;
            if before == 0 {
                cached.leases.push_back(feed.open(topic.key.clone()));
            }
            while cached.leases.len() > MAX_TOPICS || cached.weight > MAX_WEIGHT {
                let Some(lease) = cached.leases.pop_front() else { break };
                cached.weight -= lease.cached_weight.swap(0, Ordering::Relaxed);
                evicted.push(lease);
            }
        }
        // Dropped after the lock is released: dropping a lease takes the lock of its shard.
        drop(evicted);
    }

    /// Stops caching a topic.
    pub(crate) fn forget(&self, topic: &Lease) {
        drop(self.remove(topic));
    }

    /// An ended task is read from the store, where retention may delete it.
    fn remove(&self, topic: &Lease) -> Option<Lease> {
        if topic.cached_weight.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut cached = lock(&self.cached);
        let place = cached.leases.iter().position(|lease| lease.is_of(topic))?;
        cached.weight -= topic.cached_weight.swap(0, Ordering::Relaxed);
        cached.leases.remove(place)
    }
}
