//! How many deliveries went how, as figures for operators.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counters since the start of the server. All clones are the same counters.
#[derive(Debug, Clone)]
pub struct DeliveryCounts {
    by_outcome: Family<[(&'static str, &'static str); 1], Counter>,
    delivered: Counter,
    failed: Counter,
    given_up: Counter,
}

impl Default for DeliveryCounts {
    fn default() -> Self {
        let by_outcome = Family::default();
        let of = |outcome| Family::<_, Counter>::get_or_create_owned(&by_outcome, &[("outcome", outcome)]);
        Self { delivered: of("delivered"), failed: of("failed"), given_up: of("given-up"), by_outcome }
    }
}

impl DeliveryCounts {
    pub fn register(&self, registry: &mut Registry) {
        let help = "Deliveries to webhooks: acknowledged, attempts that failed, and events that were given up";
        registry.register("webhook_deliveries", help, self.by_outcome.clone());
    }

    pub(super) fn count_delivered(&self) {
        self.delivered.inc();
    }

    pub(super) fn count_failed(&self) {
        self.failed.inc();
    }

    pub(super) fn count_given_up(&self) {
        self.given_up.inc();
    }

    /// Deliveries that a receiver has acknowledged.
    pub fn delivered(&self) -> u64 {
        self.delivered.get()
    }

    /// Attempts that failed.
    pub fn failed(&self) -> u64 {
        self.failed.get()
    }

    /// Events that are not tried any more.
    pub fn given_up(&self) -> u64 {
        self.given_up.get()
    }
}
