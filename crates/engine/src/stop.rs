//! Stops the engine: runs may finish during the grace time, then the others are settled as `Recovery` says.
//!
//! | a run that         | when the server stops                                                            |
//! |--------------------|----------------------------------------------------------------------------------|
//! | waits for a slot   | stops waiting at once; its task stays queued in the store                        |
//! | works              | may finish during the grace time, then it is settled                             |
//! | waits for an answer | may get it while other runs work, but does not delay the stop; then its task waits on if its agent can use the answer later (`Survives`), else it fails |
//!
//! All of this fits into the grace time, unless that is shorter than a few seconds.

use std::time::Duration;

use crate::drive::Control;
use crate::engine::Engine;
use crate::topic::TaskActivity;

/// The part of the grace time that is reserved for settling runs: a third, and at most this.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(3);
/// Settling gets at least this long, even without any grace time.
const MIN_SETTLE_TIME: Duration = Duration::from_secs(1);
/// How often to check whether a run still works.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Engine {
    /// Accepts no more tasks and returns when no run is left, at the latest after the grace time.
    pub async fn stop(&self, grace: Duration) {
        self.core.stopping.send_replace(true);
        self.tell_drivers(|| Control::LeaveQueue);
        let settle_time = (grace / 3).min(MAX_SETTLE_TIME);
        let _ = tokio::time::timeout(grace.saturating_sub(settle_time), self.until_no_active_run()).await;
        self.settle_all(settle_time.max(MIN_SETTLE_TIME)).await;
    }

    /// Stops without a grace time: all runs are settled at once.
    pub async fn stop_now(&self) {
        self.core.stopping.send_replace(true);
        self.settle_all(MAX_SETTLE_TIME).await;
    }

    async fn until_no_active_run(&self) {
        while self.has_active_run() {
            let _ = tokio::time::timeout(POLL_INTERVAL, self.core.drivers.until_none()).await;
        }
    }

    fn has_active_run(&self) -> bool {
        let mut works = false;
        self.core.feed.for_each(|topic| {
            let is_due = matches!(topic.position().activity, TaskActivity::Busy | TaskActivity::StoreFailing);
            works |= is_due && topic.driver().is_some();
        });
        works
    }

    async fn settle_all(&self, limit: Duration) {
        // The agents get less than the whole time, so that the end of a dropped agent can still be stored.
        self.tell_drivers(|| Control::Settle { within: limit * 2 / 3 });
        if tokio::time::timeout(limit, self.core.drivers.until_none()).await.is_err() {
            tracing::warn!("some runs could not be settled in time; the next start will do it");
        }
    }

    pub(crate) fn tell_drivers(&self, control: impl Fn() -> Control) {
        self.core.feed.for_each(|topic| {
            if let Some(driver) = topic.driver() {
                let _ = driver.send(control());
            }
        });
    }
}
