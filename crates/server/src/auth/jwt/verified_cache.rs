//! Remembers verified tokens, so that a repeated one costs a digest and a look-up.
//!
//! Only verified tokens enter, under their SHA-256 digest; the token itself is not kept. An entry counts until the token
//! expires, five minutes at most, and only with the keys that it was verified with: when the issuer removes a key, all
//! entries are verified again. When a shard is full, its oldest entry goes, so an issuer's flood of fresh tokens costs
//! others one more verification and nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::digest::{SHA256, digest};

use super::verifier::Verified;

pub(super) struct VerifiedCache {
    shards: [RwLock<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    entries: HashMap<TokenDigest, Entry>,
    /// Oldest first; each digest of `entries` once.
    order: VecDeque<TokenDigest>,
}

struct Entry {
    verified: Arc<Verified>,
    /// Milliseconds since 1970.
    until: i64,
    generation: u64,
}

/// SHA-256 of a token.
pub(super) type TokenDigest = [u8; 32];

const SHARDS: usize = 16;
const ENTRIES_PER_SHARD: usize = 625;

/// In milliseconds.
const LONGEST: i64 = 5 * 60 * 1000;

pub(super) fn digest_of(token: &str) -> TokenDigest {
    digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

impl VerifiedCache {
    pub(super) fn new() -> Self {
        VerifiedCache { shards: std::array::from_fn(|_| RwLock::default()) }
    }

    pub(super) fn get(&self, digest: &TokenDigest, now: i64, generation: u64) -> Option<Arc<Verified>> {
        let shard = self.shard(digest).read().unwrap_or_else(PoisonError::into_inner);
        let entry = shard.entries.get(digest)?;
        (entry.generation == generation && now < entry.until).then(|| entry.verified.clone())
    }

    pub(super) fn insert(&self, digest: TokenDigest, verified: Arc<Verified>, now: i64, generation: u64) {
        let until = verified.expires.as_millis().min(now + LONGEST);
        // Within the leeway after its end it is verified each time.
        if until <= now {
            return;
        }
        let mut shard = self.shard(&digest).write().unwrap_or_else(PoisonError::into_inner);
        if shard.entries.insert(digest, Entry { verified, until, generation }).is_none() {
            shard.order.push_back(digest);
        }
        if shard.order.len() > ENTRIES_PER_SHARD
            && let Some(oldest) = shard.order.pop_front()
        {
            shard.entries.remove(&oldest);
        }
    }

    fn shard(&self, digest: &TokenDigest) -> &RwLock<Shard> {
        &self.shards[usize::from(digest[0]) % SHARDS]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().unwrap().entries.len()).sum()
    }
}
