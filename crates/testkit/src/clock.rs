//! Time that passes when a test says so.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sabir_engine::Clock;
use sabir_model::Timestamp;

pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at(millis: i64) -> Self {
        Self(AtomicI64::new(millis))
    }

    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
