//! New ids of traces and spans.
//!
//! Each is the keyed hash of a counter, with a key that the standard library takes from the operating system: as good as
//! random, without a lock or a system call for each id. They name spans and guard nothing.

use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn random() -> u64 {
    KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn new_span_id() -> NonZeroU64 {
    loop {
        if let Some(id) = NonZeroU64::new(random()) {
            return id;
        }
    }
}

pub(super) fn new_trace_id() -> NonZeroU128 {
    loop {
        if let Some(id) = NonZeroU128::new((u128::from(random()) << 64) | u128::from(random())) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_do_not_repeat_and_use_all_their_bits() {
        let (traces, spans): (HashSet<_>, HashSet<_>) = (0..10_000).map(|_| (new_trace_id(), new_span_id())).unzip();
        assert_eq!((traces.len(), spans.len()), (10_000, 10_000));
        let all = traces.iter().fold((0u128, u128::MAX), |(or, and), id| (or | id.get(), and & id.get()));
        assert_eq!(all, (u128::MAX, 0));
    }
}
