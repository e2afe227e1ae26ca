//! Tasks that are read from the store: each once for all who ask for it at the same time.
//!
//! A large task is remembered for as long as somebody holds it, for example because its reply is read slowly. Others
//! who ask meanwhile share it, so a hundred slow readers of one task cost the memory of one.

use std::sync::{Arc, Weak};

use sabir_model::Task;
use sabir_store::{Store, StoreError};
use tokio::sync::OnceCell;

use crate::log_entry::task_weight;
use crate::sharded::Sharded;
use crate::topic::TopicKey;

/// A smaller task is not worth remembering.
const MIN_SHARED_WEIGHT: usize = 64 * 1024;
/// When a piece of the map has more entries than this, those whose readers have gone are removed.
const MAX_STALE_ENTRIES: usize = 64;

pub(crate) struct SharedReads {
    reads: Sharded<TopicKey, ReadEntry>,
}

enum ReadEntry {
    /// Somebody reads it at this moment.
    InProgress(Weak<Reading>),
    /// Somebody holds it.
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
        // A read that was under way already may be older than what the caller knows of.
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
        // The same name may be another task by now, of as many events.
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
