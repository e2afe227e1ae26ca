//! Takes over tasks that nobody drives and somebody should: those of dead nodes, and those that were left because their
//! context was busy, their home is this node, or their node has stopped. What becomes of them is decided as after a restart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sabir_store::{AfterAppend, ClaimedTask, ClaimingAgent, Epoch, GivenBack, StoreError, TaskNo};

use super::Membership;
use crate::Locality;
use crate::drive::{DriverOwnership, failure};
use crate::engine::Engine;
use crate::recover::{Plan, causes};
use crate::sharded::lock;
use crate::topic::TopicKey;

/// How many tasks are taken at a time, so that several nodes share the work.
const SLICE: usize = 36;
/// A task that has no driver for so long is an orphan.
const ORPHAN_INTERVAL: Duration = Duration::from_secs(5);
/// The same after a claim that has failed, of which nobody knows what was claimed.
const ORPHAN_INTERVAL_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// An orphan is seen twice.
const LOOKS: u32 = 2;
/// How often to look for tasks without a hint.
const INTERVAL: Duration = Duration::from_secs(1);

/// A driver that has just left a task for others is gone after that.
const HAS_DRIVER: Duration = Duration::from_millis(50);

/// Whether a claimed task has a driver now.
enum TakenUp {
    Yes,
    /// Another driver here has it still.
    HasDriver,
}

