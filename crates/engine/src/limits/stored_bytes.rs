//! How many bytes the tasks of each owner take in the store, for `CallerLimits::stored_bytes`.
//!
//! The store is counted when the engine starts; after that every append says how much it added. What retention deletes is not
//! followed: a sweep makes the counts stale, and the first owner that would be refused by stale counts has the store counted
//! again. So the whole store is read at most once per sweep, and only while somebody is at the limit. Beside other nodes, whose
//! appends and sweeps are not seen here, counts are also stale after a while.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_model::{Caller, Error, Owner};
use sabir_store::{Store, StoreError};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::sharded::lock;

/// When an owner that is at the limit may try again, in seconds. Retention needs time.
const RETRY_AFTER: u32 = 3600;
/// How long counts are believed beside other nodes, before an owner is refused.
const BELIEVED: Duration = Duration::from_secs(300);

pub(crate) struct StoredBytes {
    limit: u64,
    counts: Mutex<Counts>,
    /// Tasks were deleted after the last count, so owners may have less than `counts` says.
    is_stale: AtomicBool,
    /// Held while the store is counted, so that it is counted once for all who wait.
    counting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Counts {
    of_owners: HashMap<Owner, u64>,
    /// What was added since a count began that is not finished.
    since_count_began: Option<HashMap<Owner, i64>>,
    counted: Option<Instant>,
}

impl StoredBytes {
    pub(crate) fn new(limit: u64) -> Self {
        let (counts, counting) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { limit, counts, is_stale: AtomicBool::new(true), counting }
    }

    /// After an append that added so many bytes.
    pub(crate) fn add(&self, owner: &Owner, bytes: i64) {
        let mut counts = lock(&self.counts);
        let Counts { of_owners, since_count_began, .. } = &mut *counts;
        match of_owners.get_mut(owner) {
            Some(count) => *count = count.saturating_add_signed(bytes),
            None => drop(of_owners.insert(owner.clone(), u64::try_from(bytes).unwrap_or(0))),
        }
        if let Some(added) = since_count_began {
            *added.entry(owner.clone()).or_default() += bytes;
        }
    }

    /// After tasks were deleted or got another owner.
    pub(crate) fn set_stale(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Beside other nodes, which delete tasks too.
    fn set_stale_after(&self, age: Duration) {
        if lock(&self.counts).counted.is_none_or(|counted| counted.elapsed() >= age) {
            self.set_stale();
        }
    }

    /// Counts the store, unless that was done since the counts became stale.
    pub(crate) async fn count(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _counting = self.counting.lock().await;
        if !self.is_stale.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        lock(&self.counts).since_count_began = Some(HashMap::new());
        let counted = store.stored_bytes().await;
        let mut counts = lock(&self.counts);
        let added = counts.since_count_began.take().unwrap_or_default();
        match counted {
            Ok(counted) => {
                counts.of_owners = counted.into_iter().collect();
                counts.counted = Some(Instant::now());
                drop(counts);
                // The store may have counted some of these too. Too much is counted then until the next count, never too little.
                for (owner, bytes) in added {
                    self.add(&owner, bytes);
                }
                Ok(())
            }
            Err(error) => {
                self.set_stale();
                Err(error)
            }
        }
    }

    fn of(&self, owner: &Owner) -> u64 {
        lock(&self.counts).of_owners.get(owner).copied().unwrap_or_default()
    }
}

impl Engine {
    /// Counts the store if the counts are stale, to the end also when the caller goes away: it must not be begun again for
    /// each caller that does.
    pub(crate) async fn count_stored_bytes(&self) -> Result<(), Error> {
        let core = self.core.clone();
        let counting = tokio::spawn(async move {
            match &core.stored_bytes {
                Some(stored) => stored.count(&*core.store).await,
                None => Ok(()),
            }
        });
        Ok(counting.await.map_err(|error| Error::internal(error.to_string()))??)
    }

    /// How many bytes the tasks of an owner take, as far as is known; `None`: there is no limit, and nothing is counted.
    pub fn stored_bytes_of(&self, owner: &Owner) -> Option<u64> {
        self.core.stored_bytes.as_ref().map(|stored| stored.of(owner))
    }

    /// Refuses a new task or a follow-up message of an owner whose tasks take as much as they may. Several sends at once may
    /// all be admitted before the first of them is stored.
    pub(crate) async fn check_stored_bytes(&self, caller: &Caller, owner: &Owner) -> Result<(), Error> {
        let Some(stored) = &self.core.stored_bytes else { return Ok(()) };
        if stored.of(owner) < stored.limit {
            return Ok(());
        }
        if self.core.membership.is_some() {
            stored.set_stale_after(BELIEVED);
        }
        if let Err(error) = self.count_stored_bytes().await {
            tracing::warn!(%error, "cannot count the stored bytes again; what was known before holds");
        }
        let (bytes, limit) = (stored.of(owner), stored.limit);
        if bytes < limit {
            return Ok(());
        }
        let whose = if caller.owner == *owner { "your tasks" } else { "the tasks of its owner" };
        Err(Error::LimitReached {
            sentence: format!(
                "{whose} take {bytes} of {limit} bytes; wait until old ones are deleted by retention, or ask the operator \
                 for more"
            ),
            retry_after: RETRY_AFTER,
        })
    }
}

#[cfg(test)]
mod tests {
    use sabir_store::MemoryStore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_are_stale_after_a_while_beside_other_nodes() {
        let stored = StoredBytes::new(10);
        let store = MemoryStore::new();
        stored.count(&store).await.unwrap();
        stored.add(&Owner::new("org", "alice"), 7);
        for (passed, expected) in [(0, 7), (299, 7), (1, 0)] {
            tokio::time::advance(Duration::from_secs(passed)).await;
            stored.set_stale_after(BELIEVED);
            stored.count(&store).await.unwrap();
            // The store knows nothing of these bytes: another node has deleted their task.
            assert_eq!(stored.of(&Owner::new("org", "alice")), expected, "after {passed} s more");
        }
    }

    #[tokio::test]
    async fn changes_are_added_and_a_count_replaces_them() {
        let stored = StoredBytes::new(10);
        let (alice, bob) = (Owner::new("org", "alice"), Owner::new("org", "bob"));
        let store = MemoryStore::new();
        stored.count(&store).await.unwrap();
        for (owner, bytes, expected) in [(&alice, 7, 7), (&bob, 2, 2), (&alice, -3, 4), (&bob, -9, 0), (&alice, 1, 5)] {
            stored.add(owner, bytes);
            assert_eq!(stored.of(owner), expected);
        }
        stored.count(&store).await.unwrap();
        assert_eq!(stored.of(&alice), 5, "nothing was deleted, so nothing is counted");
        stored.set_stale();
        stored.count(&store).await.unwrap();
        assert_eq!(stored.of(&alice), 0);
    }
}
