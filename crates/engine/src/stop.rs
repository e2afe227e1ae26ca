//! Stopping: runs may finish for a while, then the rest is settled by policy.

use std::time::Duration;

use crate::drive::Control;
use crate::engine::Engine;

/// How long settled runs may take to be stored.
const LAST_WORDS: Duration = Duration::from_secs(7);

impl Engine {
    /// Takes no more sends and returns when nothing runs any more. Queued tasks stay queued in the
    /// store; runs that wait for an answer are settled at once, others after the grace time.
    pub async fn stop(&self, grace: Duration) {
        self.core.stopping.send_replace(true);
        self.settle(|is_working| !is_working);
        if tokio::time::timeout(grace, self.core.running.until_none()).await.is_ok() {
            return;
        }
        self.settle(|_| true);
        if tokio::time::timeout(LAST_WORDS, self.core.running.until_none()).await.is_err() {
            tracing::warn!("some runs could not be settled in time; the next start will do it");
        }
    }

    fn settle(&self, which: impl Fn(bool) -> bool) {
        self.core.feed.for_each(|topic| {
            let is_working = topic.look(|task| task.status.state == sabir_model::State::Working).unwrap_or(true);
            if which(is_working)
                && let Some(driver) = topic.driver()
            {
                let _ = driver.send(Control::Settle);
            }
        });
    }
}
