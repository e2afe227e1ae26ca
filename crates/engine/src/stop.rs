//! Stopping: runs may finish for a while, then the rest is settled by policy.
//!
//! | a run that         | when the server stops                                                            |
//! |--------------------|----------------------------------------------------------------------------------|
//! | waits for a slot   | is let go at once; its task stays queued in the store                            |
//! | works              | may finish while there is grace, then it is settled                              |
//! | waits for an answer | may get it while others work, but holds nobody up; then it is settled            |
//!
//! All of this stays within the grace time, if that is some seconds.

use std::time::Duration;

use crate::drive::Control;
use crate::engine::Engine;
use crate::topic::Rest;

/// How much of the grace time is kept for settling what has not finished: a third of it, and not more than this.
const MOST_LAST_WORDS: Duration = Duration::from_secs(3);
/// What settling may take in any case, so that it works without any grace.
const LEAST_LAST_WORDS: Duration = Duration::from_secs(1);
/// How often to look whether anybody still works.
const ROUND: Duration = Duration::from_millis(20);

impl Engine {
    /// Takes no more tasks and returns when nothing runs any more, within the grace time.
    pub async fn stop(&self, grace: Duration) {
        self.core.stopping.send_replace(true);
        self.tell_drivers(|| Control::LeaveQueue);
        let last_words = (grace / 3).min(MOST_LAST_WORDS);
        let _ = tokio::time::timeout(grace.saturating_sub(last_words), self.until_nobody_works()).await;
        self.settle_all(last_words.max(LEAST_LAST_WORDS)).await;
    }

    /// Stops without a grace time: all runs are settled at once.
    pub async fn stop_now(&self) {
        self.core.stopping.send_replace(true);
        self.settle_all(MOST_LAST_WORDS).await;
    }

    async fn until_nobody_works(&self) {
        while self.does_anybody_work() {
            let _ = tokio::time::timeout(ROUND, self.core.running.until_none()).await;
        }
    }

    fn does_anybody_work(&self) -> bool {
        let mut works = false;
        self.core.feed.for_each(|topic| {
            let is_due = matches!(topic.mark().rest, Rest::Busy | Rest::Stuck);
            works |= is_due && topic.driver().is_some();
        });
        works
    }

    async fn settle_all(&self, limit: Duration) {
        // An agent that does not stop is dropped in time for its end to be stored.
        self.tell_drivers(|| Control::Settle { within: limit * 2 / 3 });
        if tokio::time::timeout(limit, self.core.running.until_none()).await.is_err() {
            tracing::warn!("some runs could not be settled in time; the next start will do it");
        }
    }

    fn tell_drivers(&self, control: impl Fn() -> Control) {
        self.core.feed.for_each(|topic| {
            if let Some(driver) = topic.driver() {
                let _ = driver.send(control());
            }
        });
    }
}