impl Engine {
    pub(super) fn keep_claiming(&self, membership: &Membership) {
        let cluster = membership.cluster.clone();
        let core = Arc::downgrade(&self.core);
        let mut stopping = self.core.stopping.subscribe();
        tokio::spawn(async move {
            loop {
                let Some(core) = core.upgrade() else { return };
                let engine = Engine { core };
                if *engine.core.stopping.borrow() {
                    return;
                }
                match cluster.claim(engine.claiming_agents(), SLICE).await {
                    Ok(claimed) if claimed.is_empty() => {}
                    Ok(claimed) => {
                        let numbers: Vec<TaskNo> = claimed.iter().map(|task| task.unfinished.row.no).collect();
                        numbers.iter().for_each(|no| engine.set_held(*no, true));
                        for (task, no) in claimed.into_iter().zip(numbers) {
                            // A stop may have begun since the claim. What is given back now, another node runs at once.
                            let is_stopping = *engine.core.stopping.borrow();
                            match is_stopping {
                                false => engine.take_up(task).await,
                                true => engine.leave_claimed(task).await,
                            }
                            engine.set_held(no, false);
                        }
                        // There may be more.
                        continue;
                    }
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        tracing::warn!(%error, "cannot look for tasks to take over; will try again");
                        // Nobody knows what was claimed.
                        engine.core.membership.iter().for_each(|membership| membership.claim_failed.notify_one());
                    }
                }
                let Some(membership) = &engine.core.membership else { return };
                tokio::select! {
                    () = membership.claimable.notified() => {}
                    () = tokio::time::sleep(INTERVAL) => {}
                    _ = stopping.changed() => {}
                }
            }
        });
    }

    fn claiming_agents(&self) -> Vec<ClaimingAgent> {
        let agents = self.core.agents.iter().map(|registered| {
            let hosted = &registered.hosted;
            ClaimingAgent {
                id: hosted.id.clone(),
                // The limit of a routed task is that of the agent that executes it, which only its driver knows.
                most_runs: hosted.limits.concurrent_total.filter(|_| hosted.router.is_none()),
                free_slots: u32::try_from(self.core.schedule.free_slots(registered.number)).unwrap_or(u32::MAX),
            }
        });
        agents.collect()
    }

    async fn leave_claimed(&self, claimed: ClaimedTask) {
        let ClaimedTask { unfinished, epoch, lost_home, .. } = claimed;
        self.give_back(unfinished.row.no, epoch, AfterAppend::Leave { home: lost_home }).await;
    }

    async fn take_up(&self, claimed: ClaimedTask) {
        let (row, epoch) = (&claimed.unfinished.row, claimed.epoch);
        let (no, task, agent) = (row.no, row.task.clone(), row.agent.clone());
        let home = claimed.lost_home.clone();
        if let Some(node) = &claimed.lost_node {
            tracing::info!(%task, %agent, %node, "takes over a task of a lost node");
        }
        let retry_after = match self.take_up_claimed(claimed).await {
            Ok(TakenUp::Yes) => return,
            Ok(TakenUp::HasDriver) => HAS_DRIVER,
            Err(error) => {
                tracing::error!(%task, %agent, error = causes(&error), "cannot take over a task; will try again");
                INTERVAL
            }
        };
        let engine = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(retry_after).await;
            engine.give_back(no, epoch, AfterAppend::Leave { home }).await;
            if let Some(membership) = &engine.core.membership {
                membership.claim_soon();
            }
        });
    }

    async fn take_up_claimed(&self, claimed: ClaimedTask) -> Result<TakenUp, sabir_model::Error> {
        let ClaimedTask { unfinished, sends, epoch, lost_node, lost_home } = claimed;
        let no = unfinished.row.no;
        if lost_node.is_some() && self.registered_agent(Some(&unfinished.row.agent)).is_none() {
            // Another node may have this agent. If none has it for long, the task is claimed as one that was left.
            self.give_back(no, epoch, AfterAppend::Leave { home: None }).await;
            return Ok(TakenUp::Yes);
        }
        let needs_home = self.registered_agent(Some(&unfinished.row.agent)).is_some_and(|registered| {
            // A routed task is executed by another agent; the addressed one decides for all of its routes.
            registered.hosted.agent.locality() == Locality::NeedsHome
        });
        let plan = match lost_home.filter(|_| needs_home) {
            Some(home) => Plan::Settle(failure(format!(
                "the session of this context is on node {home}, which is gone; send the request again in a new context"
            ))),
            None => self.plan(&unfinished, lost_node.as_deref()).await?,
        };
        let row = &unfinished.row;
        let waiting = matches!(plan, Plan::KeepWaiting).then(|| TopicKey {
            owner: row.owner.clone(),
            agent: row.agent.clone(),
            task: row.task.clone(),
        });
        match self.recovery_of(plan, unfinished).await? {
            Some((key, start)) => {
                let ownership = DriverOwnership { epoch: Some(epoch), leave: None, sends };
                if !self.recover_task(key, start, ownership).await? {
                    return Ok(TakenUp::HasDriver);
                }
            }
            None => {
                self.give_back(no, epoch, AfterAppend::Rest).await;
                if let Some(waiting) = waiting {
                    let lease = self.core.feed.open(waiting);
                    self.load(&lease).await?;
                    self.watch_parent_of(&lease);
                }
            }
        }
        // What was forwarded to the last owner is ours now.
        self.accept_forwarded();
        Ok(TakenUp::Yes)
    }

    /// Gives up a task that this node owns and no driver here has. Does nothing for an engine that is alone.
    pub(crate) async fn give_back(&self, task: TaskNo, epoch: Epoch, then: AfterAppend) {
        let Some(membership) = &self.core.membership else { return };
        if let Err(error) = membership.cluster.give_back(vec![GivenBack { task, epoch, then }]).await {
            // `keep_finding_orphans` finds it.
            tracing::warn!(task_no = task.0, %error, "cannot give back a task; will try again");
        }
    }

    /// A task without a driver that this node keeps for a while.
    pub(crate) fn set_held(&self, task: TaskNo, is_held: bool) {
        let Some(membership) = &self.core.membership else { return };
        let mut held = lock(&membership.held);
        match is_held {
            true => held.insert(task),
            false => held.remove(&task),
        };
    }

    /// Finds tasks that this node owns in the store although no driver here has them: the store could not be told, or nobody
    /// knows what became of their first append. They are left for whoever claims them.
    pub(super) fn keep_finding_orphans(&self, membership: &Membership) {
        let cluster = membership.cluster.clone();
        let core = Arc::downgrade(&self.core);
        let mut left = self.core.left.subscribe();
        let claim_failed = membership.claim_failed.clone();
        tokio::spawn(async move {
            let mut soon = 0;
            let mut suspects: HashMap<TaskNo, Epoch> = HashMap::new();
            loop {
                let interval = if soon > 0 { ORPHAN_INTERVAL_AFTER_FAILURE } else { ORPHAN_INTERVAL };
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    () = claim_failed.notified(), if soon == 0 => {
                        soon = LOOKS;
                        continue;
                    }
                    _ = left.wait_for(|left| *left) => return,
                }
                let Ok(owned) = cluster.owned().await else { continue };
                soon = soon.saturating_sub(1);
                let Some(core) = core.upgrade() else { return };
                let mut driven = HashSet::new();
                core.feed.for_each(|topic| {
                    if topic.driver().is_some() {
                        driven.extend(topic.no());
                    }
                });
                if let Some(membership) = &core.membership {
                    driven.extend(lock(&membership.held).iter());
                }
                let undriven = owned.into_iter().filter(|(no, _)| !driven.contains(no));
                let (orphans, new): (HashMap<_, _>, HashMap<_, _>) =
                    undriven.partition(|(no, epoch)| suspects.get(no) == Some(epoch));
                for (no, epoch) in orphans {
                    tracing::warn!(task_no = no.0, "a task of this node has no driver; it is taken up again");
                    Engine { core: core.clone() }.give_back(no, epoch, AfterAppend::Leave { home: None }).await;
                }
                suspects = new;
            }
        });
    }
}
