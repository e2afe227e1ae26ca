//! Reads: one task, or a page of a list. Tasks in memory come from their topics, all others from the store.

use std::sync::Arc;

use sabir_model::{AgentId, Caller, ContextId, Cursor, Error, Get, List, Page, State, Task, TaskId, Wanted};
use sabir_store::{Query, TaskRow};

use crate::Answer;
use crate::engine::Engine;
use crate::feed::Lease;
use crate::topic::TopicKey;

/// How many earlier tasks of a context an agent or a client gets.
pub(crate) const CONVERSATION: usize = 100;
/// The oldest of them are left out if all together have more bytes than about this.
pub(crate) const CONVERSATION_BYTES: usize = 16 << 20;

/// A page of a list ends early when its tasks have about this many bytes.
const PAGE_BYTES: usize = 8 << 20;

/// A task that belongs to the caller.
pub(crate) struct Located {
    pub(crate) key: TopicKey,
    pub(crate) context: ContextId,
    pub(crate) state: State,
}

/// Where a task was found.
enum TaskLocation {
    /// A driver or a reader has it in memory.
    InMemory(Lease),
    Stored(TaskRow),
}

impl Engine {
    pub(crate) async fn get(&self, caller: &Caller, get: Get) -> Result<Answer, Error> {
        self.check_agent(get.agent.as_ref())?;
        let task = self.task(caller, get.agent.as_ref(), &get.task).await?;
        if get.earlier == Wanted::Yes {
            let earlier = self.earlier(&task).await?;
            return Ok(Answer::Conversation(task, earlier));
        }
        Ok(Answer::Task(task.with_history(get.history)))
    }

    /// The tasks of its context that came before this one, oldest first.
    async fn earlier(&self, task: &Task) -> Result<Vec<Task>, Error> {
        let tasks = self
            .core
            .store
            .conversation(&task.owner, &task.agent, &task.context, CONVERSATION, CONVERSATION_BYTES)
            .await;
        let mut tasks = tasks?;
        // A task that is older than all of them has nothing before it.
        let place = tasks.iter().position(|other| other.id == task.id);
        tasks.truncate(place.unwrap_or(0));
        Ok(tasks)
    }

    pub(crate) async fn list(&self, caller: &Caller, list: List) -> Result<Answer, Error> {
        self.check_agent(list.agent.as_ref())?;
        let query = Query {
            owner: caller.owner.clone(),
            agent: list.agent,
            context: list.context,
            state: list.state,
            since: list.since,
            from: list.from,
            limit: list.page_size as usize,
            max_bytes: PAGE_BYTES,
            artifacts: list.artifacts,
            history: list.history,
        };
        let listing = self.core.store.list(query).await?;
        let tasks = listing.tasks;
        let next = tasks.last().filter(|_| listing.more).map(|task| Cursor {
            time: task.status.time,
            task: task.id.clone(),
            agent: task.agent.clone(),
        });
        let page = Page { tasks, artifacts: list.artifacts, next, page_size: list.page_size, total: listing.total };
        Ok(Answer::Page(Box::new(page)))
    }

    /// The whole task, as of its last stored event.
    pub(crate) async fn task(&self, caller: &Caller, agent: Option<&AgentId>, id: &TaskId) -> Result<Arc<Task>, Error> {
        let preferred = self.preferred_agent(agent);
        if let Some(task) = self.core.feed.find(&caller.owner, preferred, id).and_then(|lease| lease.task()) {
            return Ok(task);
        }
        let mut found = None;
        if let Some(preferred) = preferred {
            let key = TopicKey { owner: caller.owner.clone(), agent: preferred.clone(), task: id.clone() };
            found = self.core.reads.get(&*self.core.store, &key).await?;
        }
        if found.is_none() && preferred != agent {
            found = self.core.store.get(&caller.owner, agent, id).await?.map(Arc::new);
        }
        found.ok_or_else(|| Error::TaskNotFound(id.clone()))
    }

    /// Finds a task: its key, its context and its state, without its content.
    pub(crate) async fn locate(&self, caller: &Caller, agent: Option<&AgentId>, id: &TaskId) -> Result<Located, Error> {
        self.check_agent(agent)?;
        match self.find(caller, agent, id).await? {
            TaskLocation::InMemory(lease) => {
                let seen = lease.with_task(|task| (task.context.clone(), task.status.state));
                let (context, state) = seen.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
                Ok(Located { key: lease.key.clone(), context, state })
            }
            TaskLocation::Stored(row) => {
                let key = TopicKey { owner: row.owner, agent: row.agent, task: row.task };
                Ok(Located { key, context: row.context, state: row.state })
            }
        }
    }

    async fn find(&self, caller: &Caller, agent: Option<&AgentId>, id: &TaskId) -> Result<TaskLocation, Error> {
        let preferred = self.preferred_agent(agent);
        if let Some(lease) =
            self.core.feed.find(&caller.owner, preferred, id).filter(|lease| lease.with_task(|_| ()).is_some())
        {
            return Ok(TaskLocation::InMemory(lease));
        }
        // Unknown ids are as frequent as known ones, so the first lookup is for any agent: one query shows that there
        // is no such task.
        let found = self.core.store.find(&caller.owner, agent, id).await?;
        let mut row = found.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        if preferred.is_some_and(|preferred| *preferred != row.agent) {
            let of_preferred = self.core.store.find(&caller.owner, preferred, id).await?;
            row = of_preferred.unwrap_or(row);
        }
        // The copy in memory is never older than the row.
        let lease = self.core.feed.find(&caller.owner, Some(&row.agent), id);
        Ok(match lease.filter(|lease| lease.with_task(|_| ()).is_some()) {
            Some(lease) => TaskLocation::InMemory(lease),
            None => TaskLocation::Stored(row),
        })
    }

    /// The agent whose task is preferred. Callers who choose ids may use the same id at several agents; a call without
    /// an agent means the default agent's task first, since a message without an agent would go there.
    fn preferred_agent<'a>(&'a self, agent: Option<&'a AgentId>) -> Option<&'a AgentId> {
        agent.or_else(|| self.default_agent())
    }

    fn check_agent(&self, agent: Option<&AgentId>) -> Result<(), Error> {
        match agent {
            Some(_) => self.registered_agent(agent).map(drop),
            None => Ok(()),
        }
    }
}
