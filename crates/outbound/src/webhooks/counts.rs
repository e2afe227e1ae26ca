//! How many deliveries went how.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the server.
#[derive(Debug, Default)]
pub struct DeliveryCounts {
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

impl DeliveryCounts {
    pub(super) fn count_delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Deliveries that a receiver has acknowledged.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Attempts that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Events that are not tried any more.
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }
}
