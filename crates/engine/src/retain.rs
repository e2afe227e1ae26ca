//! Retention: deletes settled tasks that are too old or too many, always whole tasks, and fails tasks that have waited
//! too long for an answer.

use std::time::Duration;

use sabir_model::{Error, Timestamp};
use sabir_store::{Retention, SweepResult, TaskRow};

use crate::audit::Audit;
use crate::cluster::Loaded;
use crate::drive::{self, Assignment, Control, DriverOwnership, DriverStart, failure};
use crate::engine::Engine;
use crate::executor::Executor;
use crate::topic::TopicKey;

/// A task that has something to send is kept for so long after its end, whatever retention says. Deliveries are given up
/// earlier.
const PENDING: Duration = Duration::from_secs(48 * 3600);

const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// How many waiting tasks one sweep looks at; the others are left for the next sweep.
const WAITING_PAGE: usize = 1000;

impl Engine {
    /// Sweeps at regular intervals until the engine stops, if a retention policy is set.
    pub(crate) fn keep_sweeping(&self) {
        let policy = self.core.settings.retention;
        let trims_audit = self.core.audit.as_ref().is_some_and(Audit::is_bounded);
        if policy.max_age.is_none() && policy.max_tasks.is_none() && policy.waiting.is_none() && !trims_audit {
            return;
        }
        let engine = self.clone();
        let mut stopping = self.core.stopping.subscribe();
        tokio::spawn(async move {
            loop {
                engine.sweep().await;
                tokio::select! {
                    () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                    _ = stopping.changed() => return,
                }
            }
        });
    }

    /// Fails tasks that have waited too long and deletes tasks that retention does not keep. Returns how many were
    /// deleted.
    pub async fn sweep(&self) -> u64 {
        self.expire_waiting().await;
        self.trim_audit().await;
        let policy = self.core.settings.retention;
        let settled_before = policy.max_age.map(|age| self.before(age));
        let retention = Retention { settled_before, keep: policy.max_tasks, pending_after: Some(self.before(PENDING)) };
        let mut swept = 0;
        loop {
            match self.core.store.sweep(retention).await {
                Ok(SweepResult { tasks, more }) => {
                    swept += tasks;
                    if !more {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot delete old tasks; will try again");
                    break;
                }
            }
        }
        if swept > 0 {
            tracing::info!(tasks = swept, "deleted old tasks");
            self.core.end_signals.deletions.notify_one();
            if let Some(stored) = &self.core.stored_bytes {
                stored.set_stale();
            }
        }
        swept
    }

    async fn expire_waiting(&self) {
        let Some(limit) = self.core.settings.retention.waiting else { return };
        let before = self.before(limit);
        let rows = match self.core.store.waiting_since(before, WAITING_PAGE).await {
            Ok(rows) => rows,
            Err(error) => return tracing::warn!(%error, "cannot look for tasks that wait too long; will try again"),
        };
        for row in rows {
            let task = row.task.clone();
            if let Err(error) = self.expire(row, before, limit).await {
                tracing::warn!(%task, %error, "cannot end a task that waits too long; will try again");
            }
        }
    }

    async fn expire(&self, row: TaskRow, before: Timestamp, limit: Duration) -> Result<(), Error> {
        let reason = format!("expired: nobody answered for {limit:?}");
        let registered = self.registered_agent(Some(&row.agent)).or_else(|| self.registered_agent(None));
        let registered = registered.ok_or_else(|| Error::internal("there is no agent"))?;
        let lease = self.core.feed.open(TopicKey { owner: row.owner, agent: row.agent, task: row.task });
        match self.load(&lease).await? {
            Loaded::Here => {}
            // Its own node ends it.
            Loaded::Missing | Loaded::Left | Loaded::Elsewhere => return Ok(()),
        }
        let inbox = self.stored_inbox(&lease).await.unwrap_or_default();
        match lease.claim() {
            Err(driver) => {
                // The driver ignores this unless its run waits for an answer.
                let _ = driver.send(Control::Expire { before, reason });
            }
            Ok(control) => {
                let waits = lease.with_task(|task| task.status.state.is_waiting() && task.status.time < before);
                if waits != Some(true) {
                    // The task was answered after the query.
                    lease.release(None);
                    return Ok(());
                }
                let start = DriverStart::Settle { outcome: failure(reason), inbox };
                let (scheduled, send_guards, done) = (None, Vec::new(), None);
                drive::start(
                    &self.core,
                    Executor::unrouted(registered),
                    Assignment {
                        lease,
                        control,
                        start,
                        scheduled,
                        send_guards,
                        done,
                        ownership: DriverOwnership::default(),
                    },
                );
            }
        }
        Ok(())
    }

    /// The time that is `age` ago.
    pub(crate) fn before(&self, age: Duration) -> Timestamp {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.core.clock.now().as_millis().saturating_sub(age))
    }
}
