//! Which agent executes a task: the one that it is addressed to, or the one that its router chooses.
//!
//! The executor is chosen before the schedule is asked, so that the limits of the agent that does the work apply. It is
//! not stored: a router decides by the message that began the task, so follow-ups and restarts find the same agent.

use std::sync::Arc;

use sabir_model::{Json, Message, Task, TaskId};
use sabir_store::{StoreError, TaskRow};

use crate::Route;
use crate::engine::{Engine, RegisteredAgent};
use crate::feed::Lease;
use crate::schedule::{ContextKey, Scheduled, SlotRequest, SlotUse};

#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) agent: Arc<RegisteredAgent>,
    /// The model that the route asks for, instead of the agent's own.
    pub(crate) model: Option<String>,
}

impl Executor {
    /// The addressed agent itself, without routing: for tasks that only end.
    pub(crate) fn unrouted(registered: &Arc<RegisteredAgent>) -> Self {
        Self { agent: registered.clone(), model: None }
    }
}

/// A run that needs a permit of the schedule.
pub(crate) struct RunRequest<'a> {
    pub(crate) addressed: &'a RegisteredAgent,
    pub(crate) executor: &'a Executor,
    pub(crate) owner: &'a sabir_model::Owner,
    pub(crate) context: sabir_model::ContextId,
    pub(crate) task: &'a TaskId,
    pub(crate) slot_use: SlotUse,
}

impl RunRequest<'_> {
    fn into_slot_request(self) -> SlotRequest {
        let context = ContextKey { agent: self.addressed.number, owner: self.owner.clone(), context: self.context };
        SlotRequest { context, task: self.task.clone(), executor: self.executor.agent.number, slot_use: self.slot_use }
    }
}

impl Engine {
    /// The executor of a task that began with this message.
    pub(crate) fn executor(
        &self,
        addressed: &Arc<RegisteredAgent>,
        opening: &Message,
        metadata: Option<&Json>,
    ) -> Executor {
        let route = addressed.hosted.router.as_ref().and_then(|router| router.route(opening, metadata));
        let Some(Route { agent, model }) = route else { return Executor::unrouted(addressed) };
        let core = &self.core;
        let known = core.agents.iter().chain(&core.routed_agents).find(|registered| registered.hosted.id == agent);
        match known {
            Some(registered) => Executor { agent: registered.clone(), model },
            None => {
                tracing::error!(%agent, "a route leads to an agent that does not exist");
                Executor::unrouted(addressed)
            }
        }
    }

    /// The executor of a task that is loaded.
    pub(crate) fn executor_of(&self, addressed: &Arc<RegisteredAgent>, lease: &Lease) -> Executor {
        if addressed.hosted.router.is_none() {
            return Executor::unrouted(addressed);
        }
        let began = lease.with_task(|task| (task.history.first().cloned(), task.metadata.clone()));
        match began {
            Some((Some(opening), metadata)) => self.executor(addressed, &opening, metadata.as_ref()),
            _ => Executor::unrouted(addressed),
        }
    }

    /// The executor of a task of which only the row is loaded.
    pub(crate) async fn executor_of_row(
        &self,
        addressed: &Arc<RegisteredAgent>,
        row: &TaskRow,
    ) -> Result<Executor, StoreError> {
        if addressed.hosted.router.is_none() {
            return Ok(Executor::unrouted(addressed));
        }
        let began = self.core.store.load(row.no).await?;
        let executor = began.and_then(|Task { history, metadata, .. }| {
            Some(self.executor(addressed, history.first()?, metadata.as_ref()))
        });
        Ok(executor.unwrap_or_else(|| Executor::unrouted(addressed)))
    }

    /// Requests a permit for a run.
    pub(crate) fn enter(&self, run: RunRequest<'_>) -> Scheduled {
        self.core.schedule.enter(run.into_slot_request())
    }

    /// The same for a task that an earlier process accepted; the bound of the queue does not apply.
    pub(crate) fn enter_recovered(&self, run: RunRequest<'_>) -> Scheduled {
        self.core.schedule.enter_recovered(run.into_slot_request())
    }
}
