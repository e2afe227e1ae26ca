//! A hash map in shards, so that unrelated tasks do not share a lock.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 32;

pub(crate) struct Sharded<K, V> {
    hasher: RandomState,
    shards: [Mutex<HashMap<K, V>>; SHARDS],
}

impl<K: Hash + Eq, V> Sharded<K, V> {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Locks the shard of this key. Hold the lock briefly, and never across an await.
    pub(crate) fn shard(&self, key: &K) -> MutexGuard<'_, HashMap<K, V>> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&K, &V)) {
        for shard in &self.shards {
            for (key, value) in lock(shard).iter() {
                visit(key, value);
            }
        }
    }
}

/// Locks a mutex and ignores poisoning: each critical section is a single insert, removal or push, so a panic cannot
/// leave half a change behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
