//! Counts what each key has at the same time. Whoever counts holds a `Place`; dropping it counts down.
//!
//! Keys that have nothing are not kept. Checking and counting is one step under one lock, so two callers cannot both take
//! the last place.

use std::hash::Hash;
use std::sync::Arc;

use crate::sharded::Sharded;

pub(crate) struct Places<K> {
    counts: Sharded<K, usize>,
}

pub(crate) struct Place<K: Hash + Eq + Clone> {
    places: Arc<Places<K>>,
    key: K,
    is_counted: bool,
}

impl<K: Hash + Eq + Clone> Places<K> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { counts: Sharded::new() })
    }

    /// Takes a place, unless the key has so many already.
    pub(crate) fn take_within(self: &Arc<Self>, key: K, limit: usize) -> Option<Place<K>> {
        let mut counts = self.counts.shard(&key);
        let count = counts.get(&key).copied().unwrap_or_default();
        if count >= limit {
            return None;
        }
        counts.insert(key.clone(), count + 1);
        drop(counts);
        Some(Place { places: self.clone(), key, is_counted: true })
    }

    /// Takes a place beyond any limit.
    pub(crate) fn take(self: &Arc<Self>, key: K) -> Place<K> {
        let mut place = Place { places: self.clone(), key, is_counted: false };
        place.set_counted(true);
        place
    }

    pub(crate) fn total(&self) -> usize {
        let mut total = 0;
        self.counts.for_each(|_, count| total += count);
        total
    }
}

impl<K: Hash + Eq + Clone> Place<K> {
    /// Counts, or does not count for a while.
    pub(crate) fn set_counted(&mut self, is_counted: bool) {
        if self.is_counted == is_counted {
            return;
        }
        self.is_counted = is_counted;
        let mut counts = self.places.counts.shard(&self.key);
        if is_counted {
            *counts.entry(self.key.clone()).or_default() += 1;
        } else if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

impl<K: Hash + Eq + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        self.set_counted(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn the_last_place_is_taken_once() {
        for limit in [0, 1, 7] {
            let places = Places::new();
            let barrier = Barrier::new(16);
            let taken: Vec<_> = thread::scope(|scope| {
                let all: Vec<_> = (0..16)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            places.take_within("alice", limit)
                        })
                    })
                    .collect();
                all.into_iter().filter_map(|one| one.join().unwrap()).collect()
            });
            assert_eq!((taken.len(), places.total()), (limit, limit));
            assert!(places.take_within("bob", 1).is_some(), "each key has places of its own");
            drop(taken);
            assert_eq!(places.total(), 0);
            places.counts.for_each(|key, _| panic!("{key} is kept"));
        }
    }

    #[test]
    fn a_place_can_be_left_for_a_while() {
        let places = Places::new();
        let mut first = places.take_within("alice", 1).unwrap();
        assert!(places.take_within("alice", 1).is_none());
        first.set_counted(false);
        let second = places.take_within("alice", 1);
        assert!(second.is_some());
        first.set_counted(true);
        assert_eq!(places.total(), 2, "who returns is not refused");
        drop((first, second));
        assert_eq!(places.total(), 0);
    }
}
