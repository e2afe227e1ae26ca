//! Token buckets, one per caller, in bounded memory.
//!
//! A bucket is one number: the time at which it will be full again (the generic cell rate algorithm). Each request moves
//! that time one interval further; a request that would move it further than the burst allows is refused. A bucket whose
//! time has passed is full, so it need not be kept.
//!
//! There are at most `MAX_BUCKETS`. When a shard is full, full buckets are dropped. If there are none, as many callers as
//! that are active at the same time; whoever comes new then shares one bucket with all others that come new, so a flood of
//! addresses costs neither memory nor more work than that.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use sabir_model::CallerKey;

pub(super) const MAX_BUCKETS: usize = 65_536;
const SHARDS: usize = 16;
/// Looking for full buckets takes a walk through the shard, so it is not done more often than this, in nanoseconds.
const PURGE_INTERVAL: u64 = 100_000_000;

/// In nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    interval: u64,
    /// How far ahead of now the time of a bucket may be.
    depth: u64,
}

impl Rate {
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        let interval = 1_000_000_000 / u64::from(per_second.max(1));
        Self { interval, depth: interval * u64::from(burst.max(1)) }
    }

    /// Counts a request in a bucket. The error is how long to wait.
    fn count(&self, full_at: &mut u64, now: u64) -> Result<(), u64> {
        let next = now.max(*full_at) + self.interval;
        match (next - now).checked_sub(self.depth) {
            None | Some(0) => {
                *full_at = next;
                Ok(())
            }
            Some(wait) => Err(wait),
        }
    }
}

pub(super) struct Buckets {
    rate: Rate,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    full_at: HashMap<CallerKey, u64>,
    /// Of all callers that have no bucket of their own.
    shared: u64,
    next_purge: u64,
}

impl Buckets {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, hasher: RandomState::new(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Counts a request, at so many nanoseconds since the start. The error is how long to wait.
    pub(super) fn admit(&self, key: CallerKey, now: u64) -> Result<(), u64> {
        let shard = &self.shards[self.hasher.hash_one(&key) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = shard.full_at.get_mut(&key) {
            return self.rate.count(full_at, now);
        }
        if shard.full_at.len() >= MAX_BUCKETS / SHARDS && now >= shard.next_purge {
            shard.full_at.retain(|_, full_at| *full_at > now);
            shard.next_purge = now + PURGE_INTERVAL;
        }
        if shard.full_at.len() >= MAX_BUCKETS / SHARDS {
            return self.rate.count(&mut shard.shared, now);
        }
        let mut full_at = 0;
        let admitted = self.rate.count(&mut full_at, now);
        shard.full_at.insert(key, full_at);
        admitted
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().full_at.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn peer(number: u32) -> CallerKey {
        CallerKey::Peer(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn a_flood_of_addresses_takes_bounded_memory_and_little_service() {
        let buckets = Buckets::new(Rate::new(1, 1));
        let admitted = (0..500_000).filter(|number| buckets.admit(peer(*number), 0).is_ok()).count();
        assert_eq!(buckets.count(), MAX_BUCKETS);
        assert_eq!(admitted, MAX_BUCKETS + SHARDS, "the rest shares a bucket in each shard");
        // Whoever has a bucket keeps it.
        let first = (0..1000).filter(|number| buckets.admit(peer(*number), SECOND - 1).is_ok()).count();
        assert_eq!(first, 0);
        // When the flood is over, its buckets make room.
        for number in 0..10_000 {
            assert!(buckets.admit(peer(1_000_000 + number), 10 * SECOND).is_ok(), "{number}");
        }
        assert!(buckets.count() <= MAX_BUCKETS);
    }

    #[test]
    fn a_purge_is_not_done_for_every_request() {
        let buckets = Buckets::new(Rate::new(1, 1000));
        for number in 0..200_000 {
            let _ = buckets.admit(peer(number), 0);
        }
        let purges = || buckets.shards.iter().map(|shard| shard.lock().unwrap().next_purge).collect::<Vec<_>>();
        let before = purges();
        for number in 200_000..300_000 {
            let _ = buckets.admit(peer(number), PURGE_INTERVAL - 1);
        }
        assert_eq!(purges(), before);
    }

    #[test]
    fn tokens_come_back_at_the_rate() {
        let buckets = Buckets::new(Rate::new(4, 2));
        let admit = |now: u64| buckets.admit(peer(1), now);
        for (now, expected) in [
            (0, Ok(())),
            (0, Ok(())),
            (0, Err(SECOND / 4)),
            (SECOND / 4 - 1, Err(1)),
            (SECOND / 4, Ok(())),
            (SECOND / 4, Err(SECOND / 4)),
            (10 * SECOND, Ok(())),
            (10 * SECOND, Ok(())),
            (10 * SECOND, Err(SECOND / 4)),
        ] {
            assert_eq!(admit(now), expected, "{now}");
        }
    }
}
