//! Retention: settled tasks go when they are too old or too many, whole tasks at a time.

use std::time::Duration;

use sabir_model::Timestamp;
use sabir_store::Retention;

use crate::engine::Engine;

const EVERY: Duration = Duration::from_secs(60);

impl Engine {
    /// Sweeps now and then for as long as the engine lives, if there is anything to sweep by.
    pub(crate) fn keep_sweeping(&self) {
        let policy = self.core.settings.retention;
        if policy.max_age.is_none() && policy.max_tasks.is_none() {
            return;
        }
        let engine = self.clone();
        let mut stopping = self.core.stopping.subscribe();
        tokio::spawn(async move {
            loop {
                engine.sweep().await;
                tokio::select! {
                    () = tokio::time::sleep(EVERY) => {}
                    _ = stopping.changed() => return,
                }
            }
        });
    }

    /// Deletes what retention does not keep; says how many tasks went.
    pub async fn sweep(&self) -> u64 {
        let policy = self.core.settings.retention;
        let now = self.core.clock.now();
        let retention = Retention {
            settled_before: policy
                .max_age
                .map(|age| Timestamp::from_millis(now.as_millis().saturating_sub(age.as_millis() as i64))),
            keep: policy.max_tasks,
        };
        let mut swept = 0;
        loop {
            match self.core.store.sweep(retention).await {
                Ok(0) => break,
                Ok(count) => swept += count,
                Err(error) => {
                    tracing::warn!(%error, "cannot delete old tasks; will try again");
                    break;
                }
            }
        }
        if swept > 0 {
            tracing::info!(tasks = swept, "deleted old tasks");
        }
        swept
    }
}
