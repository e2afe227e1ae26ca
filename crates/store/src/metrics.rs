//! Figures of a store for operators: how long commits take, and what is in it.
//!
//! Commits are observed where they happen (`StoreMetrics`). What is in the store is counted when somebody asks
//! (`Measured`), from counters and small tables, so it costs appends nothing.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use sabir_model::{AgentId, State, Timestamp};

use crate::StoreFuture;

/// Figures of commits. All clones are the same figures.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    duration: Histogram,
    group: Histogram,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            // From a tenth of a millisecond to about seven seconds.
            duration: Histogram::new(exponential_buckets(0.0001, 2.0, 17)),
            group: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
        }
    }
}

impl StoreMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "store_commit",
            "Time of one commit to the database, which stores a group of appends",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register("store_commit_group", "Appends that shared one commit", self.group.clone());
    }

    pub(crate) fn committed(&self, took: Duration, group: usize) {
        self.duration.observe(took.as_secs_f64());
        self.group.observe(group as f64);
    }
}

/// The commits of a store since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    pub(crate) count: AtomicU64,
    /// Empty: nobody wants to know more.
    pub(crate) metrics: OnceLock<StoreMetrics>,
}

/// The part of a store that operators measure. The same object is a `Store`.
pub trait Measured: Send + Sync + 'static {
    /// Observes every commit from now on. The first call counts.
    fn observe_commits(&self, metrics: StoreMetrics);

    /// What is in the store now.
    fn measure(&self) -> StoreFuture<'_, StoreContents>;
}

/// What is in a store. Where several nodes share it, it is the same for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreContents {
    /// How many tasks of which agents have which state, over all owners. Sorted, without zeros.
    pub tasks: Vec<(AgentId, State, u64)>,
    /// What the store takes on its disk: the database file and its write-ahead log, or the whole database of Postgres.
    pub bytes: u64,
    /// Webhooks that have something to send.
    pub pending: u64,
    /// Since when the first of these waits: since its deliveries fail, or since it became due.
    pub pending_since: Option<Timestamp>,
    /// Events that are not tried any more.
    pub given_up: u64,
}
