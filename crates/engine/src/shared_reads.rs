//! Shares reads of whole tasks: concurrent readers of one task cause one read of the store.
//!
//! A large task is also shared as long as a reader holds it, for example because its connection is slow. So a hundred
//! slow readers of one task need the memory of one.

use std::sync::{Arc, Weak};

use sabir_model::Task;
use sabir_store::{Store, StoreError};
use tokio::sync::OnceCell;

use crate::log_entry::task_weight;
use crate::sharded::Sharded;
use crate::topic::TopicKey;

/// Smaller tasks are not shared after the read.
const MIN_SHARED_WEIGHT: usize = 64 * 1024;
/// A shard with more entries than this is cleared of those whose readers are gone.
const MAX_STALE_ENTRIES: usize = 64;

pub(crate) struct SharedReads {
    reads: Sharded<TopicKey, ReadEntry>,
}

enum ReadEntry {
    /// A reader is loading it.
    InProgress(Weak<Reading>),
    /// A reader holds it.
    Held(Weak<Task>),
}

type Reading = OnceCell<Option<Arc<Task>>>;

enum ReadAccess {
    First(Arc<Reading>),
    Joined(Arc<Reading>),
    Held(Arc<Task>),
}

impl SharedReads {
    pub(crate) fn new() -> Self {
        Self { reads: Sharded::new() }
    }

    pub(crate) async fn get(&self, store: &dyn Store, key: &TopicKey) -> Result<Option<Arc<Task>>, StoreError> {
        let (reading, is_first) = match self.access(key) {
            ReadAccess::Held(task) if self.is_newest(store, key, &task).await? => return Ok(Some(task)),
            ReadAccess::Held(_) => (Arc::default(), true),
            ReadAccess::First(reading) => (reading, true),
            ReadAccess::Joined(reading) => (reading, false),
        };
        let read = reading.get_or_try_init(|| async {
            let task = store.get(&key.owner, Some(&key.agent), &key.task).await?;
            Ok::<_, StoreError>(task.map(Arc::new))
        });
        let task = read.await?.clone();
        if is_first {
            self.remember(key, task.as_ref());
            return Ok(task);
        }
        // A read that was in progress already may be older than what the caller has seen.
        match task {
            Some(task) if self.is_newest(store, key, &task).await? => Ok(Some(task)),
            _ => Ok(store.get(&key.owner, Some(&key.agent), &key.task).await?.map(Arc::new)),
        }
    }

    fn access(&self, key: &TopicKey) -> ReadAccess {
        let mut shard = self.reads.shard(key);
        let known = shard.get(key).and_then(|read| match read {
            ReadEntry::InProgress(reading) => reading.upgrade().map(ReadAccess::Joined),
            ReadEntry::Held(task) => task.upgrade().map(ReadAccess::Held),
        });
        known.unwrap_or_else(|| {
            let reading = Arc::default();
            shard.insert(key.clone(), ReadEntry::InProgress(Arc::downgrade(&reading)));
            ReadAccess::First(reading)
        })
    }

    async fn is_newest(&self, store: &dyn Store, key: &TopicKey, task: &Task) -> Result<bool, StoreError> {
        let row = store.find(&key.owner, Some(&key.agent), &key.task).await?;
        // The id may belong to another task by now, one with as many events.
        Ok(row.is_some_and(|row| {
            (row.seq, row.created, row.time) == (task.seq, task.created, task.status.time)
                && row.context == task.context
        }))
    }

    fn remember(&self, key: &TopicKey, task: Option<&Arc<Task>>) {
        let mut shard = self.reads.shard(key);
        match task.filter(|task| task_weight(task) >= MIN_SHARED_WEIGHT) {
            Some(task) => drop(shard.insert(key.clone(), ReadEntry::Held(Arc::downgrade(task)))),
            None => drop(shard.remove(key)),
        }
        if shard.len() > MAX_STALE_ENTRIES {
            shard.retain(|_, read| match read {
                ReadEntry::InProgress(reading) => reading.strong_count() > 0,
                ReadEntry::Held(task) => task.strong_count() > 0,
            });
        }
    }
}
