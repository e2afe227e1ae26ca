//! The clock for timestamps in events. Tests have one that they set; timeouts use tokio's clock instead.

use std::time::{SystemTime, UNIX_EPOCH};

use sabir_model::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time that events get.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(since.as_millis() as i64)
    }
}
