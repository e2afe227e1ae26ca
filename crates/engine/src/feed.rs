//! All topics in memory. A topic exists as long as somebody holds a lease on it.

use std::sync::Arc;

use sabir_model::{AgentId, Owner, TaskId};

use crate::sharded::Sharded;
use crate::topic::{Topic, TopicKey};

pub(crate) struct Feed {
    /// A list for each id: callers who choose their own ids can use the same id at several agents. Nearly always it has
    /// one entry.
    topics: Sharded<(Owner, TaskId), Vec<Slot>>,
}

struct Slot {
    topic: Arc<Topic>,
    leases: usize,
}

/// Keeps a topic in memory.
pub(crate) struct Lease {
    feed: Arc<Feed>,
    topic: Arc<Topic>,
}

impl Feed {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { topics: Sharded::new() })
    }

    /// Opens the topic of this task; creates it if it is not in memory.
    pub(crate) fn open(self: &Arc<Self>, key: TopicKey) -> Lease {
        let mut shard = self.topics.shard(&(key.owner.clone(), key.task.clone()));
        let slots = shard.entry((key.owner.clone(), key.task.clone())).or_default();
        if let Some(slot) = slots.iter_mut().find(|slot| slot.topic.key.agent == key.agent) {
            return self.lease(slot);
        }
        let mut slot = Slot { topic: Arc::new(Topic::new(key)), leases: 0 };
        let lease = self.lease(&mut slot);
        slots.push(slot);
        lease
    }

    /// The topic of this task, if it is in memory.
    pub(crate) fn find(self: &Arc<Self>, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> Option<Lease> {
        let key = (owner.clone(), task.clone());
        let mut shard = self.topics.shard(&key);
        let slots = shard.get_mut(&key)?;
        let slot = slots.iter_mut().rev().find(|slot| agent.is_none_or(|agent| slot.topic.key.agent == *agent))?;
        Some(self.lease(slot))
    }

    /// Takes a topic out of the feed. Those who have a lease on it keep it, and nobody finds it any more.
    pub(crate) fn detach(&self, lease: &Lease) {
        let key = (lease.key.owner.clone(), lease.key.task.clone());
        let mut shard = self.topics.shard(&key);
        if let Some(slots) = shard.get_mut(&key) {
            slots.retain(|slot| !Arc::ptr_eq(&slot.topic, &lease.topic));
            if slots.is_empty() {
                shard.remove(&key);
            }
        }
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Topic)) {
        self.topics.for_each(|_, slots| {
            for slot in slots {
                visit(&slot.topic);
            }
        });
    }

    fn lease(self: &Arc<Self>, slot: &mut Slot) -> Lease {
        slot.leases += 1;
        Lease { feed: self.clone(), topic: slot.topic.clone() }
    }
}

impl Lease {
    /// Whether both leases are on the same topic.
    pub(crate) fn is_of(&self, other: &Lease) -> bool {
        Arc::ptr_eq(&self.topic, &other.topic)
    }
}

impl std::ops::Deref for Lease {
    type Target = Topic;

    fn deref(&self) -> &Topic {
        &self.topic
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let key = (self.topic.key.owner.clone(), self.topic.key.task.clone());
        let mut shard = self.feed.topics.shard(&key);
        let Some(slots) = shard.get_mut(&key) else { return };
        if let Some(at) = slots.iter().position(|slot| Arc::ptr_eq(&slot.topic, &self.topic)) {
            slots[at].leases -= 1;
            if slots[at].leases == 0 {
                slots.swap_remove(at);
            }
        }
        if slots.is_empty() {
            shard.remove(&key);
        }
    }
}
